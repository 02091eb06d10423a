"""The test programs of the crates: cargo builds them, and says where they are."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .paths import ROOT


@dataclass(frozen=True)
class Program:
    """One test program."""

    crate: Path
    """The folder in which it is run."""
    name: str
    path: Path

    @property
    def title(self) -> str:
        return f"{self.crate.name}/{self.name}"


KINDS = ("--lib", "--bins", "--tests")
"""All test programs; not the examples, which clippy looks at."""


def programs(crates: Sequence[str] = (), kinds: Sequence[str] = KINDS) -> list[Program]:
    """All test programs of the product, built, or those of some crates or kinds. The command and the provider are built with
    them."""
    packages = [word for crate in crates for word in ("-p", f"tidegate-{crate}")]
    command = [os.environ.get("CARGO", "cargo"), "test", *packages, *kinds, "--no-run", "--locked", "--message-format=json-render-diagnostics"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    made = [message for message in messages if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]]
    return sorted((Program(Path(message["manifest_path"]).parent, message["target"]["name"], Path(message["executable"])) for message in made),
                  key=lambda program: program.title)
