"""Records of several fields: which of them are the same thing, and one merged record for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndd_search.lazy_names import later

if TYPE_CHECKING:
    from ndd_search.items.fields import Category, Date, Exact, Name, Number, Place, Text, Url
    from ndd_search.items.items import Items

__all__ = ["Category", "Date", "Exact", "Items", "Name", "Number", "Place", "Text", "Url"]

if not TYPE_CHECKING:  # otherwise a type checker would accept any name
    __getattr__ = later(__name__, {name: "items" if name == "Items" else "fields" for name in __all__})
