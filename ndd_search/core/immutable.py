"""What classes are made with, of which each search makes some thirty objects: quicker forms of two standard decorators.

A frozen dataclass sets each field by a call of `object.__setattr__`, which is three quarters of the time it takes to
create one. Here only a type checker keeps the fields immutable. Classes of settings, which callers create, are frozen
at run time as well.

The `cached_property` of Python 3.11 takes one lock for all objects of a class, in every thread. Later versions take
none, and compute a value twice if two threads read it first at the same time; so does the one here.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property", "dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True, **options: Any) -> Any:
        """Make a dataclass with the equality and hash of a frozen one, whose fields could be set."""
        return dataclasses.dataclass(eq=eq, unsafe_hash=frozen and eq, **options)


if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - the name that it replaces
        """A property whose value is computed when it is read first, and kept in the object's `__dict__`."""

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self._function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._function(instance)
            return value
