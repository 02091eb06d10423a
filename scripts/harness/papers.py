"""The program `tidegate-paper`, which `make` does not build."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from .paths import ROOT


def program(*, is_fast: bool = False) -> Path:
    """Builds it, unless it is there. `is_fast`: as `make papers` does, which takes minutes, for what would take hours without."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = [os.environ.get("CARGO", "cargo"), "build", "--quiet", "--locked", "-p", "tidegate-papers", *(["--release"] if is_fast else [])]
    subprocess.run(command, cwd=ROOT, check=True)
    return target / ("release" if is_fast else "debug") / "tidegate-paper"
