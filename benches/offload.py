#!/usr/bin/env python3
"""What goes on while a program computes (`FI_TIDEGATE_PROGRESS=thread`), and what chunks cost (`FI_TIDEGATE_RENDEZVOUS`): on one
host and, as root, between two made of namespaces. R §5.2 and figure 6.

Overlap: a rank receives 64 MiB, computes for as long, and does both at once. `hidden` is the share of the shorter of the two
that being together hides: 1 is all of it, 0 nothing, less than 0 that it takes longer than one after the other. Ping-pong: half
a round trip, the median of as many runs as there are rounds, and the quartiles.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric  # noqa: E402

SOURCE = Path(__file__).with_name("offload.c")
BYTES = 64 << 20
SENDERS = {"waits": "waits in MPI", "sleeps": "sleeps (a core is spare)", "computes": "computes, too"}
LENGTHS = [1, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20]
CHUNKED = {"FI_TIDEGATE_RENDEZVOUS": "chunked", "FI_TIDEGATE_CHUNK_SIZE": "128k"}
"""As R has it."""
WAYS = {
    "chunked": (Fabric.TIDEGATE, CHUNKED),
    "single": (Fabric.TIDEGATE, {"FI_TIDEGATE_RENDEZVOUS": "single"}),
}

Ways = dict[str, tuple[Fabric, dict[str, str]]]
Run = Callable[[Fabric, dict[str, str], list[str]], process.Result]


def places(stack: contextlib.ExitStack, mpi: mpis.Mpi) -> dict[str, tuple[Run, Ways]]:
    """Where two ranks run, and what each place is compared with there: this MPI without Tidegate."""
    program = mpi.compile(SOURCE)

    def here(fabric: Fabric, beside: dict[str, str], words: list[str]) -> process.Result:
        return process.run(mpi.command(2, [program, *words]), mpi.environment(fabric) | beside, timeout=300)

    provider = {"shm": (Fabric.SHM, {})} if mpi.has_shm else {"tcp": (Fabric.TCP, {})}
    found: dict[str, tuple[Run, Ways]] = {"one host": (here, {"native": (Fabric.NATIVE, {})} | provider)}
    if (why := made.why_not()) is not None:
        print(f"two hosts are left out: {why}")
        return found
    hosts = stack.enter_context(made.Hosts(2))

    def apart(fabric: Fabric, beside: dict[str, str], words: list[str]) -> process.Result:
        return made.run(hosts, mpi, 1, [program, *words], mpi.environment(fabric) | beside, timeout=300)

    return found | {"two hosts": (apart, {"tcp": (Fabric.TCP, {})})}


def numbers(result: process.Result) -> dict[str, float]:
    if result.status != 0:
        sys.exit(result.explain())
    return {" ".join(words[:-1]): float(words[-1]) for words in map(str.split, result.output.splitlines()) if len(words) in (2, 3)}


def overlap(run: Run, others: Ways, rounds: int) -> None:
    print(f"{'sender':<26}{'progress':<10}{'receive':>11}{'compute':>11}{'both':>11}{'hidden':>8}{'processor':>12}")
    candidates = {"calls": (Fabric.TIDEGATE, {}), "thread": (Fabric.TIDEGATE, {"FI_TIDEGATE_PROGRESS": "thread"})} | others
    for sender, title in SENDERS.items():
        for name, (fabric, beside) in candidates.items():
            found = numbers(run(fabric, beside, ["overlap", str(BYTES), str(rounds), sender]))
            receive, compute, both = found["receive"], found["compute"], found["both"]
            hidden = (receive + compute - both) / min(receive, compute)
            times = "".join(f"{value * 1e3:>8.1f} ms" for value in (receive, compute, both))
            print(f"{title:<26}{name:<10}{times}{hidden:>8.2f}{found['processor'] * 1e3:>9.1f} ms")
    print()


def pingpong(run: Run, others: Ways, rounds: int) -> None:
    ways, samples = WAYS | others, {}
    for _ in range(rounds):
        for name, (fabric, beside) in ways.items():
            for key, value in numbers(run(fabric, beside, ["pingpong", *map(str, LENGTHS)])).items():
                samples.setdefault(int(key.split()[1]), {}).setdefault(name, []).append(value)
    print(f"{'bytes':<10}" + "".join(f"{name:>30}" for name in ways) + f"{'chunked : single':>20}")
    for length, found in samples.items():
        cells = []
        for name in ways:
            low, middle, high = statistics.quantiles(found[name], n=4) if rounds > 1 else [found[name][0]] * 3
            cells.append(f"{middle:>14.1f} us ({low:.1f} to {high:.1f})".rjust(30))
        share = statistics.median(found["chunked"]) / statistics.median(found["single"])
        print(f"{length:<10}" + "".join(cells) + f"{share:>20.2f}")
    print()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=25, help="runs of the ping-pong, and rounds of each overlap")
    options.add_argument("--only", choices=["overlap", "pingpong"])
    arguments = options.parse_args()
    for mpi in (mpis.mpich(), mpis.openmpi(), mpis.impi()):
        with contextlib.ExitStack() as stack:
            for place, (run, others) in places(stack, mpi).items():
                # What the thread hides does not depend on the MPI.
                if arguments.only != "pingpong" and mpi.name == "mpich":
                    print(f"{mpi.title}, {place}\n")
                    overlap(run, {name: way for name, way in others.items() if way[0] is not Fabric.NATIVE}, arguments.rounds)
                if arguments.only != "overlap":
                    print(f"{mpi.title}, {place}\n")
                    pingpong(run, others, arguments.rounds)


if __name__ == "__main__":
    main()
