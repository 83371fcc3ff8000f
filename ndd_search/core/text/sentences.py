"""Split a text into sentences of stems, after Smith (2008), "Near-duplicate detection".

As published: natural sentences, lower case, Snowball stems; words of three letters or fewer and punctuation are
dropped; each sentence is one number. Our additions: the rule for sentence ends (_END), and the stems are joined by one
space, in order. In scripts without spaces a word is the run of characters between two separators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from ndd_search.errors import importing

# After a full stop and closing quotes or brackets, if white space follows; after an ideographic one; at an empty line.
# Not after an initial, the last letter of an abbreviation such as U.S., or a title before a name. All begin with one
# class of characters, which `re` looks for three times as fast as for alternatives.
_END = re.compile(
    r"[.!?…؟۔।॥。！？｡\n](?:(?<=[。！？｡])|(?<=\n)\s*\n|(?<![\n。！？｡])(?<!(?<!\w)[A-ZÀ-ÖØ-ÞА-Я]\.)"
    r"(?<!(?<!\w)(?:Mr|Ms|Dr|St)\.)(?<!(?<!\w)Mrs\.)(?<!(?<!\w)Prof\.)[\"')\]»’”]*\s+)"
)
SHORT_WORD = 3  # letters, as in words_calls.h
_MOST_WORDS, _LONG_WORD = 1 << 17, 64  # that are kept with their stems, and letters of one that is not

Stem = Callable[[list[str]], list[str]]


class Stems(dict[str, str]):
    """The stem of each word that is asked for; those of the last words are kept."""

    def __init__(self, stem: Stem) -> None:
        super().__init__()
        self._stem = stem

    def __missing__(self, word: str) -> str:
        stem = self._stem([word])[0]
        if len(word) < _LONG_WORD:
            if len(self) >= _MOST_WORDS:
                self.clear()
            self[word] = stem
        return stem


def sentences(text: str) -> list[str]:
    """Return the sentences of a prepared text, some of which may hold no word."""
    return _END.split(text)


@cache
def stems_of(language: str | None) -> Stems:
    """Return the stems of a language; None: the words themselves. Raises ValueError for one without stemmer."""
    return Stems(stemmer(language) or list)


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
