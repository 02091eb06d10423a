"""Floods of ranks that wait for something else: which ways to carry messages end them, in what time, and how far ranks
grow.

Every MPI carries each flood over Tidegate, with the bound BOUND, and over all that it can use instead. The others have
LIMIT_FACTOR times as long as Tidegate took; one that does not end by then, or is killed, is not run in later rounds.
Times are medians over the rounds.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from harness import mpi as mpis
from harness import pressure
from harness.mpi import Fabric, Mpi
from harness.pressure import Flood, Outcome

BOUND = "16M"
END_SECONDS = 60
"""How long Tidegate may take."""
LIMIT_FACTOR, START_SECONDS = 4, 2
"""How many times as long as Tidegate the others may take, beyond what it takes to start."""
PAUSE_MS = 500
"""How long a rank that is flooded by blocking sends waits. (Others wait until all sends have been started.)"""
GOAL = 1.5
"""How many times as long as the fastest that ends a flood Tidegate may take."""

FLOODS = [
    *(Flood("flood", "order", senders, 200_000 // senders, 1024, "blocking") for senders in (1, 2, 6)),
    *(Flood("flood", "order", senders, 200_000 // senders, 1024) for senders in (1, 2, 6)),
    Flood("before", "order", 1, 40_000, 1024),
    Flood("before", "reverse", 1, 20_000, 1024),
    Flood("flood", "probe", 2, 50_000, 1024),
    *(Flood("flood", "wildcard", 2, count, length)
      for count, length in ((100_000, 0), (100_000, 40), (100_000, 1024), (50_000, 2048), (50_000, 3072), (4_000, 65_536))),
    Flood("everybody", "order", 4, 10_000, 1024),
]
QUICK = [FLOODS[1], FLOODS[6]]


@dataclass
class Samples:
    """What was measured of one flood with one MPI over one fabric."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return all(outcome.seconds is not None for outcome in self.outcomes)

    def seconds(self) -> float:
        return statistics.median(outcome.seconds for outcome in self.outcomes if outcome.seconds is not None)

    def seconds_after(self) -> float:
        return statistics.median(outcome.seconds_after for outcome in self.outcomes if outcome.seconds_after is not None)

    def grown_kib(self, is_meant: Callable[[int], bool]) -> int:
        """The largest growth, in KiB, of the ranks for which `is_meant` is true."""
        return max((kib for outcome in self.outcomes for rank, kib in outcome.grown.items() if is_meant(rank)), default=0)


Results = dict[tuple[Flood, str, Fabric], Samples]


def peers(mpi: Mpi) -> list[Fabric]:
    """What an MPI can use instead of Tidegate, its default first."""
    return [fabric for fabric in (Fabric.NATIVE, Fabric.SHM, Fabric.TCP) if fabric is not Fabric.SHM or mpi.has_shm]


def reference_seconds(tidegate: Samples) -> float:
    """The time that Tidegate took; if it did not end, as much as gives the others END_SECONDS."""
    return tidegate.seconds() if tidegate.ended else END_SECONDS / LIMIT_FACTOR


def measure(rounds: int, floods: list[Flood]) -> Results:
    """Everything in turn, `rounds` times."""
    results: Results = {}
    for turn in range(rounds):
        for flood in floods:
            for name, make in mpis.WHEELS.items():
                mpi = make()
                for fabric in (Fabric.TIDEGATE, *peers(mpi)):
                    samples = results.setdefault((flood, name, fabric), Samples())
                    if not samples.ended:
                        continue
                    text = f"round {turn + 1} of {rounds}: {flood.name} with {mpi.title} over {fabric.value}"
                    print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)
                    ours = fabric is Fabric.TIDEGATE
                    timeout = END_SECONDS if ours else START_SECONDS + LIMIT_FACTOR * reference_seconds(results[flood, name, Fabric.TIDEGATE])
                    parameters = {"RX_MEMORY": BOUND} if ours else {}
                    samples.outcomes.append(pressure.run(mpi, fabric, flood, pause_ms=PAUSE_MS, timeout=timeout, **parameters))
    print("\r" + " " * 100 + "\r", end="", file=sys.stderr)
    return results


