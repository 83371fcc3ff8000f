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
    r"[.!?…؟۔।॥](?<!\b[A-ZÀ-ÖØ-ÞА-Я]\.)(?<!\b(?:Mr|Ms|Dr|St)\.)(?<!\bMrs\.)(?<!\bProf\.)[\"')\]»’”]*\s+"
    r"|[。！？｡]|\n\s*\n"
)
_SHORT_WORD = 3  # letters
_KNOWN = 1 << 17  # words


def sentences(texts: Sequence[str], language: str | None) -> list[list[list[str]]]:
    """Return the stems of each sentence of each text, in order, but for sentences without any.

    texts: from `tokens.prepare`. language: of the Snowball stemmer; None does not stem.
    """
    stems = _stems(language)
    parts = [_END.split(text) for text in texts]
    words = split_each(list(chain.from_iterable(parts)), apart=False)
    found = (list(filter(None, map(stems.__getitem__, one))) for one in words)
    return [[one for one in islice(found, len(part)) if one] for part in parts]


class _Stems(dict[str, str]):
    """The stems of words; "" for a short word. Those of the last words are kept, because stemming takes longest."""

    def __init__(self, stem: Callable[[str], str]) -> None:
        self.stem = stem

    def __missing__(self, word: str) -> str:
        if len(self) >= _KNOWN:
            self.clear()
        stem = self[word] = self.stem(word) if len(word) > _SHORT_WORD else ""
        return stem


@cache
def _stems(language: str | None) -> _Stems:
    if language is None:
        return _Stems(str)
    with importing("Stemmer", f'Recipe.sentences(language="{language}")', "PyStemmer", "stem"):
        import Stemmer
    try:
        return _Stems(Stemmer.Stemmer(language).stemWord)
    except KeyError:
        known = ", ".join(Stemmer.algorithms())
        raise ValueError(f"there is no Snowball stemmer for {language!r}; the languages are {known}") from None
