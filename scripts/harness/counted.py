"""A job over hosts made of namespaces (`hosts`), run by `tidegate run`, with what its ranks have counted."""

from __future__ import annotations

import json
from dataclasses import dataclass

from . import hosts as made
from . import process
from .hosts import Hosts
from .mpi import Fabric, Mpi
from .paths import LIBRARY_FOLDER, TIDEGATE


@dataclass
class Job:
    """How a job ended, and its counters."""

    result: process.Result
    ranks: list[dict[str, int]]
    """The counters of each rank."""

    def sum(self, counter: str) -> int:
        """A counter of all ranks together."""
        return sum(counters[counter] for counters in self.ranks)


def run(hosts: Hosts, mpi: Mpi, ranks_per_host: int, program: list, *options: str, extra: dict[str, str] | None = None, observe=None,
        timeout: float = 120, **parameters: str | int) -> Job:
    """Runs a job to its end; `options` are its launcher's, `extra` is added to its environment, `parameters` are Tidegate's.

    What it leaves in shared memory on any host counts as left behind if it succeeded."""
    file = hosts.folder / "report.json"
    file.unlink(missing_ok=True)
    before = [TIDEGATE, "run", "--quiet", "--provider-dir", LIBRARY_FOLDER, "--json", file, "--shared", hosts.folder]
    unset = {key: value for key, value in mpi.environment(Fabric.TIDEGATE, **parameters).items() if key not in ("FI_PROVIDER", "FI_PROVIDER_PATH")}
    # `tidegate run` finds the providers by itself.
    said = {key: value for key, value in hosts.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    command = hosts.command(mpi, ranks_per_host, program, *options, before=before)
    result = process.run(command, unset | said | (extra or {}), timeout=timeout, observe=observe)
    if result.status == 0:
        result.leftovers += hosts.segments()
    report = json.loads(file.read_text()) if file.exists() else {"processes": []}
    return Job(result, [process["counters"] for process in report["processes"]])
