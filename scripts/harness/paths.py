"""Where things lie in the project."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
PRODUCT = Path(os.environ.get("TESTED_PRODUCT") or BUILD)
"""Where `lib` and `bin` of what is tried are: `make test` has a folder of its own, since its command is not optimised."""
LIBRARY_FOLDER = PRODUCT / "lib"
PROVIDER = LIBRARY_FOLDER / "libtidegate-fi.so"
TIDEGATE = PRODUCT / "bin" / "tidegate"
MPIS = ROOT / ".mpi"
PROMTOOL = MPIS / "promtool"
"""Prometheus' own check of metrics and alerts, where `make optional` has put it."""
REQUIREMENTS = ROOT / "scripts" / "requirements"
MPI4PY_TESTS = MPIS / "mpi4py-tests"
"""The test suite out of mpi4py's source archive."""
PROGRAMS = BUILD / "programs"
"""Our MPI programs, compiled for each MPI."""


def newer(target: Path, *sources: Path) -> bool:
    """Whether `target` exists and is at least as new as each of `sources`."""
    return target.exists() and all(target.stat().st_mtime >= source.stat().st_mtime for source in sources)


def is_root() -> bool:
    """Whether packages of the system can be installed."""
    return os.geteuid() == 0
