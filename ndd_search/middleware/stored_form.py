"""Learns in which form a target stores sketches, so that searches read only that form.

To look for values that a hit lacks costs an engine nearly as much as to read them: integers and packed values of a
hundred hits take a tenth more time than the form that they have (docs/performance.md). So after a search whose hits
have one form, the searches of the next minute read that form alone.

A hit with a recipe and without values is either an empty text, or stored in another form. If a search meets one, it is
asked again for all forms, and so are the searches of the next hour.
"""

from __future__ import annotations

from ndd_search.middleware.plan import Plan, Replan
from ndd_search.middleware.settings import Settings
from ndd_search.middleware.state import State

_ONE = 60.0  # seconds for which one form is read
_SEVERAL = 3600.0  # seconds for which all forms are read after a hit without values


def replan_for_all_forms(plan: Plan, before: State, after: State, settings: Settings) -> None:
    """Raise Replan if hits may be stored in a form that was not read. before, after: the states around a trip."""
    if plan.form and "empty" in after.stream.lacking:
        settings.known.learn(plan.search.target, form="", form_until=settings.clock() + _SEVERAL)
        raise Replan(plan.of_all_forms, before)


def learn_form(plan: Plan, state: State, form: str, settings: Settings) -> None:
    """Learn the form of a target from a search that read all forms.

    state: after the first trip. form: as in Answer.
    """
    now = settings.clock()
    if not form or now < plan.learned.form_until:
        return
    if "empty" in state.stream.lacking:
        settings.known.learn(plan.search.target, form="", form_until=now + _SEVERAL)
    else:
        settings.known.learn(plan.search.target, form=form, form_until=now + _ONE)
