"""The native core, compiled by a test with flags of its own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "ndd_search" / "native" / "module.c"


def compiler() -> str | None:
    """Return the C compiler of this machine, None if there is none or the source of the core is missing."""
    return (shutil.which("cc") or shutil.which("gcc")) if SOURCE.exists() else None


def compiled(folder: Path, *flags: str, link: tuple[str, ...] = ()) -> Path:
    """Return a library of the core. flags: of the compiler. link: of the linker, which gets none of these flags."""
    command = [str(compiler()), "-fPIC", "-DPy_LIMITED_API=0x030B0000", f"-I{sysconfig.get_path('include')}"]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    made, library = folder / "module.o", folder / "_native.so"
    for step in (
        ["-c", *flags, str(SOURCE), "-o", str(made)],
        ["-shared", *link, str(made), "-o", str(library), "-lm"],
    ):
        subprocess.run([*command, *step], check=True, env=environment)
    return library


def loaded(library: Path) -> Any:
    """Return the module in a library."""
    spec = importlib.util.spec_from_file_location("_native", library)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
