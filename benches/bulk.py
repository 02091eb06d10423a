#!/usr/bin/env python3
"""Measures where bulk-transfer scheduling pays: MPI_Alltoall by each technique against the MPI's own, and random traffic by
interleaving and by booking, within a host and (as root) between hosts made of namespaces whose lines are slow, so that
receivers are what is scarce. docs/bulk.md has what came out.

    benches/bulk.py [--mpi openmpi] [--ranks 8] [--hosts 2] [--rate 800mbit] [--only alltoall|random] [--where within|between]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric  # noqa: E402
from harness.paths import BUILD, LIBRARY_FOLDER, MPIS, PROVIDER, ROOT, TIDEGATE  # noqa: E402

TECHNIQUES = ["in_order", "interleave", "barriers", "tokens", "receiver_tokens", "booking"]
CACHE = BUILD / "bulk-cache"
LIBRARY = [ROOT / "bulk" / name for name in ("tidegate_bulk.c", "exchange.c", "receiving.c")]
TIMEOUT = 300


def settings(mpi, technique: str) -> dict[str, str]:
    """What `tidegate run --alltoall` sets, for every call that is long enough to have bytes."""
    show = "echo $LD_PRELOAD"
    words = [TIDEGATE, "run", "--quiet", "--alltoall", technique, "--mpi", mpi.name, "--", "sh", "-c", show]
    environment = {**os.environ, "XDG_CACHE_HOME": str(CACHE), "TIDEGATE_MPI_INCLUDE": str(MPIS / "mpich" / "include"),
                   "PATH": f"{mpi.launcher.parent}:{os.environ['PATH']}"}
    done = process.run(words, environment, timeout=TIMEOUT)
    if done.status != 0:
        sys.exit(done.explain())
    shown = next(line for line in done.output.splitlines() if "libtidegate-preload.so" in line)
    return {"LD_PRELOAD": shown, "TIDEGATE_ALLTOALL": technique, "TIDEGATE_ALLTOALL_BYTES": "1"}


class Within:
    """Jobs of so many ranks on this host."""

    def __init__(self, ranks: int) -> None:
        self.ranks, self.title = ranks, f"{ranks} ranks on one host"

    def run(self, mpi, program, environment) -> process.Result:
        return process.run(mpi.command(self.ranks, program), environment, timeout=TIMEOUT)


class Between:
    """Jobs of so many ranks on each of several hosts, whose lines and whose switch carry so much in each direction."""

    def __init__(self, hosts: made.Hosts, ranks: int, rate: str) -> None:
        self.hosts, self.ranks, self.title = hosts, ranks, f"{ranks} ranks on each of {len(hosts.names)} hosts, {rate} per line"
        for place, name in enumerate(hosts.names):
            hosts.shell(place, f"tc qdisc add dev eth0 root tbf rate {rate} burst 64kb latency 50ms")
            made._shell(f"nsenter -t {hosts.switch} -n tc qdisc add dev {name} root tbf rate {rate} burst 64kb limit 256kb")

    def run(self, mpi, program, environment) -> process.Result:
        passed = ";".join(sorted(name for name in environment if name.startswith(("FI_", "TIDEGATE_", "LD_PRELOAD"))))
        extra = {"OMPI_MCA_mca_base_env_list": passed} if mpi.name == "openmpi" else {}
        return made.run(self.hosts, mpi, self.ranks, program, environment | extra, timeout=TIMEOUT)


def alltoall(where, mpi, names: list[str], least: int, most: int, calls: int) -> None:
    """A table: a size a line, the time of the MPI's own call, and that of each technique in per cent of it."""
    program = [mpi.compile(ROOT / "benches" / "alltoall_time.c"), str(least), str(most), str(calls)]
    times: dict[str, dict[int, float]] = {}
    for technique in ["own", *names]:
        environment = mpi.environment(Fabric.TIDEGATE) | (settings(mpi, technique) if technique != "own" else {})
        done = where.run(mpi, program, environment)
        if done.status != 0:
            print(done.explain())
            return
        pairs = [line.split() for line in done.output.splitlines() if line[:1].isdigit()]
        times[technique] = {int(size): float(time) for size, time in pairs}
    print(f"\n{mpi.title}, MPI_Alltoall, {where.title}: the MPI's own in us, others in % of that\n")
    print(f"{'bytes':>9} {'own':>10} " + " ".join(f"{name:>15}" for name in names))
    for size, own in times["own"].items():
        print(f"{size:9} {own:10.1f} " + " ".join(f"{100 * times[name][size] / own:15.0f}" for name in names), flush=True)


def random_traffic(where, mpi, sizes: list[int]) -> None:
    """Random traffic, MB/s."""
    more = ["-I", str(ROOT / "bulk"), *LIBRARY, f"-L{LIBRARY_FOLDER}", f"-l:{PROVIDER.name}", f"-Wl,-rpath,{LIBRARY_FOLDER}"]
    program = mpi.compile(ROOT / "examples" / "random_traffic.c", *more)
    names = ["in_order", "interleave", "receiver_tokens", "booking"]
    print(f"\n{mpi.title}, random traffic, {where.title}: MB/s of all ranks together\n")
    print(f"{'bytes':>9} " + " ".join(f"{name:>15}" for name in names))
    for size in sizes:
        pieces = max(8, min(64, (4 << 20) // size))
        done = where.run(mpi, [program, str(pieces), str(size), *names], mpi.environment(Fabric.TIDEGATE))
        rates = {line.split()[0]: line.split()[1] for line in done.output.splitlines() if "MB/s" in line}
        print(f"{size:9} " + " ".join(f"{rates.get(name, 'failed'):>15}" for name in names), flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mpi", choices=list(mpis.WHEELS), action="append")
    options.add_argument("--ranks", type=int, default=8, help="of a job within a host; between hosts they are divided")
    options.add_argument("--hosts", type=int, default=2)
    options.add_argument("--rate", default="800mbit", help="of a line between hosts")
    options.add_argument("--least", type=int, default=64 << 10, help="bytes of the shortest block")
    options.add_argument("--most", type=int, default=4 << 20, help="bytes of the longest")
    options.add_argument("--calls", type=int, default=5)
    options.add_argument("--techniques", nargs="+", choices=TECHNIQUES, default=TECHNIQUES)
    options.add_argument("--only", choices=["alltoall", "random"])
    options.add_argument("--where", choices=["within", "between"])
    chosen = options.parse_args()
    for name in chosen.mpi or mpis.WHEELS:
        mpi = mpis.WHEELS[name]()
        if chosen.where != "between":
            if chosen.only != "random":
                alltoall(Within(chosen.ranks), mpi, chosen.techniques, chosen.least, chosen.most, chosen.calls)
            if chosen.only != "alltoall":
                random_traffic(Within(chosen.ranks), mpi, [16384, 262144, 4 << 20])
        if chosen.where != "within" and made.why_not() is None:
            with made.Hosts(chosen.hosts) as hosts:
                where = Between(hosts, chosen.ranks // chosen.hosts, chosen.rate)
                if chosen.only != "random":
                    alltoall(where, mpi, chosen.techniques, chosen.least, chosen.most, chosen.calls)
                if chosen.only != "alltoall":
                    random_traffic(where, mpi, [16384, 65536, 262144, 1 << 20])


if __name__ == "__main__":
    main()
