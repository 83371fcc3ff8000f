"""Reads the settings of `ndd-search serve` from a file, the environment and the command line; the later one counts.

    upstream = ["https://es1:9200", "https://es2:9200"]
    listen = "0.0.0.0:9201"
    ca_certs = "/etc/ndd-search/ca.pem"

    [sketch]                              # text fields by pattern of index names
    "news*" = ["title", "body"]

    [collapse]                            # CollapseOptions by name
    min_similarity = 0.8

    [indexes."logs*"]                     # other settings by pattern of index names
    enabled = false

In the environment a setting is called NDD_SERVE_ and its name: NDD_SERVE_UPSTREAM=https://es1:9200,https://es2:9200.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from ndd_search.collapse_options import collapse_options
from ndd_search.errors import InvalidSettings
from ndd_search.proxy.server import ServeSettings

PREFIX = "NDD_SERVE_"

# Kinds of values, as errors name them.
_TEXT = "a text"
_WHOLE = "a whole number"
_NUMBER = "a number"
_YES = "true or false"
_LIST = "a text, or several in a list"
_RULES = "patterns of index names with text fields, as in news*:title,body"
_TABLE = "options by name"
_CACHE = "true, false, or the address of a Redis server, as in redis://HOST:6379/0"

SETTINGS = {  # the kind of each setting, by name
    **dict.fromkeys(("listen", "manage", "certificate", "key", "ca_certs", "client_cert", "client_key"), _TEXT),
    **dict.fromkeys(("recipe", "field", "settings", "search_page", "items"), _TEXT),
    **dict.fromkeys(("cursor_key", "cursor_keep_alive"), _TEXT),
    **dict.fromkeys(("workers", "stop_seconds", "max_parsed", "max_held", "max_requests"), _WHOLE),
    **dict.fromkeys(("header_seconds", "connect_seconds", "answer_seconds", "idle_seconds"), _NUMBER),
    **dict.fromkeys(("time_budget", "bypass_seconds"), _NUMBER),
    **dict.fromkeys(("insecure", "access_log", "frequency_table"), _YES),
    "cache": _CACHE,
    "upstream": _LIST,
    "sketch": _RULES,
    "collapse": _TABLE,
    "indexes": _TABLE,
}
_OF_THE_SERVER = {field.name for field in fields(ServeSettings)}
_WORDS = {"true": True, "yes": True, "1": True, "on": True, "false": False, "no": False, "0": False, "off": False}
_PYTHON: dict[str, Any] = {
    _CACHE: (bool, str),
    _TEXT: str,
    _WHOLE: int,
    _NUMBER: (int, float),
    _YES: bool,
    _RULES: dict,
    _TABLE: dict,
}


def read_configuration(file: Path | None, environment: Mapping[str, str], given: Mapping[str, Any]) -> ServeSettings:
    """Return the settings. given: those of the command line, by name.

    Raises OSError, InvalidSettings for a file or variable that cannot be read, ValueError or TypeError for settings
    that do not go together.
    """
    values = {**({} if file is None else _of_file(file)), **_of_environment(environment)}
    for name, value in given.items():
        merged = isinstance(value, dict) and isinstance(values.get(name), dict)
        values[name] = {**values[name], **value} if merged else value
    if "upstream" not in values:
        raise ValueError("upstream is not set: name the engine with --upstream https://HOST:9200")
    collapse = values.pop("collapse", {})
    collapse_options(**collapse)  # raises for unknown names
    upstream = values.pop("upstream")
    if isinstance(address := values.get("cache"), str):  # only then is the package redis needed
        values["cache"] = import_module("ndd_search.plugins.redis_cache").RedisCache(address)
    if schema := values.get("items"):
        values["items"] = import_module("ndd_search.items.schema").Items.read(schema)
    own = {name: value for name, value in values.items() if name in _OF_THE_SERVER}
    others = {name: value for name, value in values.items() if name not in _OF_THE_SERVER}
    return ServeSettings(upstream=_several(upstream), **own, proxy={**others, **collapse})


def sketch_rules(texts: Iterable[str]) -> dict[str, list[str]]:
    """Parse PATTERN:FIELD,FIELD. Raises ValueError."""
    rules = {}
    for text in texts:
        pattern, colon, names = text.strip().partition(":")
        chosen = [name.strip() for name in names.split(",")]
        if not colon or not pattern or not all(chosen):
            raise ValueError(
                f"{text!r} does not say which fields to sketch: write PATTERN:FIELD,FIELD, as in news*:body"
            )
        rules[pattern] = chosen
    return rules


def _several(given: Any) -> tuple[str, ...]:
    listed = given.split(",") if isinstance(given, str) else given
    return tuple(one.strip() for one in listed)


def _of_file(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text("utf-8"))
    except ValueError as error:
        raise InvalidSettings(file, f"it is not valid TOML: {error}", "correct it") from None
    for name, value in content.items():
        if name not in SETTINGS:
            raise InvalidSettings(file, f"it has an unknown key {name!r}", f"the keys are {', '.join(SETTINGS)}")
        kind = SETTINGS[name]
        if kind == _LIST:
            right = isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value))
        else:
            right = isinstance(value, _PYTHON[kind]) and (kind in (_YES, _CACHE) or not isinstance(value, bool))
        if not right:
            raise InvalidSettings(file, f"{name} is {value!r}", f"write {kind}")
    return content


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in SETTINGS or SETTINGS[name] == _TABLE:
            known = ", ".join(one for one, kind in SETTINGS.items() if kind != _TABLE)
            raise InvalidSettings(variable, "there is no such setting", f"the settings are {known}")
        try:
            found[name] = _read(SETTINGS[name], text)
        except (ValueError, KeyError):
            raise InvalidSettings(variable, f"it is {text!r}", f"write {SETTINGS[name]}") from None
    return found


def _read(kind: str, text: str) -> Any:
    if kind == _WHOLE:
        return int(text)
    if kind == _NUMBER:
        return float(text)
    if kind == _YES:
        return _WORDS[text.strip().lower()]
    if kind == _CACHE and "://" not in text:
        return _WORDS[text.strip().lower()]
    if kind == _RULES:
        return sketch_rules(filter(None, text.split(";")))
    return text
