"""For which machines packages are built, and how each tool calls them."""

from __future__ import annotations

import platform
from dataclasses import dataclass

GLIBC = "2.28"
"""The oldest C library that packages run on: that of Debian 10 and of RHEL 8, and the tag manylinux_2_28."""


@dataclass(frozen=True)
class Machine:
    """A kind of processor."""

    name: str
    """As `uname -m` has it."""
    debian: str
    """As dpkg has it."""
    elf: str
    """As the head of an ELF file has it."""
    loader: str
    """The program that loads programs."""

    @property
    def triple(self) -> str:
        """As Rust has it."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def wheel_tag(self) -> str:
        """As pip has it."""
        return f"manylinux_{GLIBC.replace('.', '_')}_{self.name}"


MACHINES = {
    machine.name: machine
    for machine in [
        Machine("x86_64", "amd64", "EM_X86_64", "/lib64/ld-linux-x86-64.so.2"),
        Machine("aarch64", "arm64", "EM_AARCH64", "/lib/ld-linux-aarch64.so.1"),
    ]
}


def this_machine() -> str:
    """The machine at hand."""
    return platform.machine()
