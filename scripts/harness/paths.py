"""Where things lie in the project."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LIBRARY_FOLDER = BUILD / "lib"
PROVIDER = LIBRARY_FOLDER / "libtidegate-fi.so"
TIDEGATE = BUILD / "bin" / "tidegate"
MPIS = ROOT / ".mpi"
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
