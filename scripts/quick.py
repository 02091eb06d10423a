#!/usr/bin/env python3
"""What to run before each commit: format, shape, clippy and tests of the crates that have changed, and some jobs under MPICH.

It needs neither root nor packages of the system but a C compiler; MPICH and the test runner go into `.mpi/`. "Changed" is
seen against the branch that one comes from: `origin/main` or `main`, whichever there is. What is not committed counts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time

from harness.paths import BUILD, MPIS, ROOT

CARGO = os.environ.get("CARGO", "cargo")
TARGET = os.environ.get("CARGO_TARGET_DIR") or str(ROOT / "target")
PRODUCT = BUILD / "quick"
"""What the jobs run over: provider and command as the tests of the crates have them, since those are compiled anyway."""


def git(*words: str) -> list[str] | None:
    """Lines that git prints; `None` if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else None


def changed_crates() -> list[str]:
    """Crates with files that are not as they were where this branch began; all, if nobody knows where."""
    everyone = sorted(path.parent.name for path in ROOT.glob("crates/*/Cargo.toml"))
    bases = (git("merge-base", "HEAD", branch) for branch in ("origin/main", "main"))
    base = next((found[0] for found in bases if found), None)
    files = git("diff", "--name-only", base) if base else None
    if files is None:
        return everyone
    files += git("ls-files", "--others", "--exclude-standard") or []
    return [crate for crate in everyone if any(file.startswith(f"crates/{crate}/") for file in files)]


def step(what: str, *command: str, **environment: str) -> bool:
    """Runs a step; says how long it took."""
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | environment)
    print(f"quick: {what}: {'ok' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - started:.0f} s", flush=True)
    return done.returncode == 0


def lay_out() -> None:
    """Puts provider and command where the tests of whole systems look for them."""
    for source, place in (("libtidegate_fi.so", "lib/libtidegate-fi.so"), ("tidegate", "bin/tidegate")):
        target = PRODUCT / place
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f"{target.name}.new")
        shutil.copy2(f"{TARGET}/debug/{source}", new)
        new.replace(target)


def main() -> int:
    python = sys.executable
    crates = changed_crates()
    packages = [word for crate in crates for word in ("-p", f"tidegate-{crate}")]
    print(f"quick: changed crates: {', '.join(crates) or 'none'}", flush=True)
    fine = step("format and shape", "sh", "-c", f"{CARGO} fmt --all --check && {python} scripts/shape.py")
    fine = fine and step("MPICH and the test runner", python, "scripts/setup.py", "quick")
    if crates:
        fine = fine and step("clippy", CARGO, "clippy", "--quiet", *packages, "--all-targets", "--locked", "--", "-D", "warnings")
    fine = fine and step("build", CARGO, "build", "--quiet", "--locked")
    if crates:
        fine = fine and step("tests of the crates", python, "scripts/unit.py", "--quick", *crates)
    if fine:
        lay_out()
        words = [str(MPIS / "tests" / "bin" / "python"), "-m", "pytest", "-q", "tests", "--quick", "-n", "3", "--dist", "worksteal"]
        fine = step("jobs under MPICH", *words, TESTED_PRODUCT=str(PRODUCT))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
