/* Threads that do parts of one job at the same time. They run without the interpreter lock and touch no Python object. */
#pragma once
#include "stable_abi.h"

enum { MOST_THREADS = 64 };
static const unsigned long NO_THREAD = (unsigned long)-1; /* what PyThread_start_new_thread returns on an error */

typedef struct Team Team;

typedef struct {
    Team *team;
    int number;
    PyThread_type_lock begin, end; /* held until a job begins and until it is done */
} Member;

struct Team {
    int threads; /* with the caller's, which is number 0 */
    int stop;
    void (*work)(void *job, int number);
    void *job;
    Member members[MOST_THREADS];
};

static void be_member(void *argument)
{
    Member *member = argument;
    for (;;) {
        PyThread_acquire_lock(member->begin, WAIT_LOCK);
        if (member->team->stop)
            break;
        member->team->work(member->team->job, member->number);
        PyThread_release_lock(member->end);
    }
    PyThread_release_lock(member->end);
}

/* Do a job: every thread calls work(job, its number). */
static void do_together(Team *team, void (*work)(void *job, int number), void *job)
{
    team->work = work;
    team->job = job;
    for (int i = 1; i < team->threads; i++)
        PyThread_release_lock(team->members[i].begin);
    work(job, 0);
    for (int i = 1; i < team->threads; i++)
        PyThread_acquire_lock(team->members[i].end, WAIT_LOCK);
}

static int start_member(Member *member)
{
    member->begin = PyThread_allocate_lock();
    member->end = PyThread_allocate_lock();
    if (member->begin && member->end) {
        PyThread_acquire_lock(member->begin, WAIT_LOCK);
        PyThread_acquire_lock(member->end, WAIT_LOCK);
        if (PyThread_start_new_thread(be_member, member) != NO_THREAD)
            return 1;
    }
    if (member->begin)
        PyThread_free_lock(member->begin);
    if (member->end)
        PyThread_free_lock(member->end);
    return 0;
}

/* Start threads; there are fewer if the system gives no more. */
static void start_team(Team *team, int threads)
{
    *team = (Team){.threads = 1};
    while (team->threads < threads && team->threads < MOST_THREADS) {
        Member *member = team->members + team->threads;
        *member = (Member){.team = team, .number = team->threads};
        if (!start_member(member))
            break;
        team->threads++;
    }
}

static void end_team(Team *team)
{
    team->stop = 1;
    for (int i = 1; i < team->threads; i++) {
        PyThread_release_lock(team->members[i].begin);
        PyThread_acquire_lock(team->members[i].end, WAIT_LOCK);
        PyThread_free_lock(team->members[i].begin);
        PyThread_free_lock(team->members[i].end);
    }
}
