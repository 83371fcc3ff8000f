"""Every figure of docs/performance.md in one run.

    python -m benchmarks [--quick] [--json out.json] [--markdown out.md] [--plots FOLDER] [--against before.json]

--against compares the ratios of this run with those of an earlier one, on whatever machine that was, and ends with an
error when one has become worse by more than a third. Times are never compared. The peers come with the extra `bench`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks import page_check, process
from benchmarks.page_check import OURS, PLAIN
from ndd_search import native

PACKAGES = ("numpy", "datasketch", "rensa", "FastSketchLSH", "sourmash", "simhash", "scikit-learn")
SLACK = 4 / 3  # how much a ratio may worsen: twice what it varies between runs on a shared machine


def machine() -> dict[str, str]:
    """What the figures depend on."""
    found = {"python": platform.python_version(), "processor": _processor(), "cores": str(os.cpu_count())}
    found["native core"] = "yes" if native.core else "no"
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "-"
    return found


def run(quick: bool) -> dict[str, Any]:
    """All figures."""
    rounds = 3 if quick else 11
    return {
        "machine": machine(),
        "kinds": page_check.check_kinds(100, 128, rounds),
        "sizes": page_check.check_sizes(rounds),
        "process": process.figures(rounds),
    }


def ratios(found: dict[str, Any]) -> dict[str, float]:
    """What a later run is held to: more is better."""
    best = OURS if OURS in found["kinds"]["distinct"] else PLAIN
    result = {}
    for kind, times in found["kinds"].items():
        result |= {f"{kind}: {name} / {best}": time / times[best] for name, time in times.items() if name != best}
        result[f"{kind}: a page with 20 % duplicates / this, {best}"] = (
            found["kinds"]["20 % duplicates"][best] / times[best]
        )
    result["import of numpy / import of ndd_search"] = 1 / found["process"]["import ndd_search / import numpy, x"]
    return result


def worse(found: dict[str, Any], before: dict[str, Any]) -> list[str]:
    """The ratios that have become worse by more than SLACK."""
    now = ratios(found)
    return [
        f"{name}: {now[name]:.2f}, was {was:.2f}"
        for name, was in ratios(before).items()
        if name in now and now[name] * SLACK < was
    ]


def markdown(found: dict[str, Any]) -> str:
    """The tables of docs/performance.md."""
    parts = [
        page_check.table(found["kinds"], "page of 100 hits, k = 128, µs"),
        page_check.table(found["sizes"], "page with 20 % duplicates, µs"),
        "| process | |\n|---|--:|\n"
        + "\n".join(f"| {name} | {value:,.2f} |" for name, value in found["process"].items()),
        ", ".join(f"{name} {value}" for name, value in found["machine"].items()),
    ]
    return "\n\n".join(parts) + "\n"


def plot(found: dict[str, Any], folder: Path) -> None:
    """Times by kind of page and by size."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    kinds = list(found["kinds"])
    for name in found["kinds"]["distinct"]:
        axes.plot(kinds, [found["kinds"][kind][name] for kind in kinds], "o-", label=name)
    axes.set(yscale="log", ylabel="µs for a page of 100 hits, k = 128")
    axes.legend(fontsize=7, ncols=2)
    figure.savefig(folder / "page_kinds.svg", bbox_inches="tight")
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    for k in sorted({k for _, k in page_check.SIZES}):
        for name, style in ((OURS, "-"), (PLAIN, "--")):
            points = [(hits, found["sizes"][f"{hits} hits, k = {k}"]) for hits, at in page_check.SIZES if at == k]
            if name in points[0][1]:
                axes.plot(
                    *zip(*((hits, times[name]) for hits, times in points), strict=True), style, label=f"{name}, k = {k}"
                )
    axes.set(xscale="log", yscale="log", xlabel="hits", ylabel="µs, 20 % duplicates")
    axes.legend(fontsize=7)
    figure.savefig(folder / "page_sizes.svg", bbox_inches="tight")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three rounds instead of eleven")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--markdown", type=Path, help="write the tables to this file")
    parser.add_argument("--plots", type=Path, help="draw into this folder (needs matplotlib)")
    parser.add_argument("--against", type=Path, help="the JSON of an earlier run")
    arguments = parser.parse_args()
    found = run(arguments.quick)
    print(markdown(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.markdown:
        arguments.markdown.write_text(markdown(found))
    if arguments.plots:
        plot(found, arguments.plots)
    if arguments.against and (fallen := worse(found, json.loads(arguments.against.read_text()))):
        sys.exit("worse than before:\n" + "\n".join(fallen))


if __name__ == "__main__":
    main()
