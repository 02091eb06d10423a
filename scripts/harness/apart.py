"""The program `apart`: two processes on two hosts that use the provider through libfabric itself, the system's or an MPI's."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import mpi as mpis
from . import process
from .hosts import Hosts
from .paths import LIBRARY_FOLDER, PROGRAMS, ROOT, newer

SOURCE = ROOT / "tests" / "programs" / "apart.c"
PROGRAM = PROGRAMS / "apart"


def why_not() -> str | None:
    """Why the program cannot be compiled; `None` if it can, and has been."""
    if newer(PROGRAM, SOURCE):
        return None
    if not shutil.which("gcc"):
        return "gcc is missing"
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    # Others may be compiling it too, or running it.
    new = PROGRAM.with_name(f"apart.{os.getpid()}")
    made = subprocess.run(["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", new, SOURCE, "-lfabric"], capture_output=True, text=True)
    if made.returncode != 0:
        return f"no libfabric with headers (Debian: libfabric-dev): {made.stderr[-300:]}"
    new.replace(PROGRAM)
    return None


def run(hosts: Hosts, library: str, folder: Path, *words: str | int, network: str = "tcp", providers: str = "tidegate", timeout: float = 60,
        extra: dict[str, str] | None = None) -> process.Result:
    """Runs it to its end, on the first two hosts. `library`: `system`, or `impi` for the libfabric of Intel MPI; `folder`: an
    empty one; `extra`: more of the environment."""
    environment = os.environ | {"FI_PROVIDER": providers, "FI_PROVIDER_PATH": str(LIBRARY_FOLDER), "FI_TIDEGATE_FABRIC": network, "FI_TIDEGATE_PEERS": "4"}
    if library == "impi":
        mpi = mpis.impi()
        environment |= {"LD_LIBRARY_PATH": f"{mpi.prefix}/lib", "FI_PROVIDER_PATH": hosts.environment(mpi)["FI_PROVIDER_PATH"]}
    environment |= extra or {}
    lines = [" ".join(map(str, hosts.on(host, [PROGRAM, folder, str(host), *map(str, words)]))) for host in (0, 1)]
    # Both have to end well.
    result = process.run(["sh", "-c", f"{lines[0]} & first=$!; {lines[1]}; second=$?; wait $first && exit $second"], environment, timeout=timeout)
    result.leftovers += hosts.segments()
    return result
