"""The errors of ndd_search.

    NDDError                              base; args: (what, problem, remedy), printed as "what: problem; remedy"
    ├── InvalidDocument    (ValueError)   a document cannot be read or stored
    ├── InvalidSettings    (ValueError)   a file of settings cannot be read
    ├── CursorUnusable     (ValueError)   a cursor is damaged, or does not belong to this search
    │   └── CursorExpired                 the engine no longer holds the point in time of a cursor
    ├── IndexUnusable                     an index, in a folder or on a server, cannot be used
    ├── InvalidSketch      (ValueError)   a sketch is unsorted, repeats a value or leaves its range
    ├── RecipeMismatch     (ValueError)   two sketches were made by different recipes
    ├── KeyNeeded          (ValueError)   sketches of a keyed recipe are to be made without its key
    └── MissingExtra       (ImportError)  an optional dependency is not installed

The last four have other `args`, given with each class. The facts are in `args`, so every error can be pickled;
`__str__` makes the sentence. A wrong argument raises ValueError or TypeError. Errors of a search client pass unchanged.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class NDDError(Exception):
    """Base of all errors of ndd_search. args: (what it happened to, the problem, what to do)."""

    def __str__(self) -> str:
        if len(self.args) != 3:
            return super().__str__()
        what, problem, remedy = self.args
        return f"{what}: {problem}; {remedy}"


class InvalidDocument(NDDError, ValueError):
    """args: (which document, the problem, what to do)."""


class InvalidSettings(NDDError, ValueError):
    """args: (path of the file, the problem, what to do)."""


class CursorUnusable(NDDError, ValueError):
    """args: (what it happened to, the problem, what to do)."""


class CursorExpired(CursorUnusable):
    """args: (what it happened to, the problem, what to do)."""


class IndexUnusable(NDDError):
    """args: (path or name of the index, the problem, what to do)."""


class InvalidSketch(NDDError, ValueError):
    """args: (the problem,)."""

    def __str__(self) -> str:
        return f"not a sketch: {self.args[0]}; make sketches with ndd_search.sketch() and store them unchanged"


class RecipeMismatch(NDDError, ValueError):
    """args: (where the sketches are, the recipe id found there, the recipe id expected)."""

    def __str__(self) -> str:
        where, found, expected = self.args
        return (
            f"{where} holds sketches of recipe {found}, this call uses {expected}: "
            f"pass the stored recipe or sketch the documents again"
        )


class KeyNeeded(NDDError, ValueError):
    """args: (the id of the recipe,)."""

    def __str__(self) -> str:
        given = "Recipe.parse(id).with_key(key), or in a file and on the command line as in w3-k64-v4+env:NDD_KEY"
        return f"recipe {self.args[0]} has a key, which makes its sketches: give it, {given}"


class MissingExtra(NDDError, ImportError):
    """args: (the feature, the package that is missing, the extra that installs it)."""

    def __str__(self) -> str:
        feature, package, extra = self.args
        return f'{feature} needs {package}, which is not installed: pip install "ndd-search[{extra}]"'


@contextmanager
def importing(module: str, feature: str, package: str, extra: str) -> Iterator[None]:
    """Wrap the import of an optional module. Raises MissingExtra if that module itself is not installed.

    Errors of a broken installation pass unchanged, for example when the optional module lacks one of its own.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module or sys.modules.get(module) is not None:
            raise
        raise MissingExtra(feature, package, extra) from None
