"""Fill an index without the library, write into it meanwhile, and run a backfill of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ndd_search.indexing.backfill import Backfill, BackfillReport
from tests.engines.find import Engine

DYNAMIC = {"ndd": {"properties": {"sketch": {"type": "long"}, "recipe": {"type": "text"}}}}  # as the engine makes it

TEXT = "Ministers agreed on Friday to cut emissions from steel works by a third before the end of the decade."


def backfill(
    client: Any,
    index: str,
    fields: Sequence[str],
    on_progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> BackfillReport:
    return Backfill(index=index, fields=fields, **settings).run(client, on_progress)


def fill(client: Any, index: str, documents: Sequence[dict[str, Any]], **action: Any) -> None:
    """Index documents without sketches."""
    for start in range(0, len(documents), 500):
        lines = [
            line
            for document in documents[start : start + 500]
            for line in ({"index": {"_index": index, "_id": document["id"], **action}}, document)
        ]
        assert not client.bulk(body=lines)["errors"]
    client.indices.refresh(index=index)


@contextmanager
def writing(engine: Engine, index: str, write: Callable[[Any], None]) -> Iterator[None]:
    """Write from another thread while the block runs."""
    failed: list[BaseException] = []

    def run() -> None:
        with engine.client() as client:
            try:
                write(client)
            except BaseException as error:
                failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failed
