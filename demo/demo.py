#!/usr/bin/env python3
"""Real MPI programs over all schemes, with the same mailbox memory: what the demo shows in its first table.

Installs what is missing, builds, runs the Intel MPI Benchmarks (Intel MPI) and `slow_receiver.c` (MPICH) on 8 ranks, through
`tidegate run`, which sets up the MPI and reads the counters. The schemes take turns; times are medians over the rounds. Then come
the flood of `flood.py`, with little memory, and the job over two hosts of `two_hosts.py`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import flood  # noqa: E402
import two_hosts  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Mpi  # noqa: E402
from harness.paths import BUILD, TIDEGATE  # noqa: E402

RANKS = 8
BUFFER_SLOTS = 37
"""Slots that a message of 2 KiB takes, and with it a posted buffer."""
BUFFERS = 2
"""Such messages for which there is room per peer, under every scheme."""
SLOTS = BUFFERS * BUFFER_SLOTS
CREDIT_SLOTS = 2
SCHEMES = {
    **{scheme: ["--slots", SLOTS, "--credit-slots", CREDIT_SLOTS] for scheme in ("none", "static", "dynamic")},
    "rnr": ["--buffers", BUFFERS],
    "preposted": ["--buffers", BUFFERS],
    "growing": ["--buffers", 1, "--buffers-most", BUFFERS],
    # While messages wait to be taken out, a pool has twice as many buffers as it posts at most.
    "shared_window": ["--pool-first", BUFFERS, "--pool-most", BUFFERS * RANKS // 2],
}
"""How each is told to take that memory."""
ROUNDS = 2
LENGTH = 2048
"""Message length of the benchmarks, in bytes: the largest that goes through the mailbox."""
RUN_SECONDS = 60
MESSAGES, PAUSE_MICROSECONDS = 2000, 500
"""What each flooder sends, and how long the slow receiver looks away."""


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
    raise SystemExit(f"demo: no result in the output of the benchmark\n{output[-2000:]}")


def imb(benchmark: str, *words: str) -> Workload:
    """One of the Intel MPI Benchmarks."""
    mpi = mpis.impi()
    lengths = BUILD / "demo-length.txt"

    def program() -> list[str]:
        lengths.write_text(f"{LENGTH}\n")
        return [str(mpi.benchmarks / "IMB-MPI1"), benchmark, "-npmin", str(RANKS), "-msglen", str(lengths), "-iter", "1000", "-time", "0.4", *words]

    return Workload(f"{'Multi-' if words else ''}{benchmark} 2 KiB", mpi, program, imb_times)


def slow_receiver() -> Workload:
    """Our own program: one slow receiver among ranks that are in a hurry."""
    mpi = mpis.mpich()

    def program() -> list[str]:
        return [str(mpi.compile(ROOT / "demo" / "slow_receiver.c")), str(MESSAGES), str(PAUSE_MICROSECONDS)]

    def times(output: str) -> dict[str, float]:
        return {words[0]: float(words[1]) for words in map(str.split, output.splitlines()) if len(words) == 2}

    return Workload("Slow receiver", mpi, program, times)


WORKLOADS = [imb("PingPong"), imb("PingPong", "-multi", "1"), imb("Alltoall"), imb("Exchange"), imb("Allreduce"), slow_receiver()]


def run(workload: Workload, scheme: str, samples: Samples) -> None:
    """One run of a workload under a scheme."""
    with tempfile.TemporaryDirectory() as folder:
        counters = Path(folder) / "counters.json"
        command = [TIDEGATE, "run", "--quiet", "--scheme", scheme, *map(str, SCHEMES[scheme]), "--peers", str(RANKS),
                   "--json", counters, "--", *workload.mpi.command(RANKS, workload.program())]
        # The benchmarks are not linked with the place of their MPI: it is what an MPI's own `vars.sh` would set.
        environment = os.environ | {"LD_LIBRARY_PATH": f"{workload.mpi.prefix}/lib"}
        done = process.run(command, environment, timeout=RUN_SECONDS)
        if done.status != 0:
            sys.exit(f"demo: {workload.name} under {scheme} failed\n{done.explain()}")
        for name, seconds in workload.times(done.output).items():
            samples.times.setdefault(name, []).append(seconds)
        for name, value in json.loads(counters.read_text())["job"].items():
            samples.counters.setdefault(name, []).append(value["job"])


def measure() -> dict[tuple[str, str], Samples]:
    """Everything in turn: samples by workload and scheme."""
    results = {(workload.name, scheme): Samples() for workload in WORKLOADS for scheme in SCHEMES}
    total, done = ROUNDS * len(results), 0
    for _ in range(ROUNDS):
        for workload in WORKLOADS:
            for scheme in SCHEMES:
                done += 1
                progress(f"[{done}/{total}] {workload.name}, {scheme}")
                run(workload, scheme, results[workload.name, scheme])
    progress("")
    return results


def progress(text: str) -> None:
    """Shows what is being done: in place on a terminal, else one line for each."""
    if sys.stdout.isatty():
        print(f"\r{text:<78}", end="" if text else "\r", flush=True)
    elif text:
        print(text, flush=True)


ROWS: list[tuple[str, str, float]] = [
    ("sends that waited", "sends_delayed", 1),
    ("  they waited, ms", "delay_ns", 1e-6),
    ("refused by a full mailbox", "mailbox_full", 1),
    ("mailbox slots used, peak", "mailbox_peak_slots", 1),
    ("credit packets", "credit_packets", 1),
    ("found no posted buffer", "refusals", 1),
    ("  tried again", "retries", 1),
    ("buffers added", "buffers_added", 1),
    ("pool below its limit", "limit_events", 1),
    ("credits piggybacked", "credits_piggybacked", 1),
    ("unexpected KiB, peak", "unexpected_peak_bytes", 1 / 1024),
]
"""Counters in the table: label, name, scale."""


def number(value: float) -> str:
    """A number as narrow as it is readable."""
    return f"{value:,.1f}" if value < 100 and value != int(value) else f"{value:,.0f}"


def table(results: dict[tuple[str, str], Samples]) -> list[str]:
    """The one table."""
    labels = {"time": "time, us", "flood": "flooding the slow one, ms", "beside": "  exchanges beside it, ms", "pairs": "fast pairs, ms"}
    names = [[*scheme.split("_"), ""][:2] for scheme in SCHEMES]
    lines = [f"{'':<50}" + "".join(f"{name[part]:>11}" for name in names) for part in range(2)] + ["-" * (50 + 11 * len(SCHEMES))]
    for workload in WORKLOADS:
        samples = [results[workload.name, scheme] for scheme in SCHEMES]
        head = workload.name
        for name in samples[0].times:
            scale = 1e6 if name == "time" else 1e3
            lines.append(f"{head:<22}{labels[name]:<28}" + "".join(f"{number(sample.time(name) * scale):>11}" for sample in samples))
            head = ""
        for label, name, scale in ROWS:
            values = [sample.counter(name) * scale for sample in samples]
            if any(values):
                lines.append(f"{'':<22}{label:<28}" + "".join(f"{number(value):>11}" for value in values))
        lines.append("")
    return lines


def memory(results: dict[tuple[str, str], Samples]) -> str:
    """What the schemes share: the size of a mailbox."""
    sample = results[WORKLOADS[-1].name, "none"]
    mailbox = sample.counter("mailbox_bytes") / RANKS / 1024
    extra = [results[WORKLOADS[-1].name, scheme].counter("bookkeeping_bytes") / RANKS / 1024 for scheme in SCHEMES]
    return (f"{RANKS} ranks; room for {BUFFERS} messages of 2 KiB per peer under every scheme: {mailbox:.1f} KiB of mailbox per rank; "
            f"book-keeping {', '.join(f'{value:.0f}' for value in extra)} KiB per rank.")


def main() -> None:
    """Sets up, runs, prints."""
    started = time.monotonic()
    print("Setting up: the MPIs, the build", flush=True)
    for command in ([sys.executable, str(ROOT / "scripts" / "setup.py"), "mpi"], ["make", "--no-print-directory", "-C", str(ROOT), "build"]):
        if subprocess.run(command).returncode != 0:
            sys.exit("demo: the set-up failed; the reason is above")
    print(f"Set up in {time.monotonic() - started:.0f} s. {len(WORKLOADS)} programs on {RANKS} ranks, {len(SCHEMES)} schemes, {ROUNDS} rounds", flush=True)
    results = measure()
    print()
    print("\n".join(table(results)))
    print(memory(results))
    print("A send waits when it has no credits (under `none`: when the mailbox is full; under `rnr` and `shared_window`: when no buffer is posted).\n"
          "`tidegate run` shows these counters for any MPI program.\n", flush=True)
    print("\n".join(flood.table(progress)))
    print("What finds no room in the receiver's memory stays with its sender, who waits, until the receiver wants it.\n", flush=True)
    print("\n".join(two_hosts.table(progress)))
    print(f"Done in {time.monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
