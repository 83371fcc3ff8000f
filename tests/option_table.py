"""Writes docs/reference/options.md from the declarations of the options: `make reference`.

Each option is declared once, in a class: its name, kind of values and default, and a sentence in the docstring.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import OPTIONS
from ndd_search.core.recipe import Recipe
from ndd_search.search.clients.wrap import wrap
from ndd_search.search.flow.client_settings import Settings
from ndd_search.search.index_rules import IndexRule
from ndd_search.serving.proxy.proxy_settings import ProxySettings

_HEAD = """\
# All options

An option has one name and one kind of values wherever it stands: in a call (`ndd.collapse(hits, window=50)`,
`ndd.wrap`, `ndd.options`), in a search (`"ndd": {"window": 50}`), in a URL of the proxy (`ndd.window=50`), for indexes
(`indexes={"news*": {"window": 50}}`), below `[collapse]` in a file of settings, and on the command line (`--set
window=50`). In a URL and after `--set`, commas separate the entries of a list. `1..` is a whole number, 1 or more.
[Python](python.md#settings) says more of each.

"""


def sentences(text: str) -> dict[str, str]:
    """Return what a docstring says first about each setting."""
    found = re.findall(r"(?m)^ {4}(\w+(?:, \w+)*):\s+((?:.|\n {5,})+)", text)
    texts = {name: " ".join(text.split()) for names, text in found for name in names.split(", ")}
    return {name: re.split(r"(?<=[\w)`}])[.:;] ", text)[0].rstrip(".") for name, text in texts.items()}


def rows(settings: type, text: str | None = None) -> list[str]:
    """Return a row of a table for each setting of a class that has a kind. text: that tells of them, if not its own."""
    told = sentences(text or settings.__doc__ or "")
    return [
        f"| `{one.name}` | {_kind(one)} | {_shown(one)} | {told[one.name].replace('|', '')} |"
        for one in fields(settings)
        if "kind" in one.metadata
    ]


def _kind(one: Any) -> str:
    return str(one.metadata["kind"]).replace("a whole number in ", "").replace(", above 0; None for no limit", "")


def _shown(one: Any) -> str:
    default = one.default_factory() if one.default is MISSING else one.default
    value = {True: "true", False: "false"}.get(default) if isinstance(default, bool) else default
    value = value.id if isinstance(value, Recipe) else value
    return (
        "" if value is None or value in ("", (), {}) else f"`{', '.join(value) if isinstance(value, tuple) else value}`"
    )


def page() -> str:
    """Return the page."""
    head = "| {} | values | default | |\n|---|---|---|---|"
    parts = [
        head.format("option"),
        *rows(CollapseOptions),
        f"| `preset` | {OPTIONS['preset']} | | options that go together |",
    ]
    head = head.format("setting")
    rules = ["", "## Beside them, for indexes", "", head, *rows(IndexRule)]
    client = ["", "## Beside them, of a client", "", head, *rows(Settings, wrap.__doc__)]
    proxy = ["", "## Of the proxy, beside those of a client", "", head, *rows(ProxySettings)]
    return _HEAD + "\n".join([*parts, *rules, *client, *proxy]) + "\n"


if __name__ == "__main__":
    print(page(), end="")
