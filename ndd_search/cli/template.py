"""Prints or installs the component template with the mapping of the stored sketches: `backfill --template`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from ndd_search.cli import DONE
from ndd_search.cli.cluster import connected
from ndd_search.errors import IndexUnusable
from ndd_search.indexing.index_facts import look_up
from ndd_search.indexing.rate_and_retries import status_of
from ndd_search.search.rest.mapping import check_mapping, component_template, composed, mapping_properties


def run(arguments: argparse.Namespace) -> int:
    """Print the template; with the address of a cluster install it there, and give an index its fields."""
    template = component_template(arguments.field)
    if arguments.url is None:
        if arguments.add_to:
            raise ValueError("--add-to needs a cluster: give its address, backfill URL --template --add-to NAME")
        print(json.dumps(template, indent=2))
        return DONE
    with connected(arguments, arguments.url) as client:
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
