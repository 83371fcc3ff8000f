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
# Not after an initial, the last letter of an abbreviation such as U.S., or a title before a name. The native core has
# the same rule.
_IN_WORD = "0-9A-Z_a-z\xc0-\u024f\u0370-\u052f"
_END = re.compile(
    rf"[.!?…؟۔।॥](?<!(?<![{_IN_WORD}])[A-ZÀ-ÖØ-ÞА-Я]\.)(?<!(?<![{_IN_WORD}])(?:Mr|Ms|Dr|St)\.)"
    rf"(?<!(?<![{_IN_WORD}])Mrs\.)(?<!(?<![{_IN_WORD}])Prof\.)[\"')\]»’”]*\s+|[。！？｡]|\n\s*\n"
)
_SHORT_WORD = 3  # letters
Stem = Callable[[list[str]], list[str]]


def sentences(texts: Sequence[str], language: str | None) -> list[list[list[str]]]:
    """Return the stems of each sentence of each text, in order, but for sentences without any.

    texts: from `tokens.prepare`. language: of the Snowball stemmer; None does not stem.
    """
    stems = stemmer(language) or list
    parts = [_END.split(text) for text in texts]
    words = split_each(list(chain.from_iterable(parts)), apart=False)
    found = (stems([word for word in one if len(word) > _SHORT_WORD]) for one in words)
    return [[one for one in islice(found, len(part)) if one] for part in parts]


@cache
def stemmer(language: str | None) -> Stem | None:
    """Return a function from words to their stems, None for no language. Raises ValueError for one without stemmer."""
    if language is None:
        return None
    with importing("Stemmer", f'Recipe.sentences(language="{language}")', "PyStemmer", "stem"):
        import Stemmer
    try:
        stem: Stem = Stemmer.Stemmer(language).stemWords
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise ValueError(f"there is no Snowball stemmer for {language!r}; the languages are {known}") from None
    return stem
