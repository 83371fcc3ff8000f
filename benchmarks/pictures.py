"""Draw the pictures of the documentation, as SVG that is readable on light and dark pages.

    python -m benchmarks.pictures docs    # from the demonstration collection; no measuring

page.svg:       a page of the demonstration collection, as the engine ranks and without near-duplicates.
decision.svg:   every pair of the demonstration collection by resemblance and specificity, with the decision.

`python -m benchmarks` draws two more from what it measures:

page_kinds.svg: the time of every method for a page of hits, a row for each method, fastest first.
page_sizes.svg: the time for pages of different sizes.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import ndd_search as ndd
from benchmarks.page_check import OURS, PLAIN, SIZES
from benchmarks.pages import rows
from benchmarks.real_words import FACTBOOK
from ndd_search.core.matching.decision import Constants, Decision
from ndd_search.core.matching.document_frequency import count_document_frequency
from ndd_search.core.matching.similar_pairs import overlaps
from ndd_search.core.matching.sketch_rows import rows_of
from ndd_search.core.sketching import sketch_many

PAPER, INK, FAINT = "#ffffff", "#1f2328", "#d0d7de"
DARK = {PAPER: "#0d1117", INK: "#e6edf3", FAINT: "#3d444d"}  # the other colours are readable on both
GREEN, BLUE, ORANGE = "#2da44e", "#4489d8", "#d4700f"
OTHERS = ["#b8860b", "#c0583a", "#b0508f", "#8a63d2", "#5b7fb8", "#2f9aa0", "#6f8f3a", "#a07850", "#d0567c", "#808890"]
LEAST = Constants().least  # resemblance of the pairs in decision.svg: no pair below is ever joined
QUERY, PLACES = "coral reefs and overfishing", 8
TYPICAL = "20 % duplicates"


@contextmanager
def picture(path: Path, height: float) -> Iterator[Any]:
    """Yield the axes of a picture that fits the width of a phone, and write it. height: in inches."""
    from matplotlib import pyplot

    style = {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "ndd_search",  # equal figures give equal files
        "font.family": "sans-serif",
        "font.size": 9,
        "figure.facecolor": PAPER,
        "axes.facecolor": "none",
        "axes.edgecolor": FAINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "grid.color": FAINT,
        "grid.linewidth": 0.5,
    }
    style |= dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK)
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(figsize=(5.6, height))
        axes.tick_params(length=0, which="both")
        yield axes
        figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
        pyplot.close(figure)
    path.write_text(path.read_text().replace("</defs>", f"{_dark_style()}</defs>", 1))


def _dark_style() -> str:
    rules = "".join(
        f'[style*="{kind}: {light}"] {{ {kind}: {dark} !important }} '
        for light, dark in DARK.items()
        for kind in ("fill", "stroke")
    )
    return f'<style type="text/css">@media (prefers-color-scheme: dark) {{ {rules}}}</style>'


def kinds(found: dict[str, dict[str, float]], path: Path) -> None:
    """Draw a row for each method, fastest first: a dot for each kind of page, a large one for the typical page."""
    methods = sorted(next(iter(found.values())), key=lambda name: median(times[name] for times in found.values()))
    colours = dict(zip([name for name in methods if name not in (OURS, PLAIN)], OTHERS, strict=True))
    colours |= {OURS: GREEN, PLAIN: BLUE}
    with picture(path, 0.42 * len(methods)) as axes:
        axes.set(xscale="log", xlim=(5, 4e5), ylim=(len(methods) - 0.4, -0.7), yticks=[])
        axes.grid(axis="y", visible=False)
        axes.spines["left"].set_visible(False)
        middle = np.sqrt(np.prod(axes.get_xlim()))
        for row, name in enumerate(methods):
            times = [each[name] for each in found.values()]
            low, high, typical, colour = min(times), max(times), found[TYPICAL][name], colours[name]
            axes.plot((low, high), (row, row), color=colour, linewidth=1)
            axes.plot(times, [row] * len(times), "o", color=colour, markersize=3.5)
            axes.plot(typical, row, "o", color=colour, markersize=8)
            axes.annotate(duration(typical), (typical, row), (0, 6), textcoords="offset points", ha="center", size=8)
            shown = f"ndd_search, {name}" if name in (OURS, PLAIN) else name
            left = low * high > middle**2
            place, shift, side = (low, -7, "right") if left else (high, 7, "left")
            axes.annotate(shown, (place, row), (shift, -3), textcoords="offset points", ha=side, color=colour)
        ticks = [10, 100, 1e3, 1e4, 1e5]
        axes.set_xticks(ticks, map(duration, ticks))
        axes.set_xticks([], minor=True)
        axes.set_xlabel(
            f"a page of 100 hits, k = 128: large dots a page with {TYPICAL}, small dots\n"
            "distinct hits, 40 % duplicates, edits of one text, boilerplate, pairs"
        )


def sizes(found: dict[str, dict[str, float]], path: Path) -> None:
    """Draw the time by the number of hits, for the two usual sizes of sketches, labelled at the lines."""
    with picture(path, 3.6) as axes:
        for name, colour, shift in ((OURS, GREEN, (60, -9)), (PLAIN, BLUE, (20, 14))):
            for k, style in ((64, "-"), (128, "--")):
                points = [(hits, found[f"{hits} hits, k = {k}"].get(name)) for hits, at in SIZES if at == k]
                axes.plot(*zip(*points, strict=True), style, color=colour, linewidth=1.5)
                axes.annotate(f"k = {k}", points[-1], (5, -3), textcoords="offset points", color=colour, size=8)
            axes.annotate(f"ndd_search, {name}", points[0], shift, textcoords="offset points", color=colour)
        ticks = [20, 50, 100, 200, 1000]
        axes.set(
            xscale="log",
            yscale="log",
            xlim=(18, 1500),
            ylim=(3, 1500),
            xlabel="hits on the page, 20 % of them duplicates",
        )
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_yticks([10, 100, 1000], map(duration, [10, 100, 1000]))
        axes.set_yticks([], minor=True)


def decision(path: Path) -> dict[str, int]:
    """Draw the pairs of the demonstration collection by resemblance and specificity. Returns how many there are."""
    documents = list(rows(FACTBOOK))
    recipe = ndd.Recipe()
    sketches = sketch_many([one["text"] for one in documents], recipe)
    table = count_document_frequency(sketches, recipe)
    first, second = np.triu_indices(len(documents), 1)
    title = np.array([one["title"] for one in documents])
    pairs = overlaps(rows_of(sketches, recipe.k), first, second, table)
    joined = Decision.of("auto", recipe, table).accepts(pairs)
    copies, alike = title[first] == title[second], pairs.resemblance >= LEAST
    with picture(path, 4.4) as axes:
        for which, colour in ((alike & ~copies, ORANGE), (alike & copies, GREEN)):
            for chosen, fill in ((which & joined, colour), (which & ~joined, "none")):
                style = {"markersize": 3, "color": colour, "markerfacecolor": fill, "markeredgewidth": 0.6}
                axes.plot(pairs.resemblance[chosen], pairs.specificity[chosen], "o", **style)
        axes.axvline(0.5, color=INK, linewidth=0.8, linestyle="--")
        axes.text(0.505, 0.415, "a bar of 0.5 on resemblance\nwould join everything to the right", size=8)
        axes.text(0.265, 0.475, "templates: one section of two countries", color=ORANGE)
        axes.text(1.0, 1.03, "copies: one section in July and in October", color=GREEN, ha="right")
        axes.set(xlim=(0.25, 1.02), ylim=(0.4, 1.08))
        axes.set_xlabel(
            "resemblance: the share of the text that both contain\nfilled dots: near-duplicates; circles: kept apart"
        )
        axes.set_ylabel("specificity: how rare the shared part is,\ncompared with the part that differs")
    return {
        "copies": int((alike & copies).sum()),
        "copies joined": int((alike & copies & joined).sum()),
        "templates": int((alike & ~copies).sum()),
        "templates joined": int((alike & ~copies & joined).sum()),
        "templates above 0.5": int((alike & ~copies & (pairs.resemblance >= 0.5)).sum()),
    }


def page(path: Path) -> None:
    """Draw a page of the demonstration, as the engine ranks beside what ndd_search shows."""
    with (
        gzip.open(FACTBOOK, "rt", encoding="utf-8") as file,
        TemporaryDirectory() as folder,
        ndd.Index.open(Path(folder) / "index", text=["title", "text"]) as index,
    ):
        index.add(map(json.loads, file))
        before, after = (index.search(QUERY, size=PLACES, mode=mode)["hits"]["hits"] for mode in ("annotate", "group"))
    place_of = {hit["_id"]: place for place, hit in enumerate(before, 1)}
    with picture(path, 0.25 * (PLACES + 1)) as axes:
        axes.axis("off")
        axes.set(xlim=(0, 2), ylim=(PLACES + 0.5, -0.5))
        for left, right, title, hits in (
            (0.0, 0.91, "as the engine ranks", before),
            (0.99, 2.0, "with ndd_search", after),
        ):
            axes.text(left, 0, title, weight="bold", va="center")
            for place, hit in enumerate(hits, 1):
                copies = hit.get("inner_hits", {}).get("near_duplicates", {}).get("hits", {}).get("hits", [])
                of = place_of[hit["fields"]["ndd.duplicate_of"][0]] if "fields" in hit else None
                note = f"= {of}" if of else f"+ {len(copies)}" if copies else ""
                axes.text(left, place, f"{place}  {hit['_source']['title']}", color=ORANGE if of else INK, va="center")
                axes.text(right, place, note, color=ORANGE if of else GREEN, va="center", ha="right")


def duration(microseconds: float) -> str:
    """Return a time with two digits: 25 µs, 4.3 ms, 0.14 s."""
    if microseconds < 1000:
        return f"{microseconds:.0f} µs"
    return f"{microseconds / 1000:.2g} ms" if microseconds < 1e5 else f"{microseconds / 1e6:.2g} s"


def draw(found: dict[str, Any], folder: Path) -> None:
    """Draw the pictures of measured figures."""
    kinds(found["kinds"], folder / "page_kinds.svg")
    sizes(found["sizes"], folder / "page_sizes.svg")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="it gets the pictures")
    folder = parser.parse_args().folder
    page(folder / "page.svg")
    print(decision(folder / "decision.svg"))


if __name__ == "__main__":
    main()
