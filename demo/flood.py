"""The flood: ranks send as fast as they can to one that waits for something else, and memory is short.

Each MPI carries it as it does by default and over Tidegate; once with all the memory it wants, once with no rank allowed to grow by
more than ROOM_MIB (RLIMIT_AS, as `ulimit -v` sets it).
"""

from __future__ import annotations

from collections.abc import Callable

from harness import mpi as mpis
from harness import pressure
from harness.mpi import Fabric, Mpi
from harness.pressure import Flood, Outcome

FLOOD = Flood("flood", "order", 2, 90_000, 1024, "blocking")
WAIT_MS = 1000
"""How long the receiver waits for the other message."""
BOUND = "16M"
ROOM_MIB = 64
RUN_SECONDS = 30
CARRIERS = {Fabric.NATIVE: "its default", Fabric.TIDEGATE: "Tidegate"}


def run(mpi: Mpi, fabric: Fabric, room_mib: int) -> Outcome:
    """One run; `room_mib` 0: without a limit."""
    parameters = {"RX_MEMORY": BOUND} if fabric is Fabric.TIDEGATE else {}
    return pressure.run(mpi, fabric, FLOOD, pause_ms=WAIT_MS, timeout=RUN_SECONDS, room_mib=room_mib, **parameters)


def end(outcome: Outcome) -> str:
    """How a run ended, in words."""
    if outcome.seconds is not None:
        return f"{outcome.seconds:.1f} s, all data right"
    if outcome.result.timed_out:
        return f"no end in {RUN_SECONDS} s"
    return f"killed (exit status {outcome.result.status})"


def table(progress: Callable[[str], None]) -> list[str]:
    """Runs everything; the lines of the table. Exits if Tidegate does not do what it promises."""
    sent = FLOOD.senders * FLOOD.count * FLOOD.length >> 20
    lines = [f"{FLOOD.senders} ranks send {sent} MiB in messages of {FLOOD.length} B to a rank that waits {WAIT_MS / 1000:g} s for another one; "
             f"FI_TIDEGATE_RX_MEMORY={BOUND}", "", f"{'':<12}{'carried by':<14}{'without a limit':<28}{'receiver grows by':>18}   with {ROOM_MIB} MiB to grow", "-" * 98]
    for make in mpis.WHEELS.values():
        mpi = make()
        for fabric, carrier in CARRIERS.items():
            progress(f"The flood: {mpi.title}, {carrier}")
            free, limited = run(mpi, fabric, 0), run(mpi, fabric, ROOM_MIB)
            grown = f"{free.grown.get(0, 0) / 1024:.0f} MiB"
            lines.append(f"{mpi.title if fabric is Fabric.NATIVE else '':<12}{carrier:<14}{end(free):<28}{grown:>18}   {end(limited)}")
            for outcome in (free, limited):
                if fabric is Fabric.TIDEGATE and outcome.seconds is None:
                    raise SystemExit(f"demo: the flood did not end\n{outcome.result.explain()}")
    progress("")
    return lines
