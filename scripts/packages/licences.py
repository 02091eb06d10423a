"""The licences of what is linked into program and library: whoever gets the packages is to get them, too."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections import defaultdict
from pathlib import Path

from harness.paths import ROOT

from .machine import MACHINES, Machine, this_machine

OURS = ("tidegate-cli", "tidegate-ofi")
"""The crates that packages are made of; the rest is what they use."""
FILES = ("LICENSE*", "LICENCE*", "COPYING*", "NOTICE*")
HEAD = """\
Tidegate itself is licensed under either of Apache License 2.0 or MIT, at your choice (LICENSE-APACHE, LICENSE-MIT).
Its program and its library contain the works below, and Rust's standard library (MIT or Apache-2.0, copyright the
Rust project developers). Texts that several works share are printed once.
"""


def linked(machine: Machine) -> list[dict]:
    """The other crates that end up in the files, by name."""
    return linked_and_uses(machine)[0]


def linked_and_uses(machine: Machine) -> tuple[list[dict], dict[str, list[str]]]:
    """The other crates that end up in the files, by name; and of each of these and of ours, by id, the ids of those that it uses."""
    command = [*shlex.split(os.environ.get("CARGO", "cargo")), "metadata", "--format-version", "1", "--locked", "--filter-platform", machine.triple]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [key for key, package in packages.items() if package["name"] in OURS]
    uses: dict[str, list[str]] = {}
    while waiting:
        key = waiting.pop()
        if key not in uses:
            linked = [dependency["pkg"] for dependency in nodes[key]["deps"] if any(kind["kind"] is None for kind in dependency["dep_kinds"])]
            uses[key] = linked
            waiting += linked
    others = [packages[key] for key in uses if packages[key]["source"] is not None]
    return sorted(others, key=lambda package: (package["name"], package["version"])), uses


def texts(package: dict) -> list[str]:
    """The texts that come with a crate."""
    folder = Path(package["manifest_path"]).parent
    files = sorted({path for pattern in FILES for path in folder.glob(pattern) if path.is_file()})
    return [path.read_text(errors="replace").strip() for path in files]


def third_party(machine: Machine) -> str:
    """The file `THIRD-PARTY.txt`."""
    packages = linked(machine)
    owners = defaultdict(list)
    for package in packages:
        for text in texts(package):
            owners[text].append(f"{package['name']} {package['version']}")
    lines = [HEAD, *(f"{package['name']} {package['version']}: {package['license']}" for package in packages), ""]
    for text, names in owners.items():
        lines += ["-" * 72, ", ".join(names), "-" * 72, text, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(third_party(MACHINES[this_machine()]), end="")
