"""Print or install what an engine must know about the stored sketches: a component template.

examples:
  ndd-search template opensearch
  ndd-search template elasticsearch --put http://localhost:9200
  ndd-search template elasticsearch --put http://localhost:9200 --add-to articles
  ndd-search template opensearch --put http://localhost:9200 --index news --with-keys

A component template acts when an index is made from an index template that names it in composed_of: --add-to does that
to yours. --index adds the fields to an index that is there, without downtime.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from ndd_search.cli import DONE
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.indexes import look_up
from ndd_search.indexing.templates import ENGINES, check_mapping, component_template, composed, mapping_properties


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", choices=ENGINES, help="whose template")
    parser.add_argument("--name", default="ndd", help="of the component template (ndd)")
    parser.add_argument("--field", default="ndd", help="the object that holds the sketch (ndd)")
    parser.add_argument("--with-keys", action="store_true", help="also the keys that `duplicates` looks up")
    parser.add_argument("--put", metavar="URL", help="install it there")
    parser.add_argument("--add-to", metavar="TEMPLATE", help="an index template that shall compose it")
    parser.add_argument("--index", help="an index, alias or data stream that shall get the fields now")
    add_cluster(parser, positional=False)


def run(arguments: argparse.Namespace) -> int:
    template = component_template(arguments.field, arguments.with_keys)
    if arguments.put is None:
        if arguments.add_to or arguments.index:
            raise ValueError("--add-to and --index say what to do in a cluster: name it with --put URL")
        print(json.dumps(template, indent=2))
        return DONE
    arguments.engine = arguments.engine or arguments.family
    with connected(arguments, arguments.put) as client:
        if arguments.add_to:
            found = client.indices.get_index_template(name=arguments.add_to)["index_templates"][0]["index_template"]
            _refuse_conflict(client, arguments.add_to, arguments.field)
        indexes = look_up(client, arguments.index) if arguments.index else []
        for facts in indexes:
            _refuse(facts.name, facts.mapping, arguments.field)
        client.cluster.put_component_template(name=arguments.name, body=template)
        print(f"component template {arguments.name} is installed")
        if arguments.add_to:
            client.indices.put_index_template(name=arguments.add_to, body=composed(found, arguments.name))
            print(f"index template {arguments.add_to} composes it: indexes made from now on have the fields")
        for facts in indexes:
            fields = mapping_properties(arguments.field, arguments.with_keys)
            client.indices.put_mapping(index=facts.name, body={"properties": fields})
            print(f"index {facts.name} has the fields")
    return DONE


def _refuse_conflict(client: Any, template: str, field: str) -> None:
    """Say so before anything is changed, when the user's own template has another field of that name."""
    made = client.indices.simulate_template(name=template)["template"]
    _refuse(f"index template {template}", made.get("mappings", {}), field)


def _refuse(what: str, mapping: Mapping[str, Any], field: str) -> None:
    if field in mapping.get("properties", {}):
        for finding in check_mapping(mapping, field):
            if finding.level == "error":
                raise IndexUnusable(what, finding.what, finding.remedy)
