"""The eight schemes on the real library, at equal receive memory: what simulated clusters compare in `tidegate paper compare`,
on eight ranks of one host.

Times are medians over the rounds, as multiples of the best of a row's whole block, that is of all schemes and memories; below a
scheme's least memory stands that least.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.schemes import BUFFER_BYTES, LENGTH, RANKS, SCHEMES, SLOT_BYTES, Samples, Workload, imb, least, options, ours, run, slow_receiver

MEMORIES = [8 << 10, 32 << 10, 128 << 10, 512 << 10, 4 << 20]
QUICK = [32 << 10, 512 << 10]
WORKLOADS = [
    imb("Exchange"), imb("Alltoall"), imb("Allreduce"), imb("Gather"),
    ours("Random 2 KiB", Path(__file__).with_name("random.c"), 2000, LENGTH),
    slow_receiver(500, 500),
]
TITLES = {"flood": "flooding the slow one", "beside": "exchanges beside it", "pairs": "fast pairs"}
"""What a program with several times calls them."""
REFUSED = ("mailbox_full", "refusals")
CONTROL = ("credit_packets", "return_requests", "return_responses")

Results = dict[tuple[str, int, str], Samples]
"""By program, memory, scheme."""


def measure(rounds: int, memories: list[int]) -> Results:
    """All in turn, `rounds` times."""
    results: Results = {}
    for turn in range(rounds):
        for workload in WORKLOADS:
            for memory in memories:
                for scheme in SCHEMES:
                    words = options(scheme, memory)
                    if words is None:
                        continue
                    text = f"round {turn + 1} of {rounds}: {workload.name}, {size(memory)}, {scheme}"
                    print(f"\r{text:<100}", end="", file=sys.stderr, flush=True)
                    run(workload, words, results.setdefault((workload.name, memory, scheme), Samples()))
    print("\r" + " " * 100 + "\r", end="", file=sys.stderr)
    return results


def size(memory: int) -> str:
    """Bytes for people."""
    return f"{memory >> 20} MiB" if memory >= 1 << 20 else f"{-(-memory // 1024)} KiB"


def time_text(seconds: float) -> str:
    """A time for people."""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def times_of(workload: Workload, results: Results) -> list[str]:
    """The names of the times that a program prints."""
    return next((list(samples.times) for (name, _, _), samples in results.items() if name == workload.name), [])


def report(results: Results) -> list[str]:
    """The tables."""
    memories = sorted({memory for _, memory, _ in results})
    head = ["", *(f"| {scheme} " for scheme in SCHEMES)]
    lines = [f"The eight schemes on {RANKS} ranks of one host, at equal receive memory per rank (a slot takes {SLOT_BYTES} bytes, a posted buffer "
             f"{BUFFER_BYTES}): times as multiples of the best of the block", "",
             "| program | memory " + "".join(head) + "|", "|---|---:|" + "---:|" * len(SCHEMES)]
    for workload in WORKLOADS:
        for time in times_of(workload, results):
            best = min(samples.time(time) for (name, _, _), samples in results.items() if name == workload.name)
            title = f"{workload.name}: {TITLES[time]}" if time in TITLES else workload.name
            title += f" (1: {time_text(best)})"
            for memory in memories:
                cells = [f"{samples.time(time) / best:.2f}" if (samples := results.get((workload.name, memory, scheme))) else f"needs {size(least(scheme))}"
                         for scheme in SCHEMES]
                lines.append(f"| {title} | {size(memory)} | " + " | ".join(cells) + " |")
                title = ""
    lines += ["", "All programs together, per thousand messages: what found no room or no posted buffer, and control packets; the memory that a "
              "rank has set aside, and the most that unexpected messages took beside it (KiB)", "",
              "| memory | scheme | refused | control packets | set aside | unexpected |", "|---:|---|---:|---:|---:|---:|"]
    for memory in memories:
        for scheme in SCHEMES:
            here = [samples for (_, at, which), samples in results.items() if (at, which) == (memory, scheme)]
            if here:
                messages = max(1.0, sum(samples.counter(name) for samples in here for name in ("messages_eager", "messages_rendezvous")))
                refused, control = (1000 * sum(samples.counter(name) for samples in here for name in names) / messages for names in (REFUSED, CONTROL))
                aside = max(samples.counter("mailbox_bytes") for samples in here) / RANKS / 1024
                unexpected = max(samples.counter("unexpected_peak_bytes") for samples in here) / 1024
                lines.append(f"| {size(memory)} | `{scheme}` | {refused:.1f} | {control:.1f} | {aside:.0f} | {unexpected:.0f} |")
    return [*lines, ""]


def rows(results: Results) -> list[dict]:
    """The results for programs: seconds, and counters of the job."""
    return [{"program": name, "memory_bytes": memory, "scheme": scheme, "seconds": {time: samples.time(time) for time in samples.times},
             "counters": {counter: samples.counter(counter) for counter in samples.counters}}
            for (name, memory, scheme), samples in results.items()]
