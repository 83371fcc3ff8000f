"""What can go wrong, and how it is told.

    NDDError
    ├── InvalidSketch      (ValueError)   a sketch is unsorted, repeats a value or leaves its range
    ├── RecipeMismatch     (ValueError)   two sketches were made by different recipes
    ├── InvalidDocument    (ValueError)   a document cannot be taken as it is
    ├── InvalidSettings    (ValueError)   a file of settings cannot be read
    ├── IndexUnusable                     an index, in a folder or on a server, cannot be used as it is
    └── MissingExtra       (ImportError)  an optional dependency is not installed

A plain mistake in an argument is a ValueError or TypeError. The errors of a search client pass through untouched.
Facts are in `args`, so every error pickles; the sentence is made by `__str__`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class NDDError(Exception):
    """Any error of ndd_search."""


class InvalidSketch(NDDError, ValueError):
    """args: (what is wrong with it,)."""

    def __str__(self) -> str:
        return f"not a sketch: {self.args[0]}; make sketches with ndd_search.sketch() and store them unchanged"


class RecipeMismatch(NDDError, ValueError):
    """args: (where it was found, the recipe id found there, the recipe id expected)."""

    def __str__(self) -> str:
        where, found, expected = self.args
        return (
            f"{where} holds sketches of recipe {found}, this call uses {expected}: "
            f"pass the stored recipe or sketch the documents again"
        )


class InvalidDocument(NDDError, ValueError):
    """args: (which document, what is wrong with it, what to do)."""

    def __str__(self) -> str:
        which, problem, remedy = self.args
        return f"{which}: {problem}; {remedy}"


class InvalidSettings(NDDError, ValueError):
    """args: (path, what is wrong with it, what to do)."""

    def __str__(self) -> str:
        path, problem, remedy = self.args
        return f"{path}: {problem}; {remedy}"


class IndexUnusable(NDDError):
    """args: (path, what is wrong with it, what to do)."""

    def __str__(self) -> str:
        path, problem, remedy = self.args
        return f"{path}: {problem}; {remedy}"


class MissingExtra(NDDError, ImportError):
    """args: (what was asked for, the package that is missing, the extra that brings it)."""

    def __str__(self) -> str:
        feature, package, extra = self.args
        return f'{feature} needs {package}, which is not installed: pip install "ndd-search[{extra}]"'


@contextmanager
def importing(module: str, feature: str, package: str, extra: str) -> Iterator[None]:
    """Around the import of an optional module: raises MissingExtra where that module itself is not installed.

    What a broken installation raises passes as it is: a module that the optional one needs is missing, say.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module or sys.modules.get(module) is not None:
            raise
        raise MissingExtra(feature, package, extra) from None
