"""The provider below that plays others and misbehaves on purpose (tests/programs/fake, whose header says all that it can), and jobs
over hosts whose network it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import hosts as made
from . import process
from .hosts import Hosts
from .mpi import Fabric, Mpi
from .paths import PROGRAMS, PROVIDER, ROOT, newer

SOURCES = ROOT / "tests" / "programs" / "fake"
LIBRARY = PROGRAMS / "libfake-fi.so"
VIOLATION = "fake-fi: VIOLATION"
"""With this begins a line about a caller that does not keep to the rules."""


def why_not() -> str | None:
    """Why it cannot be compiled; `None` if it can, and has been."""
    if newer(LIBRARY, *SOURCES.iterdir()):
        return None
    if not shutil.which("gcc"):
        return "gcc is missing"
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    # Others may be compiling it too, or running it.
    new = LIBRARY.with_name(f"libfake.{os.getpid()}")
    words = ["gcc", "-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden", "-o", new]
    compiled = subprocess.run([*words, *sorted(SOURCES.glob("*.c"))], capture_output=True, text=True)
    if compiled.returncode != 0:
        return f"no libfabric with headers (Debian: libfabric-dev): {compiled.stderr[-300:]}"
    new.replace(LIBRARY)
    return None


def providers(hosts: Hosts, mpi: Mpi) -> Path:
    """A folder with Tidegate, this provider, and those that the MPI finds by FI_PROVIDER_PATH alone: Intel MPI's libfabric looks in
    one folder only."""
    folder = hosts.folder / "providers"
    folder.mkdir(exist_ok=True)
    for library in (PROVIDER, LIBRARY, *(mpi.own_providers.glob("*-fi.so") if mpi.own_providers else ())):
        if not (folder / library.name).exists():
            (folder / library.name).symlink_to(library)
    return folder


def environment(hosts: Hosts, mpi: Mpi, settings: dict[str, str], **parameters: str | int) -> dict[str, str]:
    """The environment of a job with these settings of the provider: `{"LIKE": "efa"}` sets FAKE_LIKE. `parameters` are Tidegate's."""
    parameters = {"FABRIC": settings.get("NAME", "fake")} | parameters
    own = {f"FAKE_{key}": value for key, value in settings.items()}
    return mpi.environment(Fabric.TIDEGATE, **parameters) | {"FI_PROVIDER_PATH": str(providers(hosts, mpi)), "FI_LOG_LEVEL": "info"} | own


def run(hosts: Hosts, mpi: Mpi, ranks_per_host: int, program: list[str | Path], settings: dict[str, str], *, timeout: float, **parameters) -> process.Result:
    """Runs a job over this provider to its end."""
    return made.run(hosts, mpi, ranks_per_host, program, environment(hosts, mpi, settings, **parameters), timeout=timeout)


def run_alone(hosts: Hosts, mpi: Mpi, program: list[str | Path], settings: dict[str, str], *, timeout: float, **parameters) -> process.Result:
    """One process of the first host, which opens the network all the same, since it is named."""
    command = hosts.on(0, [*mpi.command(1, program)])
    return process.run(command, environment(hosts, mpi, settings, **parameters) | hosts.environment(mpi), timeout=timeout)
