"""Measure every figure of benchmarks/figures/performance.md.

    python -m benchmarks [PART ...] [--quick] [--url URL] [--into FOLDER] [--against before.json]

PART: kinds, sizes, decisions, sketching, threads, process, or collapse, which searches a live server. The default is
all of them, collapse only with --url. --into writes performance.json, the tables between the marks of performance.md
and the plots into that folder (`--into benchmarks/figures`); parts that are not measured stay as they are.

--against compares the ratios of this run with those of an earlier one, possibly from another machine, and exits with an
error if one is worse by more than half. Times are never compared. The extra `bench` installs the other libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import decisions, document, exact_collapse, page_check, pictures, process, sketching, threads
from benchmarks.kept_memory import keep_freed
from benchmarks.page_check import OURS, PLAIN
from ndd_search import native

PACKAGES = ("numpy", "datasketch", "rensa", "FastSketchLSH", "sourmash", "simhash", "semhash", "scikit-learn")
SLACK = 3 / 2  # how much a ratio may worsen: twice what it varies between runs on a shared machine

PARTS: dict[str, Callable[[int], Any]] = {
    "kinds": lambda rounds: page_check.check_kinds(100, 128, rounds),
    "sizes": page_check.check_sizes,
    "decisions": decisions.figures,
    "sketching": lambda rounds: sketching.check(128, rounds),
    "threads": lambda rounds: threads.check(),
    "process": process.figures,
}


def machine() -> dict[str, str]:
    """Return the facts that the figures depend on: versions and hardware."""
    found = {"python": platform.python_version(), "processor": _processor(), "cores": str(os.cpu_count())}
    found["native core"] = "yes" if native.core else "no"
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    return found


def run(parts: Sequence[str], rounds: int, url: str | None) -> dict[str, Any]:
    """Measure the given parts, all of them if none is given."""
    found: dict[str, Any] = {"machine": machine()}
    for name, measure in PARTS.items():
        if not parts or name in parts:
            print(f"measuring {name} ...", file=sys.stderr)
            found[name] = measure(rounds)
    if url and (not parts or "collapse" in parts):
        found["collapse"] = exact_collapse.measure(url)
    return found


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """Return the ratios that a later run is compared with; higher is better."""
    result: dict[str, float] = {}
    for kind, times in found.get("kinds", {}).items():
        for ours in times.keys() & {OURS, PLAIN}:
            peers = times.keys() - {OURS, PLAIN}
            result |= {f"{kind}: {name} / {ours}": times[name] / times[ours] for name in peers}
            normal = found["kinds"]["20 % duplicates"][ours]
            result[f"{kind}: a page with 20 % duplicates / this, {ours}"] = normal / times[ours]
    for kind, times in found.get("decisions", {}).items():
        for name, time in times.items():
            bar = f"{name.partition(',')[0]}, {decisions.BAR}"
            result[f"{kind}: {bar} / {name}"] = times[bar] / time
    for row in found.get("sketching", []):
        what = ", ".join((row["shingles"], row["texts"], row["characters"]))
        result |= {f"{what}: {name}": ratio for name, ratio in row["x"].items()}
    if "process" in found:
        result["import of numpy / import of ndd_search"] = 1 / found["process"]["import ndd_search / import numpy, x"]
    return result


def worse(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """Return the ratios that are worse by more than SLACK."""
    now = ratios(found)
    return [
        f"{name}: {now[name]:.2f}, was {was:.2f}"
        for name, was in ratios(before).items()
        if name in now and now[name] * SLACK < was
    ]


def write(found: dict[str, Any], folder: Path) -> None:
    """Write figures, tables and plots, replacing those of the parts that were measured."""
    kept, page = folder / "performance.json", folder / "performance.md"
    if kept.exists():
        found = json.loads(kept.read_text()) | found
    page.write_text(document.rewrite(page.read_text(), found))
    kept.write_text(json.dumps(found, indent=1) + "\n")
    if {"kinds", "sizes"} <= found.keys():
        pictures.draw(found, folder)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="what to measure (all)")
    parser.add_argument("--quick", action="store_true", help="three rounds instead of eleven")
    parser.add_argument("--url", help="of a live server, for the engine's own collapse")
    parser.add_argument("--into", type=Path, help="write tables, plots and figures into this folder")
    parser.add_argument("--against", type=Path, help="the performance.json of an earlier run")
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - {*PARTS, "collapse"}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)} and collapse")
    if "collapse" in arguments.parts and not arguments.url:
        parser.error("collapse needs a server: --url http://127.0.0.1:9200")
    keep_freed()
    before = json.loads(arguments.against.read_text()) if arguments.against else {}
    found = run(arguments.parts, 3 if arguments.quick else 11, arguments.url)
    print("\n\n".join(document.markdown(found).values()))
    if arguments.into:
        write(found, arguments.into)
    if fallen := worse(found, before):
        sys.exit("worse than before:\n" + "\n".join(fallen))


if __name__ == "__main__":
    main()
