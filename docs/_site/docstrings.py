"""Shows the arguments that a docstring describes as "name: text" as a list, and `][` and `*` as they are."""

import re

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*): +(?P<text>\S.*(?:\n +.*)*)", re.MULTILINE)
CODE_OR_MARK = re.compile(r"`[^`]*`|\]\[|\*")  # a["b"]["c"] is no link, and "news*" begins no emphasis


class Lists(griffe.Extension):
    """Rewrites docstrings before they are rendered as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring and not obj.is_module:
            obj.docstring.value = ENTRY.sub(_item, CODE_OR_MARK.sub(_literal, obj.docstring.value))


def _literal(found: re.Match[str]) -> str:
    return {"][": r"]\[", "*": r"\*"}.get(found[0], found[0])


def _item(entry: re.Match[str]) -> str:
    names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
    return f"\n- {names}: {' '.join(entry['text'].split())}\n"
