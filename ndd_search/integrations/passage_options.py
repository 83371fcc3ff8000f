"""How passages are chosen, and where in a passage its parts are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ndd_search.core.document_fields import text_of, value_of
from ndd_search.core.matching.frequency_table import FrequencyTable, table_of
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import CollapseChanges, collapse_options, preset_of
from ndd_search.core.recipe import Recipe
from ndd_search.core.setting_values import Whole, YesNo, check_known, checked, setting
from ndd_search.core.text.tokens import words_at
from ndd_search.search.index_rules import OfRecipe

Where = str | Callable[[Any], Any]

TEXT_FIELDS = ("text", "content", "page_content")
_USUAL_SIZE = 10
# options that do not apply to passages
_UNUSED = ("mode", "window", "max_window", "max_per_group", "total", "members", "facets")


def count_words(text: str) -> int:
    """Return the number of words of a text, the default count of tokens.

    Words are those that a sketch is made of: runs of letters and digits, and each character of a script without spaces,
    such as Japanese. Where more runs of characters are divided by white space, as in a row of signs, these count.
    """
    return max(len(text.split()), len(words_at(text)))


@checked
@dataclass(frozen=True, kw_only=True)
class PassageOptions:
    """How passages are chosen.

    size:         most passages to show, at least 0; None shows 10, or with max_tokens as many as fit.
    max_tokens:   most tokens of all shown passages together. A passage that does not fit is passed over for later ones
                  that do. None is no limit.
    count_tokens: text -> number of tokens; by default words, and characters of scripts without spaces.
    contained:    whether texts decide what is hidden: a passage that a longer one holds is listed under that one, and a
                  near-duplicate that adds something is shown, unless min_similarity is a number, or `keep`, group_by or
                  max_per decides which is shown.
    merge:        make overlapping passages of one document one passage.
    recipe:       how texts are sketched, and of which stored sketches are used; or its id.
    frequency_table: as in `ndd_search.collapse`: True, False or a FrequencyTable.
    collapse:     which pairs are near-duplicates, and which of them is shown.
    """

    size: int | None = setting(Whole(0), None)
    max_tokens: int | None = setting(Whole(0), None)
    count_tokens: Callable[[str], int] = count_words
    contained: bool = setting(YesNo(), True)
    merge: bool = setting(YesNo(), False)
    recipe: Recipe = setting(OfRecipe(Recipe()), Recipe())
    frequency_table: FrequencyTable | bool = True
    collapse: CollapseOptions = field(default_factory=CollapseOptions)

    def __post_init__(self) -> None:
        if not callable(self.count_tokens):
            raise TypeError(f"count_tokens must be a callable that takes a text, got {self.count_tokens!r}")
        table_of(self.frequency_table)

    @property
    def most(self) -> float:
        """The most passages to show."""
        if self.size is None:
            return _USUAL_SIZE if self.max_tokens is None else float("inf")
        return self.size

    @property
    def reads_texts(self) -> bool:
        """Whether texts decide what a near-duplicate adds: no bar, `keep` or limit of the user's decides it."""
        chosen = self.collapse
        return self.contained and chosen.min_similarity == "auto" and chosen.keep == ("score",) and not self.limits

    @property
    def limits(self) -> bool:
        """Whether a field decides which passages stand together: another member of a group may break the limit."""
        return bool(self.collapse.group_by or self.collapse.max_per)


def passage_options(base: PassageOptions | None = None, **changes: Any) -> PassageOptions:
    """`base` (the defaults when None) with some settings changed, those of CollapseOptions by their own names."""
    if base is not None and not isinstance(base, PassageOptions):
        raise TypeError(f"options must be PassageOptions, got {base!r}")
    if (kind := changes.get("preset")) is not None:
        changes = {"recipe": preset_of(kind).recipe, **changes}
    if unused := [name for name in _UNUSED if name in changes]:
        raise TypeError(f"{unused[0]} does not apply to passages: all of them are examined, one of each group is shown")
    check_known(changes, OPTIONS)
    ours = {name: value for name, value in changes.items() if name in _OWN}
    others = {name: value for name, value in changes.items() if name not in _OWN}
    chosen = replace(base or _DEFAULT, **ours) if ours else base or _DEFAULT
    return replace(chosen, collapse=collapse_options(chosen.collapse, **others)) if others else chosen


_DEFAULT = PassageOptions()
_OWN = tuple(option.name for option in fields(PassageOptions))
OPTIONS = (*_OWN, *(name for name in CollapseChanges.__annotations__ if name not in _UNUSED))


@dataclass(frozen=True, kw_only=True)
class Fields:
    """Where in a passage something is: a field, dotted for one inside another, or a callable that is given the passage.

    text:     None looks for text, content and page_content.
    id, source: listed for a passage that is not shown, under the one that stands for it.
    document: which document a passage was cut from. start: of its first character in that document, counted from 0.
    stored:   {"sketch": [...], "recipe": "..."} as `ndd_search.sketch_fields` writes it; of another recipe, or
              malformed, it is made anew from the text.
    """

    text: Where | None = None
    id: Where = "id"
    source: Where = "source"
    document: Where = "document"
    start: Where = "start"
    stored: Where = "ndd"

    def text_of(self, hit: Any) -> str | None:
        """The text of a passage, None where it has none."""
        if isinstance(hit, str) and not callable(self.text):
            return hit
        for where in TEXT_FIELDS if self.text is None else (self.text,):
            if (found := read(hit, where)) is not None:
                return found if isinstance(found, str) or callable(where) else text_of(hit, [where])
        return None


def read(hit: Any, where: Where) -> Any:
    """What a passage has there, None where it has nothing; a text has nothing but itself."""
    if callable(where):
        return where(hit)
    return None if isinstance(hit, str) else value_of(hit, where)


def in_metadata(options: PassageOptions, path: str) -> PassageOptions:
    """Return the options with a path before each field that they name."""
    chosen = options.collapse
    keep = tuple(one.replace(":", f":{path}.", 1) if isinstance(one, str) else one for one in chosen.keep)
    moved: dict[str, Any] = {
        name: tuple(f"{path}.{one}" for one in getattr(chosen, name)) for name in ("group_by", "origins", "max_per")
    }
    moved["guards"] = [re.sub("^(same|within):", lambda found: f"{found[0]}{path}.", one) for one in chosen.guards]
    return replace(options, collapse=replace(chosen, keep=keep, **moved))
