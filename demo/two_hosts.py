"""A job over two hosts, which are made of network namespaces: two ranks on each exchange messages of all lengths, of which every byte
is checked. Those of one host use shared memory, the others the network, and `tidegate run` brings the counters of all of them home."""

from __future__ import annotations

from collections.abc import Callable

from harness import counted, hosts
from harness import mpi as mpis
from harness.paths import ROOT

TRAFFIC = ROOT / "tests" / "programs" / "traffic.c"
ROUNDS, MESSAGES, LONGEST, SEED = 10, 20, 200_003, 1
RANKS_PER_HOST = 2
RUN_SECONDS = 60


def table(progress: Callable[[str], None]) -> list[str]:
    """Runs everything; the lines of the table, or one that says why there is none. Exits if a job fails."""
    why_not = hosts.why_not()
    if why_not:
        return [f"A job over two hosts was left out: {why_not}."]
    lines = [f"Two hosts with {RANKS_PER_HOST} ranks each, made of network namespaces; all sent to all, {ROUNDS} rounds of {MESSAGES} messages of up to {LONGEST} B",
             "", f"{'':<12}{'all data':<12}{'seconds':>8}{'batches between hosts':>24}{'MiB read by receivers':>28}", "-" * 84]
    with hosts.Hosts(2) as two:
        for make in mpis.WHEELS.values():
            mpi = make()
            progress(f"Two hosts: {mpi.title}")
            job = counted.run(two, mpi, RANKS_PER_HOST, [mpi.compile(TRAFFIC), ROUNDS, MESSAGES, LONGEST, SEED], timeout=RUN_SECONDS)
            if not job.result.clean or "all as sent" not in job.result.output:
                raise SystemExit(f"demo: the job over two hosts failed\n{job.result.explain()}")
            read = job.sum("bytes_read") / (1 << 20)
            lines.append(f"{mpi.title:<12}{'right':<12}{job.result.seconds:>8.1f}{job.sum('batches_sent'):>24,}{read:>28.1f}")
    progress("")
    return lines
