#!/usr/bin/env python3
"""One rank among others whose memory takes data slowly (`benches/slow_sink.c`): what that costs the others, with long messages
fetched in chunks and at once (`FI_TIDEGATE_RENDEZVOUS`), and over libfabric's `tcp` without Tidegate. Two hosts made of
namespaces, joined by a link of a limited rate; as root.

Half of the ranks, on one host, keep a message under way to each of the other half, on the other host. The candidates take turns,
round after round, each without a slow rank and with one; `kept` is what the others receive beside it, as a part of what they
receive without, in the same round: medians, with the least and the most of all rounds. A slow rank takes less of the link than its share, so
that what keeps to itself is more than 1.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from harness import hosts as made  # noqa: E402
from harness import mpi as mpis  # noqa: E402
from harness.mpi import Fabric  # noqa: E402
from offload import numbers  # noqa: E402

SOURCE = Path(__file__).with_name("slow_sink.c")
WAYS: dict[str, tuple[Fabric, dict[str, str]]] = {
    "chunked": (Fabric.TIDEGATE, {}),
    "chunked, 128 KiB": (Fabric.TIDEGATE, {"FI_TIDEGATE_CHUNK_SIZE": "128k"}),
    "single": (Fabric.TIDEGATE, {"FI_TIDEGATE_RENDEZVOUS": "single"}),
    "chunked, thread": (Fabric.TIDEGATE, {"FI_TIDEGATE_PROGRESS": "thread"}),
    "tcp": (Fabric.TCP, {}),
}
LENGTHS = {"256 KiB": 256 << 10, "2 MiB": 2 << 20}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--ranks", type=int, default=8, help="of both hosts together")
    options.add_argument("--link", default="800mbit", help="rate of the link, as tc takes it (default 800mbit, 100 MB/s)")
    options.add_argument("--rate", type=float, default=3, help="what the slow memory takes, in MB/s (default 3, an eighth of its share)")
    options.add_argument("--seconds", type=float, default=5, help="measuring time of one number in one round")
    arguments = options.parse_args()
    if (why := made.why_not()) is not None:
        sys.exit(why)
    mpi = mpis.mpich()
    program = mpi.compile(SOURCE)
    with made.Hosts(2) as hosts:
        for host in range(2):
            hosts.shell(host, f"tc qdisc add dev eth0 root tbf rate {arguments.link} burst 256kb latency 20ms")
        print(f"MPICH, {arguments.ranks} ranks on two hosts, {arguments.link}, slow memory {arguments.rate:g} MB/s, {arguments.rounds} rounds\n")
        print(f"{'message':<10}{'long messages':<20}{'others, none slow':>20}{'beside a slow one':>20}{'kept':>24}{'least of them':>16}{'the slow one':>14}")
        for title, length in LENGTHS.items():
            found: dict[str, list[tuple[dict[str, float], dict[str, float]]]] = {name: [] for name in WAYS}
            for _ in range(arguments.rounds):
                for name, (fabric, beside) in WAYS.items():
                    pair = []
                    for rate in (0.0, arguments.rate):
                        words = [program, str(arguments.seconds), str(length), str(rate)]
                        done = made.run(hosts, mpi, arguments.ranks // 2, words, mpi.environment(fabric) | beside, timeout=300)
                        pair.append(numbers(done))
                    found[name].append((pair[0], pair[1]))
            for name, pairs in found.items():
                kept = [slow["others"] / none["others"] for none, slow in pairs]
                cells = [statistics.median(value) for value in ([none["others"] for none, _ in pairs], [slow["others"] for _, slow in pairs])]
                spread = f"{statistics.median(kept):.2f} ({min(kept):.2f} to {max(kept):.2f})"
                least, slow = (statistics.median(slow[word] for _, slow in pairs) for word in ("least", "slow"))
                print(f"{title:<10}{name:<20}" + "".join(f"{cell:>15.1f} MB/s" for cell in cells) + f"{spread:>24}{least:>11.1f} MB/s{slow:>9.1f} MB/s",
                      flush=True)


if __name__ == "__main__":
    main()
