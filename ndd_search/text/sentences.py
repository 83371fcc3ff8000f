"""Sentences as Smith described them (2008), "Near-duplicate detection".

As published: natural sentences, lower case, Snowball stems, words of three letters or fewer and punctuation dropped,
each sentence one number. Ours: how sentences are told apart (below), and one space between the stems, in their order.
In scripts without spaces a word is whatever stands between separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from ndd_search.errors import importing
from ndd_search.text.tokens import clean, split

# After a full stop and what closes with it, if white space follows; after an ideographic one; at an empty line.
_END = re.compile(r"(?<=[.!?…؟۔।॥])[\"')\]»’”]*\s+|(?<=[。！？｡])|\n\s*\n")
_SHORT_WORD = 3  # letters


def sentences(text: str, language: str | None) -> Iterator[list[str]]:
    """The stems of each sentence that has any, in order.

    text: prepared. language: of the Snowball stemmer, None leaves words as they are.
    """
    stem = _stemmer(language)
    for sentence in _END.split(text):
        words = [word for word in split(clean([sentence], apart=False).points) if len(word) > _SHORT_WORD]
        if words:
            yield stem(words)


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
        raise ValueError(f"there is no Snowball stemmer for {language!r}; there is one for {known}") from None
    return stemmer
