"""What an agent reads to answer ten questions, in tokens, with near-duplicates hidden and without.

    python -m benchmarks.agents [--answers]

The demonstration collection (sections of the CIA World Factbook, each as of July and of October 2022) is in a folder.
For each question an agent searches until ten different sections are before it, and reads the first three results in
parts of 4,000 characters, two of each at most. It calls `ndd-search agents` through the protocol's own client.

whole documents: What a tool gives that returns hits as engines do: pages of ten with their sources, nothing is left to
                 read.
copies shown:    The tools of ndd-search, with every copy in a place of its own (`--set mode=annotate`).
copies hidden:   The tools as they are.

Read: different sections among the three that were read. Tokens are those of the calls' arguments and answers, counted
by the tokenizer of WordLlama (Llama's vocabulary), which its package contains. Needs the extras `agents` and `bench`.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import mcp

import ndd_search as ndd
from benchmarks.passages import TOPICS, words_of_model
from benchmarks.real_words import FACTBOOK

QUESTIONS, DIFFERENT, READ, PARTS = TOPICS[:10], 10, 3, 2
_SHOWN = 400  # characters of an answer that are printed


@dataclass
class Work:
    """What one agent did. sections: read, per question."""

    calls: int = 0
    tokens: int = 0
    sections: list[int] = field(default_factory=list)
    said: Callable[[str], None] = print

    def note(self, name: str, arguments: Mapping[str, Any], answer: str) -> None:
        spent = tokens(json.dumps(arguments)) + tokens(answer)
        self.calls, self.tokens = self.calls + 1, self.tokens + spent
        self.said(f"  {name}({json.dumps(arguments)[1:-1]}): {spent:,} tokens\n    {answer[:_SHOWN]}")


@cache
def tokens(text: str) -> int:
    return words_of_model(text)


def whole_documents(index: ndd.Index, titles: Mapping[str, str], work: Work) -> None:
    for question in QUESTIONS:
        seen: list[str] = []
        while len({titles[id] for id in seen}) < DIFFERENT:
            hits = index.search(question, size=DIFFERENT, from_=len(seen), mode="annotate")["hits"]["hits"]
            plain = [{name: hit[name] for name in ("_id", "_score", "_source")} for hit in hits]
            work.note("search", {"query": question, "from": len(seen)}, json.dumps(plain, ensure_ascii=False))
            seen += [hit["_id"] for hit in hits]
        work.sections.append(len({titles[id] for id in seen[:READ]}))


async def tools(folder: Path, titles: Mapping[str, str], work: Work, *settings: str) -> None:
    command = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "ndd_search", "agents", str(folder), *settings]
    )
    async with mcp.Client(mcp.stdio_client(command)) as client:

        async def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            answer = await client.call_tool(name, arguments)
            work.note(name, arguments, answer.content[0].text)
            found: dict[str, Any] = answer.structured_content
            return found

        listed = [tool.model_dump(mode="json", exclude_none=True) for tool in (await client.list_tools()).tools]
        work.note("tools", {}, json.dumps(listed))
        for question in QUESTIONS:
            seen: list[str] = []
            while len({titles[id] for id in seen}) < DIFFERENT:
                page = await call("search", {"query": question} | ({"start": len(seen)} if seen else {}))
                seen += [hit["id"] for hit in page["hits"]]
            for id in seen[:READ]:
                start: int | None = 0
                for _ in range(PARTS):
                    if start is not None:
                        start = (await call("read", {"id": id} | ({"start": start} if start else {})))["next"]
            work.sections.append(len({titles[id] for id in seen[:READ]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", action="store_true", help="print every call and the beginning of its answer")
    said = print if parser.parse_args().answers else (lambda _: None)
    with gzip.open(FACTBOOK, "rt", encoding="utf-8") as file:
        documents = [json.loads(line) for line in file]
    titles = {one["id"]: one["title"] for one in documents}
    rows = {name: Work(said=said) for name in ("whole documents", "copies shown", "copies hidden")}
    with TemporaryDirectory() as folder, ndd.Index.open(Path(folder) / "factbook.idx", text=["title", "text"]) as index:
        index.add(documents)
        said("whole documents")
        whole_documents(index, titles, rows["whole documents"])
        for name, settings in (("copies shown", ("--set", "mode=annotate")), ("copies hidden", ())):
            said(name)
            asyncio.run(tools(index.path, titles, rows[name], *settings))
    print(f"| {len(QUESTIONS)} questions | calls | tokens | read |\n|---|---|---|---|")
    for name, work in rows.items():
        print(f"| {name} | {work.calls} | {work.tokens:,} | {sum(work.sections)} of {READ * len(QUESTIONS)} |")


if __name__ == "__main__":
    main()
