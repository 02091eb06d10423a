"""The eight schemes on real programs, each told to take the same memory: what the demo and the benchmark compare.

Programs run on RANKS ranks through `tidegate run`, which sets up the MPI and reads the counters.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import mpi as mpis
from . import process
from .mpi import Mpi
from .paths import BUILD, ROOT, TIDEGATE

RANKS = 8
SLOT_BYTES = 64
BUFFER_BYTES = 37 * SLOT_BYTES
"""What a message of 2 KiB takes, and with it a posted buffer: 37 slots."""
CREDIT_SLOTS = 2
POOL_FIRST = 8
"""Buffers that a pool has at first, where the memory allows four times as many."""
SCHEMES = ("none", "static", "dynamic", "rnr", "preposted", "growing", "shared_window", "speculative")
LENGTH = 2048
"""Message length of the benchmarks, in bytes: the largest that goes through the mailbox."""
RUN_SECONDS = 60


def options(scheme: str, memory: int) -> list[str] | None:
    """Words for `tidegate run` with which a rank sets aside no more than so many bytes of memory for its senders. `None`: the
    scheme needs more (see `least`)."""
    if memory < least(scheme):
        return None
    each = memory // (BUFFER_BYTES * RANKS)
    # While messages wait to be taken out, a pool has twice as many buffers as it posts at most, and one is spare.
    pool = (memory // BUFFER_BYTES - 1) // 2
    words: list[str | int]
    if scheme in ("rnr", "preposted"):
        words = ["--buffers", each]
    elif scheme == "growing":
        words = ["--buffers", 1, "--buffers-most", each]
    elif scheme == "shared_window":
        words = ["--pool-first", max(1, min(POOL_FIRST, pool // 4)), "--pool-most", pool]
    elif scheme == "speculative":
        words = ["--pool-slots", memory // SLOT_BYTES]
    else:
        words = ["--slots", memory // (SLOT_BYTES * RANKS), "--credit-slots", CREDIT_SLOTS]
    return ["--scheme", scheme, *map(str, words)]


def least(scheme: str) -> int:
    """The fewest bytes that a scheme needs."""
    if scheme == "shared_window":
        return 3 * BUFFER_BYTES
    if scheme == "speculative":
        return SLOT_BYTES
    return BUFFER_BYTES * RANKS if scheme in ("rnr", "preposted", "growing") else 2 * CREDIT_SLOTS * SLOT_BYTES * RANKS


@dataclass(frozen=True)
class Workload:
    """A program and how to read the times it prints."""

    name: str
    mpi: Mpi
    program: Callable[[], list[str]]
    times: Callable[[str], dict[str, float]]
    """From the output: what took how long, in seconds."""


@dataclass
class Samples:
    """What was measured of one workload under one scheme."""

    times: dict[str, list[float]] = field(default_factory=dict)
    counters: dict[str, list[int]] = field(default_factory=dict)

    def time(self, name: str) -> float:
        return statistics.median(self.times[name])

    def counter(self, name: str) -> float:
        return statistics.median(self.counters.get(name, [0]))


def imb_times(output: str) -> dict[str, float]:
    """The time of the one line of results that IMB prints: the last of minimum, maximum and average where it prints all three."""
    for line in output.splitlines():
        words = line.split()
        numeric = len(words) >= 4 and all(word.replace(".", "", 1).isdigit() for word in words)
        if not numeric:
            continue
        # `-multi` puts the number of the group in front.
        start = words.index(str(LENGTH))
        numbers = words[start:]
        return {"time": float(numbers[2] if len(numbers) == 4 else numbers[3]) * 1e-6}
    raise SystemExit(f"no result in the output of the benchmark\n{output[-2000:]}")


def imb(benchmark: str, *words: str) -> Workload:
    """One of the Intel MPI Benchmarks."""
    mpi = mpis.impi()
    lengths = BUILD / "demo-length.txt"

    def program() -> list[str]:
        lengths.write_text(f"{LENGTH}\n")
        return [str(mpi.benchmarks / "IMB-MPI1"), benchmark, "-npmin", str(RANKS), "-msglen", str(lengths), "-iter", "1000", "-time", "0.4", *words]

    return Workload(f"{'Multi-' if words else ''}{benchmark} 2 KiB", mpi, program, imb_times)


def ours(name: str, source: Path, *words: int) -> Workload:
    """A program of ours, which prints lines of a name and seconds."""
    mpi = mpis.mpich()

    def program() -> list[str]:
        return [str(mpi.compile(source)), *map(str, words)]

    def times(output: str) -> dict[str, float]:
        return {words[0]: float(words[1]) for words in map(str.split, output.splitlines()) if len(words) == 2}

    return Workload(name, mpi, program, times)


def slow_receiver(messages: int, pause_microseconds: int) -> Workload:
    """One slow receiver among ranks that are in a hurry: what each flooder sends, and how long the receiver looks away."""
    return ours("Slow receiver", ROOT / "demo" / "slow_receiver.c", messages, pause_microseconds)


def run(workload: Workload, words: list[str], samples: Samples) -> None:
    """One run of a workload with these words for `tidegate run`."""
    with tempfile.TemporaryDirectory() as folder:
        counters = Path(folder) / "counters.json"
        command = [TIDEGATE, "run", "--quiet", *words, "--peers", str(RANKS), "--json", counters, "--", *workload.mpi.command(RANKS, workload.program())]
        # The benchmarks are not linked with the place of their MPI: it is what an MPI's own `vars.sh` would set.
        environment = os.environ | {"LD_LIBRARY_PATH": f"{workload.mpi.prefix}/lib"}
        done = process.run(command, environment, timeout=RUN_SECONDS)
        if done.status != 0:
            raise SystemExit(f"{workload.name} with {' '.join(words)} failed\n{done.explain()}")
        for name, seconds in workload.times(done.output).items():
            samples.times.setdefault(name, []).append(seconds)
        for name, value in json.loads(counters.read_text())["job"].items():
            samples.counters.setdefault(name, []).append(value["job"])
