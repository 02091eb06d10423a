#!/usr/bin/env python3
"""Whole applications over Tidegate and over the MPI's own shared memory, from Debian's packages, with Debian's Open MPI: HPCC,
LAMMPS, ScaLAPACK's tests and NWChem.

    python3 benches/applications.py                          4 ranks, and 16 that share the cores
    python3 benches/applications.py --ranks 4 --rounds 9 hpcc lammps
    python3 benches/applications.py --install                as root: installs the packages first (apt-get)

The two take turns. The table has the median of each one's seconds, from the launcher's start to its end, and the median of
the rounds' ratios: above 1 Tidegate is faster. The first row is a job that does nothing, since libfabric takes some tenths of
a second to begin, whatever its provider; the last column is the ratio of what the medians have above that row. HPCC's own
numbers of its parts follow, with ratios too.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import mpi as mpis, process  # noqa: E402
from harness.mpi import Fabric, OpenMpi  # noqa: E402

HERE = Path(__file__).resolve().parent
SCALAPACK = Path("/usr/lib/x86_64-linux-gnu/scalapack/openmpi-tests")
NWCHEM_INPUT = Path("/usr/share/doc/nwchem/examples/h2o-b3lyp-disp.nw")
HPCC_EXAMPLE = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
HPCC_SIZE = 800
"""Order of HPL's matrix."""
LU_SIZES = (100, 200, 300, 400)
"""Orders of the matrices that ScaLAPACK factors: its tests have memory for small ones only."""
LU_BLOCKS = (2, 8, 32)
LIMIT = 600.0
"""Seconds that a run may take."""
HPCC_PARTS = {
    "HPL_Tflops": "HPL",
    "PTRANS_GBs": "PTRANS",
    "MPIRandomAccess_GUPs": "RandomAccess",
    "MPIFFT_Gflops": "FFT",
    "AvgPingPongBandwidth_GBytes": "ping-pong bandwidth",
    "NaturallyOrderedRingBandwidth_GBytes": "ring bandwidth",
    "AvgPingPongLatency_usec": "ping-pong latency",
    "NaturallyOrderedRingLatency_usec": "ring latency",
}
"""Numbers of HPCC's summary and their titles; times have names that end in `usec`."""


@dataclass(frozen=True)
class Application:
    """Something to run."""

    name: str
    package: str
    program: str
    """Its path, or its name where that is found by PATH."""
    words: tuple[str, ...]
    prepare: Callable[[Path, int], None]
    """Writes what it reads into an empty folder, for so many ranks."""
    result: str = ""
    """The file with its own numbers, if they are to be shown."""


def grid(ranks: int) -> tuple[int, int]:
    """The squarest grid of processes."""
    rows = max(rows for rows in range(1, ranks + 1) if ranks % rows == 0 and rows * rows <= ranks)
    return rows, ranks // rows


def write_melt(folder: Path, _ranks: int) -> None:
    """LAMMPS' first example, 32,000 atoms that melt, for 250 steps."""
    (folder / "in.melt").write_text("""units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 20 0 20 0 20
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 50
run 250
""")


def write_hpcc(folder: Path, ranks: int) -> None:
    """The example that comes with HPCC, with another size and grid."""
    packed = HPCC_EXAMPLE.with_name(HPCC_EXAMPLE.name + ".gz")
    text = HPCC_EXAMPLE.read_text() if HPCC_EXAMPLE.exists() else subprocess.run(["zcat", packed], capture_output=True, text=True, check=True).stdout
    rows, columns = grid(ranks)
    for title, value in (("Ns", HPCC_SIZE), ("Ps", rows), ("Qs", columns)):
        text = re.sub(rf"^\S+(?= +{title}$)", str(value), text, flags=re.MULTILINE)
    (folder / "hpccinf.txt").write_text(text)


def write_lu(folder: Path, ranks: int) -> None:
    """Some factorisations, as ScaLAPACK's own test reads it."""
    rows, columns = grid(ranks)
    (folder / "LU.dat").write_text(f"""'LU factorization'
'MPI'
'LU.out'
6 device
{len(LU_SIZES)} number of sizes
{" ".join(map(str, LU_SIZES))}
{" ".join(map(str, LU_SIZES))}
{len(LU_BLOCKS)} number of NB
{" ".join(map(str, LU_BLOCKS))}
1 number of NRHS
1
1 number of NBRHS
1
1 number of grids
{rows}
{columns}
1.0 threshold
F
""")


def write_water(folder: Path, _ranks: int) -> None:
    """A molecule of water by density functionals: NWChem's example."""
    shutil.copy(NWCHEM_INPUT, folder / "h2o.nw")


