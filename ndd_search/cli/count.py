"""Count the common values of an index, and store the table for every client of the index.

examples:
  ndd-search count http://localhost:9200 news
  ndd-search count https://USER:PASSWORD@HOST "news-*" --recipe w5-k128-v1
  ndd-search count http://localhost:9200 news --show

Name the index as searches name it: an alias and its index have a table each. Repeat the command when the index has
grown by a quarter, or from time to time. Clients read the new table within an hour.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from ndd_search.cli import DONE, NO
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import add_json, add_recipe, print_json
from ndd_search.indexing.tables import TableCount
from ndd_search.matching.frequency_table import FrequencyTable
from ndd_search.middleware.stored_table import TABLES
from ndd_search.recipe import Recipe


def configure(parser: argparse.ArgumentParser) -> None:
    add_cluster(parser)
    parser.add_argument("index", metavar="INDEX", help="an index, alias, data stream or pattern, as searches name it")
    parser.add_argument("--field", default="ndd", help="the object that holds the sketch (ndd)")
    parser.add_argument("--tables", default=TABLES, help=f"the index that holds the tables ({TABLES})")
    parser.add_argument("--show", action="store_true", help="show the stored table instead, without a count")
    add_recipe(parser)
    add_json(parser)


def run(arguments: argparse.Namespace) -> int:
    count = TableCount(
        index=arguments.index,
        recipe=arguments.recipe or Recipe(),
        field=arguments.field,
        tables=arguments.tables,
    )
    with connected(arguments, arguments.url) as client:
        if not arguments.show:
            table = count.run(client)
        elif (stored := count.stored(client)) is not None:
            table = stored.frequency_table
        else:
            print(f"{arguments.tables} holds no table of recipe {count.recipe.id} for {arguments.index}")
            return NO
    if arguments.json:
        print_json(facts(table))
    else:
        made = "" if not arguments.show or stored is None else f", counted {_day(stored.counted)}"
        print(f"{sentence(table)}{made}")
    return DONE


def facts(table: FrequencyTable) -> dict[str, object]:
    """Return the facts of a table for JSON."""
    return {
        "digest": table.digest,
        "recipe": table.recipe,
        "documents": table.documents,
        "values": len(table.values),
    }


def sentence(table: FrequencyTable) -> str:
    """Return the facts of a table as a line of text."""
    return f"table {table.digest[:8]}: {len(table.values):,} common values in {table.documents:,.0f} documents"


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(" ", "minutes")
