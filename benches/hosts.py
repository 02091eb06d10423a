#!/usr/bin/env python3
"""Compares Tidegate over libfabric's `tcp` with that `tcp` by itself, between two hosts made of namespaces (needs root).

Both run `benches/bench.c`, with a rank on each host, and take turns, round after round; each number is the median over the
rounds. Above 1.00x Tidegate is better.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from bench import SOURCE, length_text, ratio, value_text  # noqa: E402
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402

CANDIDATES: dict[str, tuple[Fabric, dict[str, str]]] = {
    "tidegate": (Fabric.TIDEGATE, {}),
    "tcp": (Fabric.TCP, {}),
}
"""What is compared, each with Tidegate's parameters."""

Samples = dict[tuple[str, int], dict[str, list[float]]]
"""By metric and length, by candidate, one value per round."""


def measure(hosts: made.Hosts, mpi: Mpi, rounds: int, seconds: float) -> Samples:
    """All candidates in turn, `rounds` times."""
    samples: Samples = {}
    program = [mpi.compile(SOURCE), "pair", str(seconds)]
    for _ in range(rounds):
        for name, (fabric, parameters) in CANDIDATES.items():
            done = made.run(hosts, mpi, 1, program, mpi.environment(fabric, **parameters), timeout=300)
            if done.status != 0:
                sys.exit(done.explain())
            for words in map(str.split, done.output.splitlines()):
                if len(words) == 3 and words[1].isdigit():
                    samples.setdefault((words[0], int(words[1])), {}).setdefault(name, []).append(float(words[2]))
    return samples


def table(mpi: Mpi, samples: Samples) -> list[str]:
    """The medians of one MPI."""
    ours, *others = CANDIDATES
    lines = [mpi.title, "", f"{'':<24}{ours:>16}" + "".join(f"{other:>26}" for other in others)]
    for (metric, length), found in samples.items():
        value = statistics.median(found[ours])
        row = f"{metric + ' ' + length_text(length):<24}{value_text(metric, value):>16}"
        for other in others:
            theirs = statistics.median(found[other])
            row += f"{value_text(metric, theirs):>18}{ratio(metric, value, theirs):>7.2f}x"
        lines.append(row)
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02, help="measuring time of each number")
    parser.add_argument("--mpi", choices=sorted(mpis.WHEELS), default="mpich")
    arguments = parser.parse_args()
    if why := made.why_not():
        sys.exit(why)
    mpi = mpis.WHEELS[arguments.mpi]()
    with made.Hosts(2) as hosts:
        print("\n".join(table(mpi, measure(hosts, mpi, arguments.rounds, arguments.seconds))))


if __name__ == "__main__":
    main()
