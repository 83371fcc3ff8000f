"""Effects and recommendation as rows, sentences and facts, for the terminal, JSON and the HTML page alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.cli.tuning.belief import CREDIBLE, Tuning
from ndd_search.cli.tuning.pages import SETTINGS
from ndd_search.core.matching.decision import PLAIN
from ndd_search.core.presets import Preset

_SHOWN = ("auto", 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_NAMES = {bar: name for name, bar in PLAIN.items()}


def effects(tuning: Tuning) -> list[dict[str, Any]]:
    """Return a row for each setting shown, the default first, then from strict to loose.

    Keys: setting; name, "" for a bar without one; recommended; hidden, in hits; share of all hits; pages with a hidden
    hit; right, as in Recommendation, None without answers.
    """
    pages, advice = tuning.pages, tuning.recommendation()
    shown = {*_SHOWN, advice.setting}
    order = [0, *range(len(SETTINGS) - 1, 0, -1)]
    return [
        {
            "setting": SETTINGS[place],
            "name": _NAMES.get(SETTINGS[place], ""),
            "recommended": place == advice.place,
            "hidden": pages.hides[place],
            "share": pages.hides[place] / max(pages.hits, 1),
            "pages": pages.touches[place],
            "right": advice.right[place].tolist() if advice.interval else None,
        }
        for place in order
        if SETTINGS[place] in shown
    ]


def overview(tuning: Tuning) -> str:
    """Return the numbers of queries and hits, and the recipe, on one line."""
    queries, hits = len(tuning.pages.pages), tuning.pages.hits
    return f"{queries:,} {'query' if queries == 1 else 'queries'}, {hits:,} hits, recipe {tuning.pages.recipe.id}"


def verdict(tuning: Tuning) -> list[str]:
    """Return the recommendation and its uncertainty, in sentences."""
    advice, pages = tuning.recommendation(), tuning.pages
    if not pages.pairs:
        return ["No hit of these pages resembles another hit by 0.2 or more: every setting gives the same pages."]
    setting = f'"{advice.setting}", the default' if advice.setting == "auto" else f"{advice.setting:g}"
    if advice.interval is None:
        return [f"Recommended: min_similarity = {setting}, no pair has an answer yet (--ask 40 asks about pairs)."]
    low, mean, high = advice.right[advice.place]
    answers = f"{advice.yes} yes, {advice.no} no, {advice.unknown} don't know"
    sentences = [
        f"Recommended: min_similarity = {setting}, after {answers}.",
        f"It decides {mean:.0%} of the hits that resemble another hit as your answers do ({low:.0%} to {high:.0%}).",
        f"The best single bar lies between {advice.interval[0]:g} and {advice.interval[1]:g}.",
        f"Another setting would decide at most {advice.doubt:.1%} more of these hits that way.",
        f"(Each statement holds with a probability of {CREDIBLE:.0%}.)",
    ]
    if not advice.sure:
        sentences.append("The recommendation is not sure yet: more answers would help (--ask).")
    return sentences


def facts(tuning: Tuning) -> dict[str, Any]:
    """Return all figures, for JSON."""
    advice, pages = tuning.recommendation(), tuning.pages
    return {
        "recipe": pages.recipe.id,
        "queries": len(pages.pages),
        "hits": pages.hits,
        "pairs": len(pages.pairs),
        "effects": effects(tuning),
        "recommended": advice.setting,
        "interval": advice.interval,
        "doubt": advice.doubt,
        "sure": advice.sure,
        "answers": {"yes": advice.yes, "no": advice.no, "unknown": advice.unknown},
    }


def settings_of(tuning: Tuning, about: Mapping[str, Any]) -> Preset:
    """Return the recommended settings for a file. about: facts stored with them, such as the date and the index."""
    advice, pages = tuning.recommendation(), tuning.pages
    tuned = {**about, "queries": len(pages.pages), "hits": pages.hits, "hidden": pages.hides[advice.place]}
    tuned |= {"answers": advice.yes + advice.no, "sure": advice.sure}
    tuned |= {"interval": list(advice.interval), "doubt": round(advice.doubt, 4)} if advice.interval else {}
    return Preset(replace(pages.options, min_similarity=advice.setting), pages.recipe, tuned)
