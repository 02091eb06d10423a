#!/usr/bin/env python3
"""Compares Tidegate over libfabric's `tcp` with that `tcp` by itself, and with `tcp;ofi_rxm`, between two hosts made of
namespaces (needs root).

All run `benches/bench.c`: two ranks, one on each host; and eight, four on each, of which Tidegate joins those of one host by
shared memory and `tcp` does not. They take turns, round after round; each number is the median over the rounds. Above 1.00x
Tidegate is better. `processor seconds` is what a whole job of that kind took on both hosts. Last, the floods of
`tests/programs/pressure.c`: by how much a slow receiver's memory grows, and whether the job ends.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from bench import SOURCE, length_text, ratio, value_text  # noqa: E402
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import pressure  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.pressure import Flood  # noqa: E402

RXM = {"FI_PROVIDER": "tcp,ofi_rxm", "MPIR_CVAR_OFI_USE_PROVIDER": "tcp;ofi_rxm", "OMPI_MCA_mtl_ofi_provider_include": "tcp;ofi_rxm"}
CANDIDATES: dict[str, tuple[Fabric, dict[str, str]]] = {
    "tidegate": (Fabric.TIDEGATE, {}),
    "tcp": (Fabric.TCP, {}),
    "tcp;ofi_rxm": (Fabric.TCP, RXM),
}
"""What is compared, each with what its environment has beside."""
KINDS = {"pair": 1, "crowd": 4}
"""What `benches/bench.c` does, and with how many ranks on each host."""
FLOODS = [Flood("flood", "order", 8, 20000, 1024), Flood("flood", "wildcard", 2, 20000, 2048, "blocking"), Flood("everybody", "wildcard", 4, 5000, 2048)]
FLOOD_BOUND = "16M"
FLOOD_SECONDS = 60
"""After so long a flood counts as hanging."""

Samples = dict[tuple[str, int], dict[str, list[float]]]
"""By metric and length, by candidate, one value per round."""


def processor_seconds() -> float:
    """What all jobs so far have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(hosts: made.Hosts, mpi: Mpi, kind: str, rounds: int, seconds: float) -> Samples:
    """All candidates in turn, `rounds` times."""
    samples: Samples = {}
    program = [mpi.compile(SOURCE), kind, str(seconds)]
    for _ in range(rounds):
        for name, (fabric, beside) in CANDIDATES.items():
            before = processor_seconds()
            done = made.run(hosts, mpi, KINDS[kind], program, mpi.environment(fabric) | beside, timeout=300)
            if done.status != 0:
                sys.exit(done.explain())
            samples.setdefault(("processor seconds", 0), {}).setdefault(name, []).append(processor_seconds() - before)
            for words in map(str.split, done.output.splitlines()):
                if len(words) == 3 and words[1].isdigit():
                    samples.setdefault((words[0], int(words[1])), {}).setdefault(name, []).append(float(words[2]))
    samples[("processor seconds", 0)] = samples.pop(("processor seconds", 0))
    return samples


def row(cells: list[str]) -> str:
    """A line of the table."""
    return f"{cells[0]:<24}{cells[1]:>16}" + "".join(f"{cell:>26}" for cell in cells[2:])


def table(title: str, samples: Samples) -> list[str]:
    """The medians of one MPI."""
    lines = [title, "", row(["", *CANDIDATES])]
    for (metric, length), found in samples.items():
        is_total = metric == "processor seconds"
        text = (lambda value: f"{value:.2f}") if is_total else (lambda value, metric=metric: value_text(metric, value))
        ours, *theirs = (statistics.median(found[name]) for name in CANDIDATES)
        compared = [f"{text(other)}{other / ours if is_total else ratio(metric, ours, other):>7.2f}x" for other in theirs]
        lines.append(row([metric if is_total else f"{metric} {length_text(length)}", text(ours), *compared]))
    return [*lines, ""]


def floods(hosts: made.Hosts, mpi: Mpi) -> list[str]:
    """How much the receiver that grows most has grown, in MiB."""
    lines = [f"{mpi.title}: growth of the slowest receiver in floods, FI_TIDEGATE_RX_MEMORY={FLOOD_BOUND}", "", row(["", *CANDIDATES])]
    for flood in FLOODS:
        cells = []
        for fabric, beside in CANDIDATES.values():
            done = pressure.run(mpi, fabric, flood, pause_ms=200, timeout=FLOOD_SECONDS, hosts=hosts, beside=beside, RX_MEMORY=FLOOD_BOUND)
            grown = f"{max(done.grown.values(), default=0) / 1024:.1f} MiB"
            ended = "hangs" if done.result.timed_out else "fails" if done.result.status else f"{done.result.seconds:.1f} s"
            cells.append(f"{grown}, {ended}")
        lines.append(row([flood.name, *cells]))
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
        for kind, ranks in KINDS.items():
            title = f"{mpi.title}, {2 * ranks} ranks on two hosts"
            print("\n".join(table(title, measure(hosts, mpi, kind, arguments.rounds, arguments.seconds))), flush=True)
        print("\n".join(floods(hosts, mpi)))


if __name__ == "__main__":
    main()
