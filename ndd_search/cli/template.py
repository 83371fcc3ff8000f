"""Print or install the component template with the mapping of the stored sketches.

examples:
  ndd-search template opensearch
  ndd-search template elasticsearch --put http://localhost:9200
  ndd-search template elasticsearch --put http://localhost:9200 --add-to articles
  ndd-search template opensearch --put http://localhost:9200 --index news

A component template takes effect when an index is created from an index template that names it in composed_of. --add-to
adds it to your index template. --index adds the fields to an existing index, without downtime. The component template
is named ndd, for another field (--field) ndd- and the field in lower case, so those of two fields stand side by side.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from ndd_search.cli import DONE
from ndd_search.cli.cluster import add_cluster, connected
from ndd_search.cli.output import add_shared
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.index_facts import look_up
from ndd_search.indexing.rate_and_retries import status_of
from ndd_search.search.rest.mapping import ENGINES, check_mapping, component_template, composed, mapping_properties


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", choices=ENGINES, help="the search engine")
    add_shared(parser, "--field")
    parser.add_argument("--put", metavar="URL", help="install the template on this cluster")
    parser.add_argument("--add-to", metavar="TEMPLATE", help="add the component to this index template")
    parser.add_argument("--index", help="add the fields to this index, alias or data stream")
    add_cluster(parser, positional=False)


def run(arguments: argparse.Namespace) -> int:
    template = component_template(arguments.field)
    if arguments.put is None:
        if arguments.add_to or arguments.index:
            raise ValueError("--add-to and --index need a cluster: name it with --put URL")
        print(json.dumps(template, indent=2))
        return DONE
    with connected(arguments, arguments.put, arguments.family) as client:
        if arguments.add_to:
            found = client.indices.get_index_template(name=arguments.add_to)["index_templates"][0]["index_template"]
            _refuse_conflict(client, arguments.add_to, arguments.field)
        indexes = look_up(client, arguments.index) if arguments.index else []
        for facts in indexes:
            _refuse(facts.name, facts.mapping, arguments.field)
        component = "ndd" if arguments.field == "ndd" else f"ndd-{arguments.field.lower()}"
        _refuse_to_replace(client, component, arguments.field)
        client.cluster.put_component_template(name=component, body=template)
        print(f"component template {component} is installed")
        if arguments.add_to:
            client.indices.put_index_template(name=arguments.add_to, body=composed(found, component))
            print(f"index template {arguments.add_to} composes it: new indexes will have the fields")
        for facts in indexes:
            fields = mapping_properties(arguments.field)
            client.indices.put_mapping(index=facts.name, body={"properties": fields})
            print(f"index {facts.name} has the fields")
    return DONE


def _refuse_to_replace(client: Any, component: str, field: str) -> None:
    """Raise IndexUnusable if there is a component template of that name that is not ours, or of another field."""
    try:
        (found,) = client.cluster.get_component_template(name=component)["component_templates"]
    except Exception as error:
        if status_of(error) != 404:
            raise
        return
    there = found["component_template"]
    is_ours = there.get("_meta", {}).get("managed_by") == component_template()["_meta"]["managed_by"]
    if not is_ours or field not in there["template"].get("mappings", {}).get("properties", {}):
        what = f"it was not made for the field {field} by this command, which would replace it"
        raise IndexUnusable(f"component template {component}", what, "delete it, or choose another --field")


def _refuse_conflict(client: Any, template: str, field: str) -> None:
    """Raise IndexUnusable, before anything is changed, if an index template has another field of that name."""
    simulated = client.indices.simulate_template(name=template)["template"]
    _refuse(f"index template {template}", simulated.get("mappings", {}), field)


def _refuse(what: str, mapping: Mapping[str, Any], field: str) -> None:
    if field in mapping.get("properties", {}):
        for finding in check_mapping(mapping, field):
            if finding.level == "error":
                raise IndexUnusable(what, finding.what, finding.remedy)
