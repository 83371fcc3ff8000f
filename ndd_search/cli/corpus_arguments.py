"""What the actions of ndd-search corpus read of their arguments and print, on one machine and on a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ndd_search.cli.output import PAGE, tell, warn
from ndd_search.core.options import CollapseOptions
from ndd_search.core.presets import collapse_options
from ndd_search.core.setting_values import Kind, Whole
from ndd_search.core.text.printable import many
from ndd_search.corpus.collection_pairs import BUDGET, Effort
from ndd_search.corpus.document_batches import Report
from ndd_search.errors import InvalidDocument

ADDRESSES = ("http://", "https://")
SETTINGS: dict[str, Kind] = {  # that all actions have
    "guards": PAGE["guards"],
    "preset": PAGE["preset"],
    "budget": Whole(1),  # documents that are met for one document at most
}


def is_first_run(arguments: argparse.Namespace) -> bool:
    """Whether nothing is known yet: --save will write the file that --against names. It is told."""
    against, save = (Path(name).resolve() for name in (arguments.against, arguments.save or ""))
    is_first = against == save and "://" not in arguments.against and not save.exists()
    if is_first:
        warn(f"{arguments.against} does not exist yet: nothing is known before this run, which writes it")
    return is_first


def fields_of_command(arguments: argparse.Namespace) -> list[str]:
    """The fields of documents whose values a command keeps."""
    fields = [*options_of(arguments).document_fields, *getattr(arguments, "fields", [])]
    return list(dict.fromkeys([*fields, *([arguments.url] if arguments.action == "hosts" else [])]))


def check_fields(arguments: argparse.Namespace, has_value: Callable[[str], bool]) -> None:
    """Raise InvalidDocument for a field that an option names and no document has; a few new ones may lack any.

    has_value: whether a document has a value in a field.
    """
    for name in fields_of_command(arguments) if arguments.action != "new" else ():
        if not has_value(name):
            what = f"no document has a value in the field {name!r}, which an option names"
            raise InvalidDocument(", ".join(arguments.sources), what, "check its name")


def options_of(arguments: argparse.Namespace) -> CollapseOptions:
    """The options of a search that --set gives."""
    return collapse_options(**{name: value for name, value in arguments.set if name != "budget"})


def settings_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of a search that all actions have."""
    settings = {name: value for name, value in arguments.set if name in SETTINGS}
    return {**settings, "min_similarity": arguments.min_similarity}


def sentence_of(facts: dict[str, int]) -> str:
    """A sentence about groups."""
    count = facts["near_duplicates"]
    copies = "1 is a near-duplicate" if count == 1 else f"{count:,} are near-duplicates"
    return f"{many(facts['documents'], 'document')} in {many(facts['groups'], 'group')}; {copies} of another one"


def tell_hosts(
    arguments: argparse.Namespace, report: Report, without: int, documents: int, pairs: int, mirrors: int
) -> None:
    """Print what was found about hosts. without: documents without a host."""
    if without:
        report(f"{many(without, 'document')} left out, whose {arguments.url!r} names no host")
    if arguments.out:
        sentence = f"{many(pairs, 'pair')} of hosts with the same pages, {many(mirrors, 'mirror')}"
        tell(arguments, {"documents": documents, "pairs": pairs, "mirrors": mirrors}, sentence)


def tell_new(arguments: argparse.Namespace, documents: int, new: int) -> None:
    """Print how many documents are new."""
    tell(arguments, {"documents": documents, "new": new}, f"{new:,} of {many(documents, 'document')} are new")


def tell_cut(effort: Effort) -> None:
    """Warn if the budget left documents out."""
    if effort.cut:
        warn(
            f"{many(effort.cut, 'document')} not met because others had used up their budget, so pairs may be missed: "
            f"raise it, --set budget={2 * BUDGET}"
        )


def parts_of(name: str) -> tuple[str, str]:
    """Split URL/INDEX. Raises ValueError."""
    parts = urlsplit(name)
    prefix, _, index = parts.path.rstrip("/").rpartition("/")
    if not index:
        raise ValueError(f"{name} names no index: expected http[s]://[USER:PASSWORD@]HOST[:PORT]/INDEX")
    return parts._replace(path=prefix, query="", fragment="").geturl(), index
