"""Prove promises on generated cases: python -m tests.prove [PROGRAM ...] [--cases N] [--seed N]

    lists     pages of lists in memory, against an oracle of sets
    sources   pages of functions that fetch hits, and cursors over them, against the same oracle
    pages     searches of a changing index by from and size, in an msearch, by cursors, against the same oracle
    cursors   all pages of cursors, asked by one client or by several, while the index changes, against the same oracle
    answers   searches of which one answer is changed: no error of ours, no lost hit
    ingest    documents on their way in, while one answer about duplicates is changed: no error, no lost document
    options   searches of real engines with any combination of options, against an oracle of words (see walks)
    changes   the same while documents are written between the requests

A run that was stopped continues with the same command. A case that fails is made smaller and kept in a file, which
`--replay FILE` runs again.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.prove import answers, changes, ingest, lists, options, pages, sources
from tests.prove.cases import Failure, Program, Progress, error_of, prove

PROGRAMS = {
    "lists": Program(lists.draw, lists.check),
    "sources": Program(sources.draw, sources.check),
    "pages": Program(pages.draw, pages.check),
    "cursors": Program(pages.draw_cursors, pages.check),
    "answers": Program(answers.draw, answers.check),
    "ingest": Program(ingest.draw, ingest.check),
    "options": Program(options.draw, options.check, options.servers, together=200),
    "changes": Program(changes.draw, changes.check, changes.servers),
}
FOLDER = Path(".prove")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.prove", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"one of {', '.join(PROGRAMS)} (default: all)")
    parser.add_argument("--cases", type=int, default=100_000, help="of each program (default: 100,000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"of the progress and of failed cases ({FOLDER})")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run one failed case again")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.programs) - set(PROGRAMS):
        parser.error(f"unknown program {', '.join(sorted(unknown))}: choose of {', '.join(PROGRAMS)}")
    if chosen.replay:
        return _replay(chosen.replay)
    chosen.folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(chosen.folder / "progress.json")
    for name in chosen.programs or PROGRAMS:
        try:
            prove(name, PROGRAMS[name], chosen.seed, chosen.cases, chosen.processes, progress)
        except Failure as failure:
            file = chosen.folder / f"{name}-{failure.seed}-{failure.number}.json"
            file.write_text(json.dumps({"program": name, "case": json.loads(failure.case)}, indent=1))
            print(f"{name}, seed {failure.seed}: case {failure.number} fails, python -m tests.prove --replay {file}")
            print(failure.told)
            return _replay(file)
    return 0


def _replay(file: Path) -> int:
    kept = json.loads(file.read_text())
    program = PROGRAMS[kept["program"]]
    with program.within():
        error = error_of(kept["case"], program.check)
    print("this case holds now" if error is None else "".join(traceback.format_exception(error)))
    return 0 if error is None else 1


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # the library warns of each changed answer
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a run that is stopped deletes its indexes
    sys.exit(main())
