"""What mkdocs does beside rendering the pages of docs/ as they are. The pages also read well on a code host."""

import posixpath
import re
from argparse import _SubParsersAction
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from ndd_search.cli import whole_parser

ROOT = Path(__file__).parents[2]
OUTSIDE = re.compile(r"\]\((?:\.\./)+(?P<path>[^)#]+)")  # a link to a file of the repository
BESIDE = re.compile(r"\]\((\w+\.(?:md|svg))")  # a link to a file in the folder of its page
MARKED = re.compile(r"^```(python|console) \w+$", re.MULTILINE)  # the tests read which program an example needs


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add the files of the repository that pages link to, so that these links work and are checked."""
    for page in list(files.documentation_pages()):
        for path in _outside(page.src_uri, page.content_string):
            _add(path, files, config)


def _add(path: str, files: Files, config: MkDocsConfig) -> None:
    """Add a file of the repository, and the files beside it that it links to."""
    if (ROOT / path).is_file() and not files.get_file_from_path(f"repository/{path}"):
        content = (ROOT / path).read_text("utf-8")
        files.append(File.generated(config, f"repository/{path}", content=content))
        for name in BESIDE.findall(content):
            _add(posixpath.join(posixpath.dirname(path), name), files, config)


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links at the added files, remove the marks of examples, and list the commands."""
    if page.file.src_uri.startswith("repository/"):  # its docs/ is the root of the site, one folder up
        return re.sub(r"\]\(((?:\.\./)*)docs/", r"](\1../", markdown)
    depth = page.file.src_uri.count("/")
    for path in _outside(page.file.src_uri, markdown):
        markdown = markdown.replace(f"]({'../' * (depth + 1)}{path}", f"]({'../' * depth}repository/{path}")
    if "<!-- commands -->" in markdown:
        markdown = markdown.replace("<!-- commands -->", _commands())
    return MARKED.sub(r"```\1", markdown)


def _outside(page: str, markdown: str) -> set[str]:
    """Return the paths, from the root of the repository, of links that leave docs/."""
    if page.startswith("repository/"):
        return set()
    found = set()
    for link in OUTSIDE.finditer(markdown):
        target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link[0][2:]))
        if not target.startswith("docs/"):
            found.add(target)
    return found


def _commands() -> str:
    """Return the help of every command, as it is printed."""
    (commands,) = (action for action in whole_parser()._actions if isinstance(action, _SubParsersAction))
    return "\n\n".join(f"## {name}\n\n```text\n{one.format_help()}```" for name, one in commands.choices.items())
