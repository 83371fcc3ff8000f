"""Shows the arguments that a docstring describes as "name: text" as a list."""

import re

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*): +(?P<text>\S.*(?:\n +.*)*)", re.MULTILINE)


class Lists(griffe.Extension):
    """Rewrites docstrings before they are rendered as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring and not obj.is_module:
            obj.docstring.value = ENTRY.sub(_item, obj.docstring.value)


def _item(entry: re.Match[str]) -> str:
    names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
    return f"\n- {names}: {' '.join(entry['text'].split())}"
