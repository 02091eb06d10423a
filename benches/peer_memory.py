#!/usr/bin/env python3
"""What a peer costs in memory, as each rank of a job sees it: `benches/peer_memory.c` in jobs of two sizes, over Tidegate under three schemes,
over libfabric's own `shm` and `tcp`, and over the MPI's own shared memory.

A rank's memory is its anonymous memory and its part of all that is allocated in the shared memory which the job maps, touched or not; program text does not count. What a peer costs is the difference between the two
jobs over that of their sizes: of one with which nothing but MPI_Init has had to do, and of one that has sent 8 bytes and got 8. What a rank
takes whatever the size of its job is not in it. Medians of the rounds."""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402

SOURCE = Path(__file__).with_name("peer_memory.c")
WAYS: dict[str, tuple[Fabric, dict[str, str | int]]] = {
    "tidegate, dynamic, 16 slots": (Fabric.TIDEGATE, {"SCHEME": "dynamic", "SLOTS": 16}),
    "tidegate, static, 64 slots": (Fabric.TIDEGATE, {"SCHEME": "static"}),
    "tidegate, speculative": (Fabric.TIDEGATE, {"SCHEME": "speculative"}),
    "libfabric shm": (Fabric.SHM, {}),
    "libfabric tcp": (Fabric.TCP, {}),
    "its own shared memory": (Fabric.NATIVE, {}),
}


def memory(mpi: Mpi, fabric: Fabric, parameters: dict[str, str | int], ranks: int) -> dict[str, float] | None:
    """Bytes of a rank at each moment; `None` if the job fails."""
    if fabric is Fabric.TIDEGATE:
        parameters = {**parameters, "PEERS": ranks - 1}
    words = mpi.command(ranks, [mpi.compile(SOURCE)])
    done = process.run(words, environment=mpi.environment(fabric, **parameters), timeout=300)
    lines = [line.split() for line in done.output.splitlines()]
    found = {words[0]: float(words[1]) for words in lines if len(words) == 2 and words[0] in ("begun", "few", "all")}
    return found if done.status == 0 and len(found) == 3 else None


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ranks", type=int, nargs=2, default=(8, 32), metavar="N")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--mpi", choices=list(mpis.WHEELS), action="append")
    arguments = options.parse_args()
    few, many = arguments.ranks
    print(f"Bytes for each peer of a rank, from jobs of {few} and {many} ranks; medians of {arguments.rounds} rounds\n")
    print("| MPI | over | that is silent | that has talked | a rank of the larger job, in all (MiB) |")
    print("|---|---|---:|---:|---:|")
    for name in arguments.mpi or mpis.WHEELS:
        mpi = mpis.WHEELS[name]()
        for way, (fabric, parameters) in WAYS.items():
            if fabric is Fabric.SHM and not mpi.has_shm:
                continue
            rounds = [[memory(mpi, fabric, parameters, ranks) for ranks in (few, many)] for _ in range(arguments.rounds)]
            pairs = [(small, large) for small, large in rounds if small and large]
            if not pairs:
                print(f"| {mpi.title} | {way} | failed | | |", flush=True)
                continue
            silent, talked = (statistics.median((large[when] - small[when]) / (many - few) for small, large in pairs) for when in ("begun", "all"))
            whole = statistics.median(large["all"] for _, large in pairs)
            print(f"| {mpi.title} | {way} | {silent:,.0f} | {talked:,.0f} | {whole / 2**20:.1f} |", flush=True)


if __name__ == "__main__":
    main()
