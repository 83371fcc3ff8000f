"""Extract base texts in 29 languages for labelled collections from translated manuals and programs.

    apt-get download gnome-user-docs gimp-data evolution-common nautilus-data \\
        libreoffice-help-{el,hi,km,ko,tr,vi}                        # Debian 12
    for package in *.deb; do dpkg-deb -x $package unpacked; done
    python -m benchmarks.language_collections unpacked bases        # bases/lang_a.jsonl.gz ... fresh_b.jsonl.gz

Each base goes through a generator of near-duplicates (headers, footers, advertisements, dropped sentences, typos, other
figures, templates, frames). Texts are
CC-BY-SA (GNOME), MPL (LibreOffice) and GPL (programs); they are not part of this repository.
"""

from __future__ import annotations

import argparse
import gettext
import gzip
import html
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from ndd_search.core.recipe import Recipe
from ndd_search.core.text.tokens import tokens

MANUAL = [
    "el",
    "he",
    "hi",
    "ja",
    "ko",
    "vi",
    "tr",
    "ta",
    "fa",
    "uk",
    "pl",
    "cs",
    "da",
    "it",
    "hu",
    "fi",
    "sv",
    "mr",
    "gu",
    "nl",
    "sl",
    "sr",
    "lv",
    "ca",
]
OFFICE = ["hi", "km", "ko", "tr", "vi", "el"]
PROGRAMS = ["th", "bn", "ar", "my", "km", "he"]
COLLECTIONS = {
    "lang_a": "el he hi ko th",
    "lang_b": "ja km bn ta tr my",
    "lang_c": "vi fa uk pl ar",
    "fresh_a": "cs it hu mr sr",
    "fresh_b": "da fi sv gu nl sl lv ca",
}
SCRIPTS = {  # scripts of the languages; texts in other languages are not checked for untranslated parts
    **{
        "el": "\u0370-\u03ff",
        "he": "\u0590-\u05ff",
        "hi": "\u0900-\u097f",
        "mr": "\u0900-\u097f",
        "bn": "\u0980-\u09ff",
    },
    **{"gu": "\u0a80-\u0aff", "ta": "\u0b80-\u0bff", "ja": "\u3040-\u30ff\u4e00-\u9fff"},
    **{
        "ko": "\uac00-\ud7af",
        "fa": "\u0600-\u06ff",
        "ar": "\u0600-\u06ff",
        "uk": "\u0400-\u04ff",
        "sr": "\u0400-\u04ff",
    },
    **{"km": "\u1780-\u17ff", "th": "\u0e00-\u0e7f", "my": "\u1000-\u109f"},
}
MOST = 90  # texts of a language
Paragraphs = tuple[str, str, list[str]]  # language, group, paragraphs


def manual(root: Path, languages: Sequence[str] = MANUAL) -> Iterator[Paragraphs]:
    """Yield the pages of the GNOME manual without untranslated paragraphs."""
    for language in languages:
        for path in sorted((root / f"usr/share/help/{language}/gnome-help").glob("*.page")):
            english = path.parents[2] / "C/gnome-help" / path.name
            left = set(_paragraphs(english)) if english.exists() else set()
            yield language, path.name.split("-")[0], [one for one in _paragraphs(path) if one not in left]


def office(root: Path) -> Iterator[Paragraphs]:
    """Yield every seventh page of the LibreOffice help."""
    for language in OFFICE:
        folder = root / f"usr/share/libreoffice/help/{language}/text"
        for path in sorted(folder.glob("s*/**/*.html"))[::7]:
            parts = re.findall(r"<(?:p|h1|h2|h3)\b[^>]*>(.*?)</(?:p|h1|h2|h3)>", path.read_text("utf-8"), flags=re.S)
            yield language, path.relative_to(folder).parts[0], [_plain(part) for part in parts]


def programs(root: Path) -> Iterator[Paragraphs]:
    """Yield the longer messages of programs, eight per text."""
    for language in PROGRAMS:
        for path in sorted((root / f"usr/share/locale/{language}/LC_MESSAGES").glob("*.mo")):
            with path.open("rb") as file:
                catalogue = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            long = [(key, text) for key, text in catalogue.items() if isinstance(key, str) and len(key) > 45]
            messages = [_plain(text).replace("_", "") for key, text in long if text not in ("", key) and "%" not in key]
            for start in range(0, len(messages) - 8, 8):
                yield language, path.stem, messages[start : start + 8]


def trimmed(language: str, paragraphs: list[str]) -> str | None:
    """Return the first paragraphs, up to 220 tokens (500 if tokens are characters), or None if there are too few."""
    most, least = (500, 110) if language in ("ja", "th", "km", "my") else (220, 55)
    kept: list[str] = []
    count = 0
    for paragraph in paragraphs:
        letters = sum(letter.isalpha() for letter in paragraph)
        native = len(re.findall(f"[{SCRIPTS[language]}]", paragraph)) if language in SCRIPTS else letters
        length = len(tokens(paragraph, Recipe()))
        if count + length > most:
            break
        if letters and native > letters / 2:
            kept.append(paragraph)
            count += length
    return "\n".join(kept) if count >= least else None


def _paragraphs(page: Path) -> list[str]:
    text = re.sub(r"<info>.*?</info>", "", page.read_text("utf-8"), flags=re.S)
    parts = re.findall(r"<(?:p|title)\b[^>]*>(.*?)</(?:p|title)>", text, flags=re.S)
    return [plain for plain in map(_plain, parts) if len(plain) > 1]


def _plain(part: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", part)).split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("unpacked", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    texts: dict[str, dict[str, str]] = defaultdict(dict)
    for source in (manual, office, programs):
        for language, group, paragraphs in source(arguments.unpacked):
            text = trimmed(language, paragraphs)
            if text:
                texts[language].setdefault(text, f"{group}-{language}")
    arguments.out.mkdir(exist_ok=True)
    for name, languages in COLLECTIONS.items():
        with gzip.open(arguments.out / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            for language in languages.split():
                chosen = sorted(texts[language].items())
                random.Random(3).shuffle(chosen)
                for number, (text, group) in enumerate(chosen[:MOST]):
                    row = {"id": f"{language}-{number:03d}", "text": text, "lang": language, "group": group}
                    file.write(json.dumps(row, ensure_ascii=False) + "\n")
                print(f"{name}: {language}, {min(len(chosen), MOST)} texts")


if __name__ == "__main__":
    main()
