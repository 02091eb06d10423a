#!/usr/bin/env python3
"""Real MPI programs over all schemes, with the same mailbox memory: what the demo shows in its first table.

Installs what is missing, builds, runs the Intel MPI Benchmarks (Intel MPI) and `slow_receiver.c` (MPICH) on 8 ranks. The schemes
take turns; times are medians over the rounds. Then come the flood of `flood.py`, with little memory, and the job over two hosts of
`two_hosts.py`.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
import flood  # noqa: E402
import two_hosts  # noqa: E402
from harness.schemes import BUFFER_BYTES, RANKS, SCHEMES, Samples, imb, options, run, slow_receiver  # noqa: E402

BUFFERS = 2
"""Messages of 2 KiB for which there is room per peer, under every scheme."""
MEMORY = BUFFERS * BUFFER_BYTES * RANKS
ROUNDS = 2
WORKLOADS = [imb("PingPong"), imb("PingPong", "-multi", "1"), imb("Alltoall"), imb("Exchange"), imb("Allreduce"), slow_receiver(2000, 500)]


def measure() -> dict[tuple[str, str], Samples]:
    """Everything in turn: samples by workload and scheme."""
    results = {(workload.name, scheme): Samples() for workload in WORKLOADS for scheme in SCHEMES}
    total, done = ROUNDS * len(results), 0
    for _ in range(ROUNDS):
        for workload in WORKLOADS:
            for scheme in SCHEMES:
                done += 1
                progress(f"[{done}/{total}] {workload.name}, {scheme}")
                run(workload, options(scheme, MEMORY) or [], results[workload.name, scheme])
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
    print("A send waits when it has no credits (under `none`: when the mailbox is full; under `rnr` and `shared_window`: when no buffer is posted; under `speculative`: when the pool has no slot).\n"
          "`tidegate run` shows these counters for any MPI program.\n", flush=True)
    print("\n".join(flood.table(progress)))
    print("What finds no room in the receiver's memory stays with its sender, who waits, until the receiver wants it.\n", flush=True)
    print("\n".join(two_hosts.table(progress)))
    print(f"Done in {time.monotonic() - started:.0f} s.")


if __name__ == "__main__":
    main()
