"""Resident memory of the ranks of a job, measured from outside while it runs.

What is read is the kernel's own high-water mark of each process, `VmHWM` in /proc/PID/status: all resident pages,
private ones, those of files, and those in shared memory of whoever's segment it is, as far as this process has touched
them. So all memory that a receiver keeps for its senders counts, wherever it lies. The mark misses no peak between two
looks; only what a process does after the last look is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

RANK_VARIABLES = (b"PMI_RANK", b"OMPI_COMM_WORLD_RANK")
"""Where the launchers tell a process its rank."""


@dataclass
class Resident:
    """One rank, as last seen. Everything in KiB."""

    pid: int
    peak: int = 0
    """The high-water mark."""
    anonymous: int = 0
    """The most private memory seen at any look."""
    shared: int = 0
    """The most shared memory seen at any look."""


class Residents:
    """Watches the ranks that run a program; to be given to `process.run` as `observe`."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.ranks: dict[int, Resident] = {}

    def __call__(self, processes: set[int]) -> None:
        """One look at all processes of the job."""
        known = {resident.pid: rank for rank, resident in self.ranks.items()}
        for pid in processes:
            try:
                rank = known.get(pid)
                if rank is None:
                    rank = self._rank(pid)
                if rank is not None:
                    self._look(pid, self.ranks.setdefault(rank, Resident(pid)))
            except (OSError, KeyError):
                continue  # The process has just ended, or is ending: then these files or lines do not exist.

    def _rank(self, pid: int) -> int | None:
        """The rank of a process, if it runs the program. (A launcher's helper between fork and exec has the same
        environment.)"""
        if (Path(f"/proc/{pid}/comm").read_text().strip()) != self.program[:15]:
            return None
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        found = [int(value) for name, _, value in (entry.partition(b"=") for entry in environment) if name in RANK_VARIABLES]
        return found[0] if found else None

    @staticmethod
    def _look(pid: int, resident: Resident) -> None:
        figures = {}
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            figures[name] = value
        kib = {name: int(figures[name].split()[0]) for name in ("VmHWM", "RssAnon", "RssShmem")}
        # The mark goes down when a program resets it. The growth since then is what is measured, so the latest value
        # counts.
        resident.peak = kib["VmHWM"]
        resident.anonymous = max(resident.anonymous, kib["RssAnon"])
        resident.shared = max(resident.shared, kib["RssShmem"])
