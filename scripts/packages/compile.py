"""Compiles program and library for packages: for an older C library, and to the same bytes wherever the sources lie."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.paths import ROOT

from .machine import GLIBC, Machine

SEPARATOR = "\x1f"
"""Stands between the compiler's options in cargo's variable, so that paths may have spaces."""


LEFT_OUT = ["RUSTFLAGS", "CARGO_BUILD_RUSTFLAGS", "CARGO_BUILD_TARGET", "SOURCE_DATE_EPOCH"]
"""Variables that compilers are not to see. Nothing compiled tells a time, and each new time would have C sources compiled anew."""


@dataclass(frozen=True)
class Products:
    """What was compiled."""

    program: Path
    library: Path


def output_of(*words: str) -> str:
    """What a command prints."""
    return subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def rustc() -> str:
    """The compiler: cargo and cargo-zigbuild take the same."""
    return os.environ.get("RUSTC", "rustc")


def cargo_home() -> Path:
    """Where cargo keeps the sources of other crates."""
    return Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))


def renamed_folders() -> dict[str, str]:
    """Folders of this machine that would get into the files by the places that panics name, and what stands for them."""
    commit = next(line.split()[1] for line in output_of(rustc(), "-vV").splitlines() if line.startswith("commit-hash"))
    sysroot = output_of(rustc(), "--print", "sysroot")
    registries = sorted((cargo_home() / "registry" / "src").glob("*"))
    return {
        str(ROOT): "/tidegate",
        **{str(folder): "/crates" for folder in registries},
        f"{sysroot}/lib/rustlib/src/rust": f"/rustc/{commit}",
    }


def commit() -> str:
    """The commit of the sources, with `-dirty` where any file is not as there; without git, as an archive of the sources says it; else `unknown`."""
    given = os.environ.get("TIDEGATE_COMMIT")
    if given:
        return given
    asked = subprocess.run(["git", "rev-parse", "--show-toplevel", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    top, _, head = asked.stdout.strip().partition("\n")
    if asked.returncode == 0 and Path(top).resolve() == ROOT.resolve():
        return head + ("-dirty" if output_of("git", "status", "--porcelain") else "")
    written = ROOT / "packaging" / "COMMIT"
    text = written.read_text().strip() if written.exists() else ""
    return "unknown" if not text or text.startswith("$") else text


def short(commit: str) -> str:
    """A commit as `tidegate --version` says it: twelve digits."""
    digits, dirty, _ = commit.partition("-dirty")
    return digits[:12] + dirty


def environment(tools: Path, work: Path) -> dict[str, str]:
    """What the compilers see. Options that the user has for own builds, such as for this machine's processor, are left out."""
    ours = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    options = [f"--remap-path-prefix={real}={shown}" for real, shown in renamed_folders().items()]
    return {
        **ours,
        "PATH": f"{tools / 'bin'}:{ours['PATH']}",
        "CARGO_ENCODED_RUSTFLAGS": SEPARATOR.join(options),
        "CARGO_TARGET_DIR": str(work / "target"),
        "CARGO_INCREMENTAL": "0",
        "TIDEGATE_COMMIT": short(commit()),
        "CARGO_ZIGBUILD_CACHE_DIR": str(work / "zigbuild"),
        "ZIG_GLOBAL_CACHE_DIR": str(work / "zig"),
    }


def compile_for(machine: Machine, tools: Path, work: Path) -> Products:
    """Compiles both. `tools`: the virtual environment with Zig; `work`: where compilers keep what they make."""
    command = ["cargo-zigbuild", "zigbuild", "--profile", "dist", "--locked", "--target", f"{machine.triple}.{GLIBC}",
               "-p", "tidegate-cli", "-p", "tidegate-ofi"]
    seen = environment(tools, work)
    subprocess.run([str(tools / "bin" / command[0]), *command[1:]], cwd=ROOT, env=seen, check=True)
    made = work / "target" / machine.triple / "dist"
    return Products(made / "tidegate", made / "libtidegate_fi.so")
