"""The settings of passages as a pydantic model, for the frameworks that are built on pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ndd_search.core.setting_checks import check_known
from ndd_search.errors import importing
from ndd_search.integrations.passage_options import PassageOptions, count_words, in_metadata, passage_options

with importing("pydantic", "a filter for LangChain or LlamaIndex", "pydantic", "langchain"):
    from pydantic import BaseModel, Field, model_validator


class PassageSettings(BaseModel):
    """PassageOptions, checked when they are given; fields that they name are fields of the metadata.

    count_tokens: None counts words, and characters of scripts without spaces.
    recipe:       its id; None is the default recipe.
    guards:       other CollapseOptions by name, for instance {"numbers_must_match": True}.
    """

    size: int | None = None
    max_tokens: int | None = None
    count_tokens: Callable[[str], int] | None = None
    min_similarity: float | str = "auto"
    keep: list[str | Callable[[Any], Any]] = ["score"]
    contained: bool = True
    merge: bool = False
    recipe: str | None = None
    frequency_table: bool = True
    guards: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        """Raise ValueError for an unknown option, which pydantic would leave out."""
        try:
            check_known(given if isinstance(given, Mapping) else (), cls.model_fields)
        except TypeError as error:  # pydantic reports errors of a value only
            raise ValueError(str(error)) from None
        return given

    @model_validator(mode="after")
    def _checked(self) -> PassageSettings:
        self._options("metadata")
        return self

    def _options(self, metadata: str) -> PassageOptions:
        """As `select` takes them. metadata: where a passage has its metadata."""
        given = {name: getattr(self, name) for name in PassageSettings.model_fields if name != "guards"}
        options = passage_options(**{**given, "count_tokens": self.count_tokens or count_words, **self.guards})
        return in_metadata(options, metadata)
