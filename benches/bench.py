#!/usr/bin/env python3
"""Compares Tidegate with libfabric's own providers and the MPIs' own shared memory, and its schemes with each other.

All candidates run the same program, `benches/bench.c`. They take turns, round after round, so that whatever else the
machine does meets all of them; each number is the median over the rounds. Ratios are written so that above 1 is better
for Tidegate (first tables) or for the scheme or setting named (last tables). Then come the floods of `pressure.py`, all eight
schemes at equal memory (`schemes.py`), and, as root, jobs over two hosts (`hosts.py`);
what goes on while a program computes, and what chunks cost (`offload.py`); and, as root, what one slow memory costs others (`slow_sink.py`).

Where the host moves a virtual machine between processors, how far its cores are from each other changes from minute to
minute, and with it most numbers, by factors. So `benches/distance.c` measures it before and after each run; a run amid
which it changed is done again, and near and far cores have tables of their own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import pressure  # noqa: E402
import schemes  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness import process  # noqa: E402
from harness.mpi import Fabric, Mpi  # noqa: E402
from harness.paths import BUILD, PROGRAMS, ROOT, newer  # noqa: E402

SOURCE = ROOT / "benches" / "bench.c"
DISTANCE = ROOT / "benches" / "distance.c"
MOVED = 1.6
"""The cores have moved where a message between them takes so many times what it took before."""
GAP = 1.25
"""There are near and far cores where no distance was met between one and so many times this one."""
FEWEST = 0.1
"""The share of the runs that each of the two has at least."""
TRIES = 5
"""Most runs of a candidate in one round, when the cores move meanwhile."""
AMPLE_SLOTS = 1024
"""Slots per peer with which no sender waits for credits, so that the work of the schemes alone is measured."""
MODES = (("pair", 2), ("alltoall", 8), ("crowd", 4), ("crowd", 8))
"""What the program measures, and among how many ranks."""
MPIS = (mpis.mpich(), mpis.openmpi(), mpis.impi())
FLOOD_ROUNDS = 3
"""Most rounds of the floods: each takes minutes."""
SCHEME_ROUNDS = 3
"""The same of the schemes."""
USUAL_MEMORY, AMPLE_MEMORY = "64M", "1G"
"""FI_TIDEGATE_RX_MEMORY: the default, and so much that no benchmark comes near it."""

Key = tuple[str, int, int]
"""Metric, ranks, and message length in bytes."""
Found = dict[Key, float]


@dataclass
class Sample:
    """One run."""

    distance: float
    """In nanoseconds; see `distance.c`."""
    found: Found


@dataclass(frozen=True)
class Candidate:
    """Something to measure."""

    mpi: Mpi
    fabric: Fabric
    scheme: str = ""
    memory: str = ""
    """FI_TIDEGATE_RX_MEMORY."""

    @property
    def name(self) -> str:
        """As in the tables."""
        title = "own shared memory" if self.fabric is Fabric.NATIVE else self.fabric.value
        return f"{title} {self.scheme}{self.memory}".strip()

    def run(self, mode: str, ranks: int, seconds: float) -> Found:
        """One run of the program: its numbers."""
        parameters = {"SCHEME": self.scheme, "SLOTS": AMPLE_SLOTS} if self.scheme else {}
        parameters |= {"RX_MEMORY": self.memory} if self.memory else {}
        program = self.mpi.compile(SOURCE)
        done = process.run(self.mpi.command(ranks, [program, mode, str(seconds)]), self.mpi.environment(self.fabric, **parameters), timeout=300)
        if done.status != 0:
            sys.exit(f"bench: {self.mpi.title} over {self.name} failed\n{done.explain()}")
        lines = [line.split() for line in done.output.splitlines()]
        return {(words[0], ranks, int(words[1])): float(words[2]) for words in lines if len(words) == 3 and words[1].isdigit()}


def candidates() -> list[Candidate]:
    """What is compared: Tidegate as it comes, for each MPI what it can use instead; the schemes with ample slots;
    bounds of memory."""
    result = []
    for mpi in MPIS:
        result.append(Candidate(mpi, Fabric.TIDEGATE))
        result += [Candidate(mpi, fabric) for fabric in (Fabric.SHM, Fabric.TCP, Fabric.NATIVE) if fabric is not Fabric.SHM or mpi.has_shm]
    result += [Candidate(mpis.mpich(), Fabric.TIDEGATE, scheme) for scheme in ("none", "static", "dynamic")]
    return result + [Candidate(mpis.mpich(), Fabric.TIDEGATE, memory=memory) for memory in (USUAL_MEMORY, AMPLE_MEMORY)]


@cache
def distance_program() -> Path:
    """The program that measures how far the cores are from each other, compiled."""
    target = PROGRAMS / "distance"
    if not newer(target, DISTANCE):
        target.parent.mkdir(parents=True, exist_ok=True)
        made = process.run(["gcc", "-O2", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", target, DISTANCE, "-lpthread"], timeout=120)
        if made.status != 0:
            sys.exit(f"bench: {made.explain()}")
    return target


def distance() -> float:
    """How far the cores are from each other now; 0: there is one."""
    done = process.run([distance_program()], timeout=60)
    if done.status != 0:
        sys.exit(f"bench: {done.explain()}")
    return float(done.output)


def run_where_cores_stay(run: Callable[[], Found]) -> Sample:
    """A run amid which the cores have not moved, if one of the tries is such a one."""
    before = distance()
    for _ in range(TRIES):
        found = run()
        after = distance()
        if max(before, after) <= MOVED * min(before, after):
            break
        before = after
    return Sample(after, found)


def measure(rounds: int, seconds: float) -> dict[str, dict[Candidate, Found]]:
    """All candidates in turn, `rounds` times: the medians, by how far the cores were from each other."""
    samples: dict[Candidate, list[Sample]] = {candidate: [] for candidate in candidates()}
    for turn in range(rounds):
        for candidate, runs in samples.items():
            print(f"\rround {turn + 1} of {rounds}: {candidate.mpi.title} over {candidate.name:<30}", end="", file=sys.stderr, flush=True)
            runs += [run_where_cores_stay(lambda: candidate.run(mode, ranks, seconds)) for mode, ranks in MODES]  # noqa: B023
    print("\r" + " " * 78 + "\r", end="", file=sys.stderr)
    distances = sorted(run.distance for runs in samples.values() for run in runs)
    border = border_of(distances)
    results = {}
    for kind, least, most in (("near", 0.0, border), ("far", border, float("inf"))):
        found = [one for one in distances if least <= one < most]
        if found:
            where = f"cores {kind}" if border < float("inf") else "cores at all distances met"
            title = f"{where}: 2 KiB in slots take {statistics.median(found):.0f} ns one way ({found[0]:.0f} to {found[-1]:.0f}); {len(found)} of {len(distances)} runs"
            results[title] = {candidate: medians([run.found for run in runs if least <= run.distance < most]) for candidate, runs in samples.items()}
    return results


def border_of(distances: list[float]) -> float:
    """The least distance of far cores, in a sorted list; infinite if there are none. A machine's own two kinds of
    distance leave a gap between them, its noise does not."""
    fewest = max(1, int(FEWEST * len(distances)))
    gaps = [(after / before, after) for before, after in zip(distances, distances[1:]) if before > 0][fewest - 1 : len(distances) - fewest]
    widest, border = max(gaps, default=(0.0, 0.0))
    return border if widest >= GAP else float("inf")


def medians(runs: list[Found]) -> Found:
    """Of each number the median over the runs that have it."""
    keys = dict.fromkeys(key for run in runs for key in run)
    return {key: statistics.median(run[key] for run in runs if key in run) for key in keys}


def length_text(length: int) -> str:
    """A length with its unit."""
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if length >= size and length % size == 0:
            return f"{length // size} {unit}"
    return f"{length} B"


def value_text(metric: str, value: float) -> str:
    """A value with its unit."""
    if metric == "rate":
        return f"{value / 1e6:.2f} M/s"
    return f"{value / 1e6:.0f} MB/s" if metric == "bandwidth" else f"{value * 1e6:.2f} us"


def ratio(metric: str, ours: float, theirs: float) -> float:
    """How much better the first is: above 1, better."""
    return ours / theirs if metric in ("rate", "bandwidth") else theirs / ours


def table(title: str, ours: Candidate, others: list[Candidate], results: dict[Candidate, Found]) -> list[str]:
    """One table: our values, and the ratio to each of the others beside its values, where there are such."""
    lines = [title, "", f"{'':<24}{ours.name:>16}" + "".join(f"{other.name:>26}" for other in others)]
    for metric, ranks, length in results[ours]:
        value = results[ours][metric, ranks, length]
        label = f"{metric} {length_text(length)}" + (f" x {ranks}" if ranks != 2 else "")
        row = f"{label:<24}{value_text(metric, value):>16}"
        for other in others:
            theirs = results[other].get((metric, ranks, length))
            row += f"{value_text(metric, theirs):>18}{ratio(metric, value, theirs):>7.2f}x" if theirs else f"{'not measured':>26}"
        lines.append(row)
    return [*lines, ""]


def report(kind: str, results: dict[Candidate, Found]) -> list[str]:
    """All tables of one kind of machine."""
    lines = [f"{os.cpu_count()} cores, {platform.processor() or platform.machine()}, Linux {platform.release()}; {kind}", ""]
    plain = [candidate for candidate in results if not candidate.scheme and not candidate.memory]
    for mpi in MPIS:
        here = [candidate for candidate in plain if candidate.mpi == mpi]
        ours = next(candidate for candidate in here if candidate.fabric is Fabric.TIDEGATE)
        lines += table(f"{mpi.title}: Tidegate (default settings) against the others; above 1.00x Tidegate is better", ours,
                       [other for other in here if other is not ours], results)
    schemes = {candidate.scheme: candidate for candidate in results if candidate.scheme}
    for scheme in ("static", "dynamic"):
        lines += table(f"MPICH: `{scheme}` against `none`, both with {AMPLE_SLOTS} slots per peer; above 1.00x `{scheme}` is better",
                       schemes[scheme], [schemes["none"]], results)
    bounds = {candidate.memory: candidate for candidate in results if candidate.memory}
    lines += table(f"MPICH: a bound of {USUAL_MEMORY}, the default, against {AMPLE_MEMORY}, where neither is passed; above 1.00x the default is better",
                   bounds[USUAL_MEMORY], [bounds[AMPLE_MEMORY]], results)
    return lines


def json_rows(results: dict[str, dict[Candidate, Found]]) -> list[dict]:
    """The medians of the messages, for programs."""
    units = {"bandwidth": "B/s", "rate": "1/s"}
    return [{"machine": kind, "mpi": candidate.mpi.name, "fabric": candidate.fabric.value, "scheme": candidate.scheme or "default",
             "rx_memory": candidate.memory or "default", "metric": metric, "ranks": ranks, "length_bytes": length, "value": value, "unit": units.get(metric, "s")}
            for kind, by_candidate in results.items() for candidate, found in by_candidate.items() for (metric, ranks, length), value in found.items()]


def main() -> None:
    """Measures, prints, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, help="how often the candidates take turns (default 5)")
    parser.add_argument("--seconds", type=float, help="measuring time of one number in one round (default 0.05)")
    parser.add_argument("--only", choices=["messages", "floods", "schemes", "hosts", "offload", "slow_sink"], help="only this part")
    parser.add_argument("--json", type=Path, default=BUILD / "bench.json", help="where the numbers go (default build/bench.json)")
    options = parser.parse_args()
    rounds = options.rounds or (1 if options.quick else 5)
    seconds = options.seconds or (0.02 if options.quick else 0.05)
    found = {"schema": "tidegate-bench/3", "cores": os.cpu_count(), "kernel": platform.release(), "rounds": rounds, "seconds_per_number": seconds}
    if options.only in (None, "messages"):
        results = measure(rounds, seconds)
        for kind, by_candidate in results.items():
            print("\n".join(report(kind, by_candidate)), flush=True)
        found["results"] = json_rows(results)
    if options.only in (None, "floods"):
        floods = pressure.measure(min(rounds, FLOOD_ROUNDS), pressure.QUICK if options.quick else pressure.FLOODS)
        print("\n".join(pressure.report(floods)), flush=True)
        found["floods"] = pressure.rows(floods)
    if options.only in (None, "schemes"):
        compared = schemes.measure(min(rounds, SCHEME_ROUNDS), schemes.QUICK if options.quick else schemes.MEMORIES)
        print("\n".join(schemes.report(compared)), flush=True)
        found["schemes"] = schemes.rows(compared)
    if options.only in (None, "hosts"):
        # That needs root: where it is missing, `hosts` says so.
        words = [sys.executable, SOURCE.with_name("hosts.py"), "--rounds", str(rounds), "--seconds", str(seconds)]
        if subprocess.run(words).returncode != 0:
            print("Jobs over two hosts are left out; the reason is above.", flush=True)
    if options.only in (None, "offload"):
        subprocess.run([sys.executable, SOURCE.with_name("offload.py"), "--rounds", str(2 if options.quick else 25)], check=True)
    if options.only in (None, "slow_sink"):
        words = [sys.executable, SOURCE.with_name("slow_sink.py"), "--rounds", str(1 if options.quick else 5)]
        if subprocess.run(words).returncode != 0:
            print("The slow memory is left out; the reason is above.", flush=True)
    options.json.parent.mkdir(exist_ok=True)
    options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
