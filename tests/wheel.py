"""Check a wheel: run by the Python of an environment that holds only the wheel, with the extras embedded and cli.

A plain script, because such an environment has no pytest. It stops at the first failure.
"""

import os
import sys
import sysconfig
import tempfile
from pathlib import Path

import ndd_search
from ndd_search import native

sys.path.append(str(Path(__file__).parents[1]))  # behind site-packages, so that ndd_search comes from the wheel
from tests.examples import ROOT, run


def check() -> None:
    """Run the README's examples with the installed package, its native core and its command line."""
    site = Path(sysconfig.get_path("platlib"))
    if not Path(ndd_search.__file__).is_relative_to(site):
        raise SystemExit(f"ndd_search was imported from {ndd_search.__file__}, not from the wheel in {site}")
    if native.core is None:
        raise SystemExit(f"the wheel's native core is not in use: {native.in_use()}")
    kinds = {"python"} if os.name == "nt" else {"python", "console"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        ran = run(ROOT / "README.md", kinds)
        os.chdir(ROOT)
    print(f"{ran} examples of README.md ran with ndd_search from {site}, with {native.in_use()}")


if __name__ == "__main__":
    check()
