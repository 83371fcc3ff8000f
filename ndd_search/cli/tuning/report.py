"""The effects of all settings, the recommendation and sample pairs as one HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from ndd_search.cli.tuning.answers import WORDS
from ndd_search.cli.tuning.belief import Tuning
from ndd_search.cli.tuning.pages import BARS, Pair, samples
from ndd_search.cli.tuning.summary import effects, overview, verdict
from ndd_search.core.text.printable import safe
from ndd_search.reports.html import document, html_table
from ndd_search.reports.plots import bars
from ndd_search.reports.side_by_side import as_html, side_by_side

_SAMPLES = 16


def page(tuning: Tuning, name: str) -> str:
    """Return the HTML page. name: of the index."""
    return document(f"Which setting suits {safe(name)}", "".join(_parts(tuning)))


def cells(line: dict[str, object]) -> list[str]:
    """Return a row of `effects` as text: setting, hits hidden, share of all hits, pages, share decided rightly."""
    name = f"{line['setting']}" + (f" ({line['name']})" if line["name"] else "")
    right = line["right"]
    interval = "" if not isinstance(right, list) else f"{right[1]:.0%} ({right[0]:.0%}–{right[2]:.0%})"
    return [name, f"{line['hidden']:,}", f"{line['share']:.1%}", f"{line['pages']:,}", interval]


HEADS = ("min_similarity", "hits hidden", "of all hits", "on pages", "right, by the answers")


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
