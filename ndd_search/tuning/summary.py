"""What there is to say about the settings and the one recommended; terminal, JSON and HTML page say the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ndd_search.matching.decision import PLAIN
from ndd_search.settings_file import StoredSettings
from ndd_search.tuning.belief import CREDIBLE, Tuning
from ndd_search.tuning.pages import SETTINGS

_SHOWN = ("auto", 1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_NAMES = {bar: name for name, bar in PLAIN.items()}


def effects(tuning: Tuning) -> list[dict[str, Any]]:
    """A line for each setting worth showing, the default first, then from strict to loose.

    setting, name: "" for a bar without one; recommended; hidden: hits; share: of all hits; pages: with a hidden hit;
    right: what a Recommendation says of it, None without answers.
    """
    pages, found = tuning.pages, tuning.recommendation()
    shown = {*_SHOWN, found.setting}
    order = [0, *range(len(SETTINGS) - 1, 0, -1)]
    return [
        {
            "setting": SETTINGS[place],
            "name": _NAMES.get(SETTINGS[place], ""),
            "recommended": place == found.place,
            "hidden": pages.hides[place],
            "share": pages.hides[place] / max(pages.hits, 1),
            "pages": pages.touches[place],
            "right": found.right[place].tolist() if found.interval else None,
        }
        for place in order
        if SETTINGS[place] in shown
    ]


def overview(tuning: Tuning) -> str:
    """What was looked at, on a line."""
    queries, hits = len(tuning.pages.pages), tuning.pages.hits
    return f"{queries:,} {'query' if queries == 1 else 'queries'}, {hits:,} hits, recipe {tuning.pages.recipe.id}"


def verdict(tuning: Tuning) -> list[str]:
    """What is recommended, and how far it can be trusted, in sentences."""
    found, pages = tuning.recommendation(), tuning.pages
    if not pages.pairs:
        return ["No hit of these pages resembles another one by 0.2 or more: every setting gives the same pages."]
    setting = f'"{found.setting}", the default' if found.setting == "auto" else f"{found.setting:g}"
    if found.interval is None:
        return [f"Recommended: min_similarity = {setting}, as nobody has answered yet (--ask 40 asks about pairs)."]
    low, mean, high = found.right[found.place]
    told = [
        f"Recommended: min_similarity = {setting}, after {found.yes} yes, {found.no} no, {found.unknown} don't know.",
        f"Of the hits that resemble another one it treats {mean:.0%} as the answers say ({low:.0%} to {high:.0%}).",
        f"The best single bar lies between {found.interval[0]:g} and {found.interval[1]:g}.",
        f"Another setting would be right about {found.doubt:.1%} more of them at most.",
        f"(Each of these with a probability of {CREDIBLE:.0%}.)",
    ]
    if not found.sure:
        told.append("That is not sure yet: more answers would help (--ask).")
    return told


def facts(tuning: Tuning) -> dict[str, Any]:
    """The same for programs."""
    found, pages = tuning.recommendation(), tuning.pages
    return {
        "recipe": pages.recipe.id,
        "queries": len(pages.pages),
        "hits": pages.hits,
        "pairs": len(pages.pairs),
        "effects": effects(tuning),
        "recommended": found.setting,
        "interval": found.interval,
        "doubt": found.doubt,
        "sure": found.sure,
        "answers": {"yes": found.yes, "no": found.no, "unknown": found.unknown},
    }


def settings_of(tuning: Tuning, about: Mapping[str, Any]) -> StoredSettings:
    """The recommended settings for a file. about: when and on what."""
    found, pages = tuning.recommendation(), tuning.pages
    tuned = {**about, "queries": len(pages.pages), "hits": pages.hits, "hidden": pages.hides[found.place]}
    tuned |= {"answers": found.yes + found.no, "sure": found.sure}
    tuned |= {"interval": list(found.interval), "doubt": round(found.doubt, 4)} if found.interval else {}
    return StoredSettings(replace(pages.options, min_similarity=found.setting), pages.recipe, tuned)
