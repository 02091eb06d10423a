"""The program `pressure`: how it is called, what it prints, and what it took in memory, seen from outside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import process
from .memory import Residents
from .mpi import Fabric, Mpi
from .paths import ROOT

if TYPE_CHECKING:
    from .hosts import Hosts

SOURCE = ROOT / "tests" / "programs" / "pressure.c"
RANKS_BESIDE_SENDERS = {"flood": 2, "before": 1, "everybody": 0}


@dataclass(frozen=True)
class Flood:
    """How `pressure` is called: its source explains the words."""

    pressure: str
    receives: str
    senders: int
    count: int
    """Messages that each sender sends to each of those that it floods."""
    length: int
    """Of a message, in bytes."""
    sends: str = "starting"

    @property
    def ranks(self) -> int:
        return self.senders + RANKS_BESIDE_SENDERS[self.pressure]

    @property
    def name(self) -> str:
        return f"{self.pressure}-{self.receives}-{self.senders}x{self.count}x{self.length}-{self.sends}"

    @property
    def starts(self) -> int:
        """Sends that a sender has started and not completed, at the most."""
        targets = self.senders - 1 if self.pressure == "everybody" else 1
        return self.count * targets if self.sends == "starting" else 0

    def receives_at(self, rank: int) -> bool:
        return rank == 0 or self.pressure == "everybody"

    def sends_at(self, rank: int) -> bool:
        return self.pressure == "everybody" or 1 <= rank <= self.senders


@dataclass
class Outcome:
    """How a run ended."""

    result: process.Result
    seconds: float | None
    """From the first send to the last completion; `None` if it did not end well."""
    seconds_after: float | None
    """Of that, the time after what the receiver waited for had come."""
    grown: dict[int, int]
    """By how many KiB each rank's resident memory had grown at its peak, seen from outside, also if the run did not
    end."""


def run(mpi: Mpi, fabric: Fabric, flood: Flood, *, pause_ms: int, timeout: float, room_mib: int = 0,
        hosts: Hosts | None = None, beside: dict[str, str] | None = None, **parameters: str | int) -> Outcome:
    """Runs the program. `timeout` in seconds; `room_mib`: by how much a rank's address space may grow, if not 0; `hosts`:
    those among which the ranks are divided, if not this one; `parameters` are Tidegate's; `beside`: what the environment
    has beside."""
    program = mpi.compile(SOURCE)
    words = [flood.pressure, flood.receives, str(flood.count), str(flood.length), flood.sends, str(pause_ms), str(room_mib)]
    residents = Residents(program.name)
    command, environment = mpi.command(flood.ranks, [program, *words]), mpi.environment(fabric, **parameters) | (beside or {})
    if hosts:
        command = hosts.command(mpi, flood.ranks // len(hosts.names), [program, *words])
        environment |= hosts.environment(mpi)
    result = process.run(command, environment, timeout=timeout, check_segments=True, observe=residents)
    lines = [line.split() for line in result.output.splitlines()]
    before = {int(words[1]): int(words[3]) for words in lines if len(words) == 4 and words[0] == "before"}
    ended = result.status == 0 and not result.timed_out and "all as sent" in result.output
    times = next(([float(word) for word in words[1:]] for words in lines if len(words) == 3 and words[0] == "seconds"), None) if ended else None
    grown = {rank: max(resident.peak - before[rank], 0) for rank, resident in residents.ranks.items() if rank in before}
    return Outcome(result, times[0] if times else None, times[1] if times else None, grown)
