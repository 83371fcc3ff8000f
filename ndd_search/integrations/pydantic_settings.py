"""The options of passages in a pydantic model, for the frameworks that are built on pydantic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ndd_search.errors import importing
from ndd_search.integrations.passage_options import PassageOptions, in_metadata, passage_options

with importing("pydantic", "a filter for LangChain or LlamaIndex", "pydantic", "langchain"):
    from pydantic import BaseModel, ConfigDict, model_validator


class PassageSettings(BaseModel):
    """Takes the options of `ndd_search.passages` by name, and checks them; fields that they name are metadata."""

    model_config = ConfigDict(extra="allow")

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...

    @model_validator(mode="after")
    def _checked(self) -> PassageSettings:
        try:
            self._options("metadata")
        except TypeError as error:  # pydantic reports errors of a value only
            raise ValueError(str(error)) from None
        return self

    def _options(self, metadata: str) -> PassageOptions:
        """As `select` takes them. metadata: where a passage has its metadata."""
        return in_metadata(passage_options(**(self.model_extra or {})), metadata)
