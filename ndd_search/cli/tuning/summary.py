"""Effects and recommendation as rows, sentences and facts, for the terminal, JSON and the HTML page alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

from ndd_search.cli.tuning.answers import WORDS
from ndd_search.cli.tuning.belief import CREDIBLE, Tuning
from ndd_search.cli.tuning.compare_settings import BARS, SETTINGS, Pair, samples
from ndd_search.core.matching.decision import PLAIN
from ndd_search.core.presets import Preset
from ndd_search.core.text.printable import safe
from ndd_search.reports.html import document, html_table
from ndd_search.reports.plots import bars
from ndd_search.reports.side_by_side import as_html, side_by_side

HEADS = ("min_similarity", "hits hidden", "of all hits", "on pages", "right, by the answers")
_SAMPLES = 16  # pairs of the HTML page
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


def page(tuning: Tuning, name: str) -> str:
    """Return the HTML page. name: of the index."""
    return document(f"Which setting suits {safe(name)}", "".join(_parts(tuning)))


def cells(line: dict[str, object]) -> list[str]:
    """Return a row of `effects` as text: setting, hits hidden, share of all hits, pages, share decided rightly."""
    name = f"{line['setting']}" + (f" ({line['name']})" if line["name"] else "")
    right = line["right"]
    interval = "" if not isinstance(right, list) else f"{right[1]:.0%} ({right[0]:.0%}–{right[2]:.0%})"
    return [name, f"{line['hidden']:,}", f"{line['share']:.1%}", f"{line['pages']:,}", interval]


def described(pair: Pair) -> str:
    """Return the similarity of a pair and what "auto" does with it, in words."""
    decision = "joins them" if pair.joined else "shows them apart"
    return f'resemblance {pair.similarity:.2f}, "auto" {decision}'


def _parts(tuning: Tuning) -> Iterator[str]:
    pages, answered = tuning.pages, tuning.recommendation().interval is not None
    yield f"<p>{escape(overview(tuning))}</p>"
    yield "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict(tuning))
    columns = len(HEADS) if answered else len(HEADS) - 1
    yield "<h2>What each setting would do</h2>"
    yield html_table(HEADS[:columns], [cells(line)[:columns] for line in effects(tuning)])
    if not pages.pairs:
        return
    names, hits = ('joined by "auto"', "shown apart"), pages.nearest[:, ::-1].tolist()
    steps = [(f"{bar:.2f}", counts) for bar, counts in zip(BARS.tolist(), hits, strict=True)]
    yield bars("Similarity of hits to the most similar hit above", steps, names=names)
    yield "<h2>Pairs</h2><p>Words that only one of the two has are marked.</p>"
    yield "".join(_pair(pair, tuning) for pair in _chosen(tuning))


def _chosen(tuning: Tuning) -> Sequence[Pair]:
    """Return the pairs with an answer, and others spread over the similarities."""
    asked = [pair for pair in tuning.pages.pairs if pair.key in tuning.answers]
    others = [pair for pair in samples(tuning.pages, _SAMPLES) if pair.key not in tuning.answers]
    return sorted(asked + others, key=lambda pair: -pair.similarity)


def _pair(pair: Pair, tuning: Tuning) -> str:
    caption = [described(pair)]
    if pair.key in tuning.answers:
        caption.append(f"answer: {WORDS[tuning.answers[pair.key]]}")
    caption += [f"{safe(pair.first.id)} and {safe(pair.second.id)}", f"query: {safe(pair.query)[:200]}"]
    sides = side_by_side(pair.first.text, pair.second.text)
    texts = "".join(f"<p dir=auto>{as_html(side)}</p>" for side in sides)
    return f"<div class=pair><b>{escape('; '.join(caption))}</b>{texts}</div>"
