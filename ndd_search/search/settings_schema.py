"""The JSON Schema of settings files, made from `CollapseOptions`: editors check and complete a file with it."""

from __future__ import annotations

import inspect
import json
import re
from typing import Any

from ndd_search.core.kinds import kinds_of
from ndd_search.core.options import KINDS, CollapseOptions
from ndd_search.core.presets import PRESETS
from ndd_search.search.index_rules import OWN, IndexRule
from ndd_search.search.settings_file import VERSION


def settings_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a settings file, in TOML or JSON.

    It does not express that window is at most max_window; reading the file checks that.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of ndd-search",
        "type": "object",
        "required": ["version"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": VERSION, "description": "The version of this format."},
            "recipe": {
                **OWN["recipe"].schema,
                "description": "The recipe of the sketches, maybe with +env:NAME of its key.",
            },
            "collapse": {
                "type": "object",
                "description": "How the hits of a request are collapsed.",
                "additionalProperties": False,
                "properties": _properties(CollapseOptions()),
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
    options = {name: {"$ref": f"#/properties/collapse/properties/{name}"} for name in KINDS}
    own = _properties(IndexRule(options=CollapseOptions()))
    preset = {"enum": [*PRESETS], "description": "Options, recipe and numbers of a kind of text."}
    return {"type": "object", "additionalProperties": False, "properties": {**own, "preset": preset, **options}}


def _properties(defaults: Any) -> dict[str, Any]:
    """Return the schema of each setting of a dataclass, by name. defaults: an object of it without changes."""
    described, found = _descriptions(type(defaults)), dict[str, Any]()
    for name, kind in kinds_of(defaults).items():
        default = getattr(defaults, name)
        known = {} if default is None else {"default": list(default) if isinstance(default, tuple) else default}
        found[name] = {**kind.schema, **known, "description": described[name]}
    return found


def _descriptions(options: type) -> dict[str, str]:
    """Return what the docstring says of each field: below "name:" or "name, name:"."""
    found = {}
    entry = re.compile(r"^((?:\w+, )*\w+): +(.*(?:\n +.*)*)", re.MULTILINE)
    for names, text in entry.findall(inspect.getdoc(options) or ""):
        found.update(dict.fromkeys(names.split(", "), " ".join(text.split())))
    return found


if __name__ == "__main__":  # the file docs/settings.schema.json
    print(json.dumps(settings_schema(), indent=2))