NOTHING = Application("nothing", "", str(HERE / "nothing.c"), (), lambda _folder, _ranks: None)
"""A job that only begins and ends."""
APPLICATIONS = (
    Application("hpcc", "hpcc", "hpcc", (), write_hpcc, "hpccoutf.txt"),
    Application("lammps", "lammps", "lmp", ("-in", "in.melt"), write_melt),
    Application("scalapack", "scalapack-mpi-test", str(SCALAPACK / "xdlu"), (), write_lu),
    Application("nwchem", "nwchem", "nwchem.openmpi", ("h2o.nw",), write_water),
)


def run(mpi: OpenMpi, fabric: Fabric, application: Application, ranks: int) -> tuple[float, dict[str, float]]:
    """Seconds of a run, and the application's own numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        application.prepare(folder, ranks)
        environment = mpi.environment(fabric) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        program = mpi.compile(Path(application.program)) if application.program.endswith(".c") else application.program
        done = process.run(mpi.command(ranks, [program, *application.words]), environment, timeout=LIMIT, cwd=folder)
        if done.status != 0:
            sys.exit(f"applications: {application.name} over {fabric.value} failed\n{done.explain()}")
        text = (folder / application.result).read_text() if application.result else ""
    numbers = {title: re.search(rf"^{key}=(\S+)$", text, re.MULTILINE) for key, title in HPCC_PARTS.items()}
    return done.seconds, {title: float(found[1]) for title, found in numbers.items() if found}


def is_there(application: Application) -> bool:
    """Whether it is installed."""
    return bool(shutil.which(application.program))


def compare(mpi: OpenMpi, application: Application, ranks: int, rounds: int, start: dict[Fabric, float]) -> list[str]:
    """The rows of an application. `start`: the seconds of a job that does nothing, set by that one."""
    sides = (Fabric.TIDEGATE, Fabric.NATIVE)
    runs = [{side: run(mpi, side, application, ranks) for side in (sides if number % 2 else sides[::-1])} for number in range(rounds)]

    def row(title: str, values: list[dict[Fabric, float]], is_time: bool) -> str:
        ours, theirs = (statistics.median(value[side] for value in values) for side in sides)
        ratio = statistics.median(value[Fabric.NATIVE] / value[Fabric.TIDEGATE] for value in values)
        return f"{title:<40}{ours:>12.4g}{theirs:>12.4g}{ratio if is_time else 1 / ratio:>8.2f}"

    seconds = {side: statistics.median(one[side][0] for one in runs) for side in sides}
    above = [seconds[side] - start[side] for side in reversed(sides)] if start else []
    start.update(seconds if not start else {})
    rows = [row(f"{application.name} x {ranks}, s", [{side: one[side][0] for side in sides} for one in runs], True)]
    if above and min(above) > 0:
        rows[0] += f"{above[0] / above[1]:>12.2f}"
    for key, title in HPCC_PARTS.items():
        if application.result and all(title in one[side][1] for one in runs for side in sides):
            unit = key.rsplit("_", 1)[1]
            rows.append(row(f"  {title}, {unit}", [{side: one[side][1][title] for side in sides} for one in runs], unit == "usec"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of them: {', '.join(it.name for it in APPLICATIONS)}")
    parser.add_argument("--ranks", type=int, action="append", help="(default 4 and 16)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--install", action="store_true", help="as root: install what is missing first")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {it.name for it in APPLICATIONS}:
        parser.error(f"no such application: {', '.join(sorted(unknown))}")
    chosen = [it for it in APPLICATIONS if it.name in arguments.names or not arguments.names]
    if arguments.install:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        packages = ["openmpi-bin", "libopenmpi-dev", *(it.package for it in chosen if not is_there(it))]
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], env=environment, check=True)
    mpi = mpis.debian_openmpi()
    missing = [it.package for it in chosen if not is_there(it)] + ([] if mpi else ["openmpi-bin libopenmpi-dev"])
    if missing:
        sys.exit(f"applications: not installed: {' '.join(missing)} (python3 benches/applications.py --install, as root)")
    print(f"{'Open MPI of the system':<40}{'Tidegate':>12}{'its own':>12}{'ratio':>8}{'above start':>12}")
    for ranks in arguments.ranks or [4, 16]:
        start: dict[Fabric, float] = {}
        for application in (NOTHING, *chosen):
            print("\n".join(compare(mpi, application, ranks, arguments.rounds, start)), flush=True)


if __name__ == "__main__":
    main()
