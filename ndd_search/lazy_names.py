"""Names of a package that are imported when they are first used.

To import numpy takes time, some rooms need an extra, and no program needs all of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def later(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package. places: the module of each name, or the name itself if it is a module."""

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{places[name]}", package)
        found = module if places[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return get
