#!/usr/bin/env python3
"""What no provider can save: the time that an MPI itself takes above `fi_tsend(3)` and `fi_cq_read(3)`, measured over a
provider that answers at once (`immediate.c`) with a program that looks at nothing it receives (`floor.c`); and what a
cache line takes from one core to the other and back (`distance.c`).

    python3 benches/floor.py              all MPIs that are installed
    python3 benches/floor.py mpich        some of them

In nanoseconds of one rank: of a send and a receive after it, of one of 64 sends, of one of 64 receives. In a latency
a part of the first passes while the message is under way; a rate is at most one message in the dearer of the two others.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "scripts"))

from bench import distance  # noqa: E402
from harness import mpi as mpis, process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.paths import PROGRAMS  # noqa: E402

NAME = "immediate"


def provider() -> Path:
    """The folder with the provider that answers at once, compiled."""
    folder = PROGRAMS / NAME
    folder.mkdir(parents=True, exist_ok=True)
    made = process.run(["gcc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o", folder / f"lib{NAME}-fi.so", HERE / f"{NAME}.c"], timeout=120)
    if made.status != 0:
        sys.exit(f"floor: {made.explain()}\n(libfabric's headers are needed: python3 scripts/setup.py unit)")
    return folder


def measure(mpi: Mpi) -> dict[tuple[str, int], float]:
    """Nanoseconds by name and length."""
    environment = mpi.environment(Fabric.TIDEGATE)
    environment |= {"FI_PROVIDER": NAME, "FI_PROVIDER_PATH": ":".join(str(folder) for folder in (provider(), mpi.own_providers) if folder)}
    if "OMPI_MCA_mtl_ofi_provider_include" in environment:
        environment["OMPI_MCA_mtl_ofi_provider_include"] = NAME
    done = process.run(mpi.command(2, [mpi.compile(HERE / "floor.c")]), environment, timeout=20)
    if done.status != 0:
        sys.exit(f"floor: {mpi.title} failed\n{done.explain()}")
    lines = [line.split() for line in done.output.splitlines()]
    return {(words[0], int(words[1])): float(words[2]) for words in lines if len(words) == 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="MPI", help="mpich, openmpi or impi")
    names = parser.parse_args().names
    print(f"{'ns':<28}" + "".join(f"{length:>9}" for length in (0, 8, 64, 512, 2048, 4096)))
    for mpi in (mpis.mpich(), mpis.openmpi(), mpis.impi()):
        if names and mpi.name not in names:
            continue
        found = measure(mpi)
        for name, title in (("pingpong", "send, then receive"), ("send", "one of 64 sends"), ("receive", "one of 64 receives")):
            print(f"{mpi.title + ': ' + title:<28}" + "".join(f"{value:>9.0f}" for (metric, _), value in found.items() if metric == name))
    print(f"a line there and back: {distance():.0f}")


if __name__ == "__main__":
    main()
