"""Dataclasses that only a type checker keeps immutable, for objects of which each search makes some thirty.

A frozen dataclass sets each field by a call of `object.__setattr__`, which is three quarters of the time it takes to
create one. Classes of settings, which callers create, are frozen at run time as well.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True, **options: Any) -> Any:
        """Make a dataclass with the equality and hash of a frozen one, whose fields could be set."""
        return dataclasses.dataclass(eq=eq, unsafe_hash=frozen and eq, **options)
