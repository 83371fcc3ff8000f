"""Split a text into sentences of stems, after Smith (2008), "Near-duplicate detection".

As published: natural sentences, lower case, Snowball stems; words of three letters or fewer and punctuation are
dropped; each sentence is one number. Our additions: the rule for sentence ends (_END), and the stems are joined by one
space, in order. In scripts without spaces a word is the run of characters between two separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, islice

from ndd_search.core.text.tokens import split_each
from ndd_search.errors import importing

# After a full stop and closing quotes or brackets, if white space follows; after an ideographic one; at an empty line.
# Not after an initial, the last letter of an abbreviation such as U.S., or a title before a name.
_END = re.compile(
    r"(?<=[.!?…؟۔।॥])(?<!\b[A-ZÀ-ÖØ-ÞА-Я]\.)(?<!\b(?:Mr|Ms|Dr|St)\.)(?<!\bMrs\.)(?<!\bProf\.)[\"')\]»’”]*\s+"
    r"|(?<=[。！？｡])|\n\s*\n"
)
_SHORT_WORD = 3  # letters


def sentences(texts: Sequence[str], language: str | None) -> list[list[list[str]]]:
    """Return the stems of each sentence of each text, in order, but for sentences without any.

    texts: from `tokens.prepare`. language: of the Snowball stemmer; None does not stem.
    """
    stem = _stemmer(language)
    parts = [_END.split(text) for text in texts]
    words = iter(split_each(list(chain.from_iterable(parts)), apart=False, longest_dropped=_SHORT_WORD))
    return [[stem(one) for one in islice(words, len(part)) if one] for part in parts]


@cache
def _stemmer(language: str | None) -> Callable[[list[str]], list[str]]:
    if language is None:
        return list
    with importing("Stemmer", f'Recipe.sentences(language="{language}")', "PyStemmer", "stem"):
        import Stemmer
    try:
        stemmer: Callable[[list[str]], list[str]] = Stemmer.Stemmer(language).stemWords
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise ValueError(f"there is no Snowball stemmer for {language!r}; the languages are {known}") from None
    return stemmer
