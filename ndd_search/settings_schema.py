"""The JSON Schema of settings files, made from `CollapseOptions`: editors check and complete a file with it."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ndd_search.collapse_options import CollapseOptions
from ndd_search.recipe import Recipe
from ndd_search.settings_file import VERSION

# Ranges, which the types of the fields do not express. The tests compare them with the checks of CollapseOptions.
_LIMITS: Mapping[str, Mapping[str, Any]] = {
    "min_similarity": {
        "anyOf": [
            {"enum": ["auto", "identical", "high", "moderate"]},
            {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        ]
    },
    "window": {"minimum": 1},
    "max_window": {"minimum": 1},
    "max_per_group": {"minimum": 1},
    "keep": {
        "items": {"type": "string", "pattern": r"^(score|longest|(longest|newest|oldest):.+|preferred:[^=]+=.+)$"}
    },
    "min_shingles": {"minimum": 0},
    "min_length_ratio": {"minimum": 0, "maximum": 1},
    "must_match": {"items": {"type": "string"}},
    "group_by": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "max_per": {"additionalProperties": {"type": "integer", "minimum": 1}},
    "facets": {"items": {"type": "string"}},
    "max_seconds_apart": {"minimum": 0},
}
_PLAIN = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a settings file, in TOML or JSON.

    It does not express that window is at most max_window; reading the file checks that.
    """
    hints = get_type_hints(CollapseOptions)
    described = _descriptions(CollapseOptions)
    together = {"time_field": ["max_seconds_apart"], "max_seconds_apart": ["time_field"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of ndd-search",
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": VERSION, "description": "The version of this format."},
            "recipe": {
                "type": "string",
                "pattern": rf"^[wcls]\d+-k\d+-v{Recipe.version}(-[a-z0-9]+)*$",
                "examples": [Recipe().id],
                "description": "The recipe of the sketches that the settings were tuned for.",
            },
            "collapse": {
                "type": "object",
                "description": "How the hits of a request are collapsed.",
                "additionalProperties": False,
                "dependentRequired": together,
                "properties": {
                    option.name: _property(option, hints[option.name], described[option.name])
                    for option in fields(CollapseOptions)
                },
            },
            "indexes": {
                "type": "object",
                "description": "Other settings for the indexes of a pattern. The most specific pattern wins.",
                "propertyNames": {"pattern": r"^[^?\[\],/\\\s]+$"},
                "additionalProperties": _index_rule(),
            },
            "tuned": {"type": "object", "description": "How the settings were found; informational only."},
        },
    }


def _index_rule() -> dict[str, Any]:
    options = {one.name: {"$ref": f"#/properties/collapse/properties/{one.name}"} for one in fields(CollapseOptions)}
    own = {
        "enabled": {
            "type": "boolean",
            "default": True,
            "description": "Whether searches of these indexes are collapsed.",
        },
        "recipe": {"$ref": "#/properties/recipe"},
        "field": {"type": "string", "minLength": 1, "description": "The object that holds the sketches."},
    }
    return {"type": "object", "additionalProperties": False, "properties": {**own, **options}}


def _property(option: Field[Any], hint: Any, description: str) -> dict[str, Any]:
    default = getattr(CollapseOptions(), option.name)
    default = list(default) if isinstance(default, tuple) else default
    limits = _LIMITS.get(option.name, {})
    kind = {} if "anyOf" in limits else _kind(hint)
    return {**kind, **limits, "default": default, "description": description}


def _kind(hint: Any) -> dict[str, Any]:
    """Return the schema of a type; callables are left out, since no file can hold one."""
    origin = get_origin(hint)
    if origin is Literal:
        return {"enum": list(get_args(hint))}
    if origin is tuple:
        return {"type": "array"}
    if origin is Mapping:
        return {"type": "object"}
    if origin in (Union, UnionType):
        kinds = [_PLAIN[each] for each in get_args(hint) if get_origin(each) is not Callable]
        return {"type": kinds[0] if len(kinds) == 1 else kinds}
    return {"type": _PLAIN[hint]}


def _descriptions(options: type) -> dict[str, str]:
    """Return what the docstring says of each field: below "name:" or "name, name:"."""
    found = {}
    entry = re.compile(r"^((?:\w+, )*\w+): +(.*(?:\n +.*)*)", re.MULTILINE)
    for names, text in entry.findall(inspect.getdoc(options) or ""):
        found.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return found