def length_text(length: int) -> str:
    return f"{length // 1024} KiB" if length >= 1024 else f"{length} B"


def label(flood: Flood) -> str:
    """A flood in words."""
    sends = "blocking" if flood.sends == "blocking" else "non-blocking"
    waits = {"flood": "", "before": "before the one waited for, ", "everybody": "everybody to everybody, "}[flood.pressure]
    how = {"order": "", "reverse": ", received in reverse", "wildcard": ", any source", "probe": ", probed"}[flood.receives]
    return f"{flood.senders} x {flood.count} x {length_text(flood.length)} {waits}{sends}{how}"


def cell(flood: Flood, samples: Samples) -> list[str]:
    """Time, time after the wait, growth of receivers and senders."""
    receivers = samples.grown_kib(flood.receives_at) / 1024
    senders = samples.grown_kib(lambda rank: flood.sends_at(rank) and not flood.receives_at(rank)) / 1024
    growth = [f"{receivers:.0f}", "" if flood.pressure == "everybody" else f"{senders:.0f}"]
    if samples.ended:
        return [f"{samples.seconds():.2f}", f"{samples.seconds_after():.2f}", *growth]
    last = samples.outcomes[-1].result
    return [f"> {LIMIT_FACTOR}x" if last.timed_out else f"fails ({last.status})", "", *growth]


def fastest(results: Results, flood: Flood, mpi: Mpi) -> float | None:
    """The time of the fastest of the others that end a flood."""
    times = [samples.seconds() for fabric in peers(mpi) if (samples := results[flood, mpi.name, fabric]).ended]
    return min(times, default=None)


def report(results: Results) -> list[str]:
    """One table for each MPI, and what was aimed at and missed."""
    lines, missed = [], []
    floods = list(dict.fromkeys(flood for flood, _, _ in results))
    for name, make in mpis.WHEELS.items():
        mpi = make()
        lines += [f"{mpi.title}: floods, FI_TIDEGATE_RX_MEMORY={BOUND}; ratio: Tidegate's time to that of the fastest other that ends; below 1.00x is better",
                  "", "| flood | over | seconds | after the wait | ratio | receiver grows, MiB | sender grows, MiB |", "|---|---|---:|---:|---:|---:|---:|"]
        for flood in floods:
            best = fastest(results, flood, mpi)
            for fabric in (Fabric.TIDEGATE, *peers(mpi)):
                samples = results[flood, name, fabric]
                ours = fabric is Fabric.TIDEGATE
                ratio = samples.seconds() / best if ours and samples.ended and best else None
                if ours and (not samples.ended or (ratio or 0) > GOAL):
                    missed.append(f"{mpi.title}, {label(flood)}: " + (f"{ratio:.2f}x" if ratio else "does not end"))
                time, after, receiver, sender = cell(flood, samples)
                title = "own shared memory" if fabric is Fabric.NATIVE else fabric.value
                lines.append(f"| {label(flood) if ours else ''} | {title} | {time} | {after} | {f'{ratio:.2f}x' if ratio else ''} | {receiver} | {sender} |")
        lines.append("")
    lines.append(f"Aimed at: no longer than {GOAL} times the fastest other that ends. " + ("Missed:" if missed else "Reached everywhere."))
    return [*lines, *(f"- {item}" for item in missed), ""]


def rows(results: Results) -> list[dict]:
    """The results for programs: everything in seconds and KiB."""
    return [{"flood": flood.name, "mpi": name, "fabric": fabric.value, "ended": samples.ended,
             "seconds": samples.seconds() if samples.ended else None, "seconds_after_wait": samples.seconds_after() if samples.ended else None,
             "receiver_grown_kib": samples.grown_kib(flood.receives_at), "sender_grown_kib": samples.grown_kib(flood.sends_at)}
            for (flood, name, fabric), samples in results.items()]
