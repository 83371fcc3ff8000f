"""The options of passages in a pydantic model, for the frameworks that are built on pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ndd_search.core.document_fields import value_of
from ndd_search.errors import importing
from ndd_search.integrations.passage_options import OPTIONS, PassageOptions, in_metadata, passage_options

with importing("pydantic", "a filter for LangChain or LlamaIndex", "pydantic", "langchain"):
    from pydantic import BaseModel, Field, create_model, model_validator


class _Settings(BaseModel):
    """Takes the options of `ndd_search.passages` by name, and checks them; fields that they name are metadata."""

    if TYPE_CHECKING:

        def __init__(self, **options: Any) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _known(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            try:
                passage_options(
                    **{one: given[one] for one in given if not (one in cls._beside() or given[one] is None)}
                )
            except TypeError as error:  # pydantic reports errors of a value only
                raise ValueError(str(error)) from None
        return given

    @classmethod
    def _beside(cls) -> set[str]:
        """The settings of a filter that are no options of passages."""
        return {*cls.model_fields, "class_name"}.difference(OPTIONS)

    def _named(self, setting: str, path: str) -> str | Callable[[Any], Any]:
        """Return where metadata is: a path, by which a field that somebody named is told if nothing is there."""
        return path if setting in self.model_fields_set else lambda one: value_of(one, path)

    def _options(self, metadata: str) -> PassageOptions:
        """As `select` takes them. metadata: where a passage has its metadata."""
        given = {name: value for name in OPTIONS if (value := getattr(self, name)) is not None}
        return in_metadata(passage_options(**given), metadata)


if TYPE_CHECKING:
    PassageSettings = _Settings
else:
    PassageSettings = create_model(
        "PassageSettings",
        __base__=_Settings,
        **{name: (Any, Field(None, description=f"{name} of ndd_search.passages")) for name in OPTIONS},
    )
