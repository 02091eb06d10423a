#!/usr/bin/env python3
"""Compares the orders in which receivers take long messages (FI_TIDEGATE_BULK_ORDER): many senders to one receiver, and
many to many at random, with `benches/orders.c`.

On one host, by memory and by bounce buffers; and with `--hosts` (needs root) over two hosts made of namespaces, whose line has
the rate of `--rate`. The orders take turns, round after round; each number is the median over the jobs, and behind it the
lowest and the highest. `ms` is when its sender was told that a message was there, on average over all that began at the same time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric  # noqa: E402

SOURCE = Path(__file__).with_name("orders.c")
CANDIDATES: dict[str, dict[str, str | int]] = {
    "round_robin": {"BULK_ORDER": "round_robin"},
    "one_sender": {"BULK_ORDER": "one_sender", "BULK_SENDERS": 1},
    "one_sender of 2": {"BULK_ORDER": "one_sender", "BULK_SENDERS": 2},
    "booking": {"BULK_ORDER": "booking", "BULK_SENDERS": 1},
}
"""What is compared, each with its parameters."""
KINDS = {"incast": 4, "random": 4}
"""What `benches/orders.c` does, and with how many messages of each sender."""

Runner = Callable[[list[str | Path], dict[str, str]], process.Result]


def measure(run: Runner, mpi: mpis.Mpi, lengths: list[int], jobs: int, rounds: int, beside: dict[str, str | int]) -> None:
    """The lines of a table, printed one by one."""
    program = mpi.compile(SOURCE)
    for kind, count in KINDS.items():
        for length in lengths:
            found: dict[str, list[tuple[float, float]]] = {}
            for _ in range(jobs):
                for name, parameters in CANDIDATES.items():
                    done = run([program, kind, str(length), str(count), str(rounds)], mpi.environment(Fabric.TIDEGATE, **parameters, **beside))
                    if not done.clean:
                        sys.exit(done.explain())
                    line = next(line.split() for line in done.output.splitlines() if line.startswith(kind))
                    found.setdefault(name, []).append((float(line[2]), float(line[3])))
            for name, values in found.items():
                rates, means = zip(*values, strict=True)
                rate, mean = statistics.median(rates), statistics.median(means)
                print(f"{kind:<8}{length >> 10:>6} KiB  {name:<18}{rate:>9.1f} MB/s ({min(rates):.0f}-{max(rates):.0f})"
                      f"{mean:>10.2f} ms ({min(means):.1f}-{max(means):.1f})", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", action="store_true", help="over two hosts instead of one")
    parser.add_argument("--rate", default="1gbit", help="of the line of each host, with --hosts")
    parser.add_argument("--ranks", type=int, default=8, help="in all")
    parser.add_argument("--bulk", default="auto", help="FI_TIDEGATE_BULK")
    parser.add_argument("--lengths", type=int, nargs="+", default=[256, 1024, 4096], help="of messages, in KiB")
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5, help="in each job")
    arguments = parser.parse_args()
    mpi, lengths = mpis.mpich(), [length << 10 for length in arguments.lengths]
    beside = {"BULK": arguments.bulk}
    if not arguments.hosts:
        def run(program: list[str | Path], environment: dict[str, str]) -> process.Result:
            return process.run(mpi.command(arguments.ranks, program), environment, timeout=120)
        print(f"{arguments.ranks} ranks on one host, {arguments.bulk}")
        measure(run, mpi, lengths, arguments.jobs, arguments.rounds, beside)
        return
    if why := made.why_not():
        sys.exit(why)
    with made.Hosts(2) as hosts:
        if arguments.rate != "none":
            for host in range(2):
                hosts.shell(host, f"tc qdisc add dev eth0 root tbf rate {arguments.rate} burst 256kb latency 50ms")
        def run_over(program: list[str | Path], environment: dict[str, str]) -> process.Result:
            return made.run(hosts, mpi, arguments.ranks // 2, program, environment, timeout=120)
        print(f"{arguments.ranks} ranks on two hosts, a line of {arguments.rate}")
        measure(run_over, mpi, lengths, arguments.jobs, arguments.rounds, beside)


if __name__ == "__main__":
    main()
