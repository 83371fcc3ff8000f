"""Shows the arguments that a docstring describes as "name: text" as a list, and `][` as it is."""

import re

import griffe

ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*): +(?P<text>\S.*(?:\n +.*)*)", re.MULTILINE)
CODE_OR_LINK = re.compile(r"`[^`]*`|\]\[")  # a["b"]["c"] is no link


class Lists(griffe.Extension):
    """Rewrites docstrings before they are rendered as Markdown."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring and not obj.is_module:
            text = CODE_OR_LINK.sub(lambda found: r"]\[" if found[0] == "][" else found[0], obj.docstring.value)
            obj.docstring.value = ENTRY.sub(_item, text)


def _item(entry: re.Match[str]) -> str:
    names = ", ".join(f"`{name}`" for name in entry["names"].split(", "))
    return f"\n- {names}: {' '.join(entry['text'].split())}\n"
