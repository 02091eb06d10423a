#!/usr/bin/env python3
"""How far `tidegate plan` is from real runs: by counts, and by time where slow lines leave processors idle.

Each program is recorded once (`tidegate record`), and its trace is simulated under schemes and sizes that are then run for
real, some times each; compared are sends delayed, credit packets, packets, and peaks. A number that a run decides by chance
is shown with the least and the most of the real runs. Real runs have --bulk direct: that is what the simulator does with
messages above the eager limit.

    make build && .mpi/tests/bin/python benches/plan.py [--hosts] [--json FILE]

`--hosts` (needs root) compares times instead: over hosts made of namespaces, a rank on each, with lines of `--rate`.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import counted, hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.paths import LIBRARY_FOLDER, TIDEGATE  # noqa: E402

REPLAY = Path(__file__).with_name("replay.c")
SIZES = {
    "speculative": ("--pool-slots", [64, 128, 256, 1024]),
    "dynamic": ("--slots", [4, 8, 16, 64]),
    "static": ("--slots", [4, 8, 16, 64]),
    "preposted": ("--buffers", [2, 5, 20, 100]),
}
COUNTERS = ["packets_sent", "messages_eager", "sends_delayed", "mailbox_full", "credit_packets", "mailbox_peak_slots", "unexpected_peak_bytes"]
NAS = {"is": 2, "mg": 1, "lu": 1, "cg": 1}
"""Which NAS patterns, with so many iterations of class A."""


@dataclass
class Program:
    """Something to record and to run."""

    name: str
    ranks: int
    command: list[str | Path]


def nas(folder: Path, name: str, ranks: int, iterations: int, compute_rate: int = 100_000) -> Path:
    """The pattern of a NAS benchmark as a trace that `replay.c` runs over MPI."""
    machine, trace = folder / f"{name}-{ranks}.toml", folder / f"{name}-{ranks}.goal"
    machine.write_text(f'[machine]\nprocesses_per_node = 1\n[network]\ntopology = "switch"\nsizes = "{ranks}"\n'
                       f'[workload]\noperation = "{name}"\niterations = {iterations}\ncompute_rate = {compute_rate}\n')
    subprocess.run([TIDEGATE, "sim", machine, "--goal", trace], check=True)
    return trace


def programs(folder: Path, mpi: Mpi, ranks: list[int]) -> list[Program]:
    """What is compared."""
    found = []
    imb = mpis.impi().benchmarks / "IMB-MPI1"
    for size in ranks:
        for benchmark in ("Exchange", "Alltoall", "Sendrecv"):
            lengths = folder / "lengths.txt"
            lengths.write_text("8\n1024\n2048\n")
            words = ["-npmin", str(size), "-iter", "20", "-iter_policy", "off", "-msglen", lengths]
            found.append(Program(f"IMB {benchmark}", size, [imb, benchmark, *words]))
        for name in NAS:
            if size >= 8:
                found.append(Program(f"NAS {name.upper()}", size, [mpi.compile(REPLAY), nas(folder, name, size, NAS[name])]))
    return found


def environment(mpi: Mpi) -> dict[str, str]:
    """What a job gets beside what `tidegate` sets."""
    return {key: value for key, value in mpi.environment(Fabric.TIDEGATE).items() if not key.startswith("FI_")}


def tidegate(mpi: Mpi, words: list, timeout: float = 200) -> process.Result:
    """Runs a command of ours, which must succeed."""
    done = process.run([TIDEGATE, *words], environment(mpi), timeout=timeout)
    if done.status != 0:
        sys.exit(done.explain())
    return done


def counters(mpi: Mpi, program: Program, options: list[str], folder: Path) -> dict[str, float]:
    """The counters of one real job."""
    report = folder / "run.json"
    tidegate(mpi, ["run", "--quiet", "--provider-dir", LIBRARY_FOLDER, "--json", report, "--bulk", "direct", "--send-buffers", "0", *options, *mpi.command(program.ranks, program.command)])
    job = json.loads(report.read_text())["job"]
    return {name: job[name]["job"] for name in COUNTERS}


def record(mpi: Mpi, program: Program, folder: Path) -> Path:
    """The trace of a real job."""
    trace = folder / "job.goal"
    trace.unlink(missing_ok=True)
    # With so much memory that flow control holds nobody up: what is recorded then is the program.
    options = ["--provider-dir", LIBRARY_FOLDER, "--quiet", "--scheme", "static", "--slots", "1024"]
    tidegate(mpi, ["record", "-o", trace, *options, *mpi.command(program.ranks, program.command)])
    return trace


def simulated(trace: Path, scheme: str, machine: Path | None) -> dict[int, dict]:
    """What `tidegate plan` says of simulated runs of a trace, by slots or buffers."""
    option, sizes = SIZES[scheme]
    words = [TIDEGATE, "plan", trace, "--all", "--seeds", "3", "--schemes", scheme, option, ",".join(map(str, sizes)), "--json"]
    done = subprocess.run([*words, *(["--machine", machine] if machine else [])], capture_output=True, text=True, check=False, timeout=250)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return {choice["amount"]: choice for choice in json.loads(done.stdout)["choices"]}


def compare(mpi: Mpi, program: Program, machine: Path | None, runs: int, schemes: list[str], folder: Path) -> list[dict]:
    """A row for each scheme, size and counter."""
    trace, rows = record(mpi, program, folder), []
    for scheme in schemes:
        option, sizes = SIZES[scheme]
        predicted = simulated(trace, scheme, machine)
        for size in sizes:
            real = [counters(mpi, program, ["--scheme", scheme, option, str(size)], folder) for _ in range(runs)]
            for name in COUNTERS:
                values = [run[name] for run in real]
                rows.append({"program": program.name, "ranks": program.ranks, "scheme": scheme, "size": size, "counter": name,
                             "predicted": predicted[size]["counters"].get(name, 0.0), "real": statistics.median(values), "least": min(values), "most": max(values)})
    return rows


def show(rows: list[dict]) -> None:
    """Row by row, and how far each counter was off in all of them."""
    for row in rows:
        print("{program:<14}{ranks:>3} {scheme:<12}{size:>4} {counter:<22} predicted {predicted:>11.0f}  real {real:>11.0f} ({least:.0f} to {most:.0f})".format(**row))
    print()
    for name in COUNTERS:
        of = [row for row in rows if row["counter"] == name]
        both = [math.log2(row["predicted"] / row["real"]) for row in of if row["predicted"] > 0 and row["real"] > 0]
        either = sum(1 for row in of if (row["predicted"] > 0) != (row["real"] > 0))
        spread = [row["most"] / row["least"] for row in of if row["least"] > 0]
        if both:
            middle = statistics.median(both)
            far = sorted(abs(value) for value in both)
            print(f"{name:<22} predicted / real: median {2 ** middle:.2f}, half within a factor of {2 ** statistics.median(far):.2f}, "
                  f"nine of ten within {2 ** far[int(0.9 * (len(far) - 1))]:.2f}, worst {2 ** far[-1]:.2f}; "
                  f"none in one and some in the other: {either} of {len(of)}; real runs differ by a factor of {statistics.median(spread):.2f}, at most {max(spread):.2f}")


# A host's line is slow where it leaves the host only: that is where `tc` holds packets up.
TIMED_MACHINE = """[machine]
processes_per_node = 1
blocked_sender = "retrieves"
[network]
topology = "switch"
sizes = "{hosts}"
injection_bandwidth = "{rate:.1f} Mbit/s"
extraction_bandwidth = "10000 Mbit/s"
router_latency = "{latency} us"
packet_overhead = "8 B"
[cost]
send_call = "1 us"
send_packet = "50 ns"
receive_call = "200 ns"
poll = "1 us"
retrieve_packet = "50 ns"
complete_message = "500 ns"
retrieve_far_packet = "0 ns"
injection = "0 ns"
extraction = "0 ns"
credit_packet = "100 ns"
dynamic_packet = "50 ns"
bulk_call = "20 us"
bulk_frame = "16 KiB"
"""


TIMED = [("exchange", 2, 2048), ("exchange", 2, 16384), ("exchange", 2, 131072), ("exchange", 4, 2048), ("exchange", 4, 16384), ("exchange", 4, 131072),
         ("is", 8, 0), ("mg", 8, 0)]
"""Operation, hosts with a rank each, bytes of a message of `exchange`."""
TIMES = 3
"""How often a replayed trace is repeated; the best counts."""


def timed_machine(folder: Path, operation: str, ranks: int, length: int, rate: int) -> Path:
    """A machine of hosts with slow lines, and a program for it."""
    machine = folder / "timed.toml"
    repeats = f"iterations = {NAS[operation]}\ncompute_rate = 100000" if operation in NAS else f'bytes = "{length} B"\nrepetitions = 30\nwarm_up = 0'
    # Of what a line carries 1,448 in 1,538 bytes are TCP's payload.
    machine.write_text(TIMED_MACHINE.format(hosts=ranks, rate=rate * 1448 / 1538, latency=30) + f'[workload]\noperation = "{operation}"\n{repeats}\n')
    return machine


def real_times(hosts: made.Hosts, mpi: Mpi, trace: Path, runs: int, parameters: dict[str, str | int]) -> list[float]:
    """The times of real jobs with a rank on each host, in microseconds."""
    times = []
    for _ in range(runs):
        job = counted.run(hosts, mpi, 1, [mpi.compile(REPLAY), trace, str(TIMES)], BULK="direct", **parameters)
        if job.result.status != 0:
            sys.exit(job.result.explain())
        line = next(line for line in job.result.output.splitlines() if line.startswith("time"))
        times.append(float(line.split()[1]))
    return times


def compare_times(mpi: Mpi, rate: int, runs: int, folder: Path) -> None:
    """Times over hosts with slow lines. The replayed trace repeats itself; the best time counts, here and there."""
    for operation, ranks, length in TIMED:
        trace = folder / f"{operation}-{ranks}-{length}.goal"
        machine = timed_machine(folder, operation, ranks, length, rate)
        subprocess.run([TIDEGATE, "sim", machine, "--goal", trace], check=True)
        with made.Hosts(ranks) as hosts:
            for host in range(ranks):
                hosts.shell(host, f"tc qdisc add dev eth0 root tbf rate {rate}mbit burst 32kb latency 50ms")
            for scheme, (option, sizes) in SIZES.items():
                choices = simulated(trace, scheme, machine)
                for size in sizes:
                    times = real_times(hosts, mpi, trace, runs, {"SCHEME": scheme, option.removeprefix("--").upper(): size})
                    predicted, real = choices[size]["time_us"], statistics.median(times)
                    print(f"{operation:<9}{ranks:>2} hosts {length:>7} B  {scheme:<10}{size:>4}  predicted {predicted:>10.0f} us  real {real:>10.0f} us "
                          f"({min(times):.0f} to {max(times):.0f})  {100 * (predicted / real - 1):+.0f} %", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machine", type=Path, help="a machine file of `tidegate calibrate`")
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8, 16])
    parser.add_argument("--runs", type=int, default=3, help="real runs of each setting")
    parser.add_argument("--only", help="programs whose name has this in it")
    parser.add_argument("--scheme", choices=SIZES, nargs="+", default=list(SIZES))
    parser.add_argument("--json", type=Path, help="write all rows there")
    parser.add_argument("--hosts", action="store_true", help="times over hosts with slow lines instead")
    parser.add_argument("--rate", type=int, default=100, help="of the lines, in Mbit/s")
    arguments = parser.parse_args()
    mpi = mpis.mpich()
    with tempfile.TemporaryDirectory(prefix="tidegate-plan-") as name:
        folder = Path(name)
        if arguments.hosts:
            if why := made.why_not():
                sys.exit(why)
            compare_times(mpi, arguments.rate, arguments.runs, folder)
            return
        rows = []
        for program in programs(folder, mpi, arguments.ranks):
            if arguments.only and arguments.only not in f"{program.name} {program.ranks}":
                continue
            rows += compare(mpi, program, arguments.machine, arguments.runs, arguments.scheme, folder)
            print(f"{program.name}, {program.ranks} ranks: done", file=sys.stderr, flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows, indent=1))
        show(rows)


if __name__ == "__main__":
    main()
