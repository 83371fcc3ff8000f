"""Reads the settings of `ndd-search serve` from a file, the environment and the command line; the later one counts.

    upstream = ["https://es1:9200", "https://es2:9200"]
    listen = "0.0.0.0:9201"
    ca_certs = "/etc/ndd-search/ca.pem"

    [collapse]                            # CollapseOptions by name
    min_similarity = 0.8

    [indexes."news*"]                     # settings by pattern of index names, as in ndd_search.wrap
    text = ["title", "body"]

    [indexes."logs*"]
    enabled = false

In the environment a setting is called NDD_SERVE_ and its name: NDD_SERVE_UPSTREAM=https://es1:9200,https://es2:9200.
The text fields of indexes are NDD_SERVE_TEXT=news*:title,body;shop*:name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ndd_search.core.options import KINDS
from ndd_search.core.presets import collapse_options
from ndd_search.core.setting_checks import check_known
from ndd_search.core.setting_kinds import Kind, Text
from ndd_search.errors import InvalidSettings
from ndd_search.search.flow.client_settings import IN_FILES
from ndd_search.search.settings_file import parse_file, preset
from ndd_search.serving.proxy.proxy_settings import OWN, ProxySettings

PREFIX = "NDD_SERVE_"
TABLES = ("collapse", "indexes")
SETTINGS: dict[str, Kind] = {  # the kind of each setting that is no table
    **OWN,
    **IN_FILES,
    **dict.fromkeys(("preset", "items"), Text()),
}


def read_configuration(file: Path | None, environment: Mapping[str, str], given: Mapping[str, Any]) -> ProxySettings:
    """Return the settings. given: those of the command line, by name.

    Raises OSError, InvalidSettings for a file or variable that cannot be read, ValueError or TypeError for settings
    that do not go together.
    """
    values = {} if file is None else _of_file(file)
    for later in (_of_environment(environment), given):
        values = {**values, **{name: _merged(values.get(name), value) for name, value in later.items()}}
    if "upstream" not in values:
        raise ValueError("upstream is not set: name the engine with --upstream https://HOST:9200")
    collapse = values.pop("collapse", {})
    collapse_options(**collapse)  # raises for unknown names
    if isinstance(address := values.get("cache"), str):
        from ndd_search.plugins.redis_cache import RedisCache  # imported here: only now is the package redis needed

        values["cache"] = RedisCache(address)
    if schema := values.get("items"):
        from ndd_search.items.items import Items  # imported here: only now is rapidfuzz needed

        values["items"] = Items.read(schema)
    if name := values.pop("preset", None):
        values["preset"] = preset(name)
    return ProxySettings.of(values.pop("upstream"), {**values, **collapse})


def text_rules(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parse PATTERN:FIELD,FIELD as settings of indexes. Raises ValueError."""
    rules = {}
    for text in texts:
        pattern, colon, names = text.strip().partition(":")
        chosen = [name.strip() for name in names.split(",")]
        if not colon or not pattern or not all(chosen):
            raise ValueError(
                f"{text!r} does not say which fields to sketch: write PATTERN:FIELD,FIELD, as in news*:body"
            )
        rules[pattern] = {"text": chosen}
    return rules


def _merged(before: Any, later: Any) -> Any:
    """Return a later value; tables are merged, member by member."""
    if not isinstance(before, Mapping) or not isinstance(later, Mapping):
        return later
    return {**before, **{name: _merged(before.get(name), value) for name, value in later.items()}}


def _of_file(file: Path) -> dict[str, Any]:
    content = parse_file(file)
    try:
        check_known(content, [*SETTINGS, *TABLES], KINDS, "below [collapse]")
        for name, value in content.items():
            if name in SETTINGS:
                SETTINGS[name].check(name, value)
            elif not isinstance(value, Mapping):
                raise TypeError(f"{name} is {value!r}, not names and values: write them below [{name}]")
    except (TypeError, ValueError) as error:
        raise InvalidSettings(file, str(error), "correct it") from None
    return content


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for variable, text in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = variable.removeprefix(PREFIX).lower()
        try:
            check_known([name], [*SETTINGS, "text"])
            if name == "text":
                found["indexes"] = text_rules(filter(None, text.split(";")))
            else:
                found[name] = SETTINGS[name].read(name, text)
        except (TypeError, ValueError) as error:
            raise InvalidSettings(variable, str(error), "correct it") from None
    return found
