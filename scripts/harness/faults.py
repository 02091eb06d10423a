"""What happens to networks, done to hosts made of namespaces (`hosts`): packets that are lost, connections that are reset, a
slow line, a line that is cut. What is counted here says that the fault has really happened.

The faults of packets concern the ranks' connections only, and not the launcher's: ranks that are started by `in_range` listen
in a range of ports of their own.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .hosts import Hosts

LOWEST_PORT, HIGHEST_PORT = 20000, 20999
PORTS_PER_RANK = 16

TRY = """table inet tidegate {
    chain in { type filter hook input priority 0; tcp dport 1 numgen random mod 100 < 1 counter drop; \
tcp dport 1 numgen random mod 100 == 0 reject with tcp reset; }
}
"""


def why_no_packets() -> str | None:
    """Why packets cannot be dropped or refused here; `None` if they can."""
    if not shutil.which("nft"):
        return "nft drops packets (Debian: nftables)"
    tried = subprocess.run(["unshare", "-n", "nft", "-f", "-"], input=TRY, capture_output=True, text=True)
    return None if tried.returncode == 0 else f"this kernel's nft cannot drop or refuse packets at random: {tried.stderr.strip()}"


def why_no_rate() -> str | None:
    """Why lines cannot be made slow here; `None` if they can."""
    if not shutil.which("tc"):
        return "tc makes lines slow (Debian: iproute2)"
    tried = subprocess.run(["unshare", "-n", "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", "1mbit", "burst", "32kb", "latency", "50ms"],
                           capture_output=True, text=True)
    return None if tried.returncode == 0 else f"this kernel has no tbf: {tried.stderr.strip()}"


def in_range(hosts: Hosts, program: list[str | Path], words: Path | None = None) -> list[str | Path]:
    """The program as one whose ranks listen in the range. Each has a piece of it for itself: ranks that start at the same time
    would all try the same port first, and libfabric's `tcp` does not take the next one where it is refused late. `words`: a
    file for what they say on standard error, of which a launcher that ends them loses a part."""
    script = hosts.folder / "in-range"
    script.write_text(f"""#!/bin/sh
        export FI_TCP_PORT_LOW_RANGE=$(({LOWEST_PORT} + {PORTS_PER_RANK} * ${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}}))
        export FI_TCP_PORT_HIGH_RANGE=$((FI_TCP_PORT_LOW_RANGE + {PORTS_PER_RANK - 1}))
        exec "$@"{f" 2>>{words}" if words else ""}\n""")
    script.chmod(0o755)
    return [script, *program]


@contextmanager
def firewall(hosts: Hosts, **rules: str) -> Iterator[None]:
    """On the first two hosts: a rule of nft for each hook, such as `input`. A test of which this kernel's nft takes a rule not is
    skipped."""
    chains = "".join(f"chain {hook} {{ type filter hook {hook} priority 0;\n{rule};\n}}\n" for hook, rule in rules.items())
    for host in range(2):
        loaded = subprocess.run(hosts.on(host, ["nft", "-f", "-"]), input=f"table inet guard {{\n{chains}}}\n", capture_output=True, text=True)
        if loaded.returncode != 0:
            raise unittest.SkipTest(f"this kernel's nft takes no such rules: {loaded.stderr.strip()}")
    try:
        yield
    finally:
        for host in range(2):
            subprocess.run(hosts.on(host, ["nft", "delete", "table", "inet", "guard"]), check=True)


class Packets:
    """Does something to packets of the ranks' connections that come to a host, from `begin` to the end of a `with`.

    `which`: all of them, in the language of nft; `verdict`: what becomes of them; `more`: more rules, of any packets.
    """

    def __init__(self, hosts: Hosts, which: str, verdict: str, host: int = 1, more: str = "") -> None:
        self.hosts, self.host = hosts, host
        self.rules = "".join(f"tcp {port} {LOWEST_PORT}-{HIGHEST_PORT} {which} counter {verdict};\n" for port in ("dport", "sport")) + more

    def __enter__(self) -> Packets:
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def _nft(self, *words: str, text: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(self.hosts.on(self.host, ["nft", *words]), input=text, capture_output=True, text=True)

    def begin(self) -> None:
        made = self._nft("-f", "-", text=f"table inet tidegate {{\nchain in {{ type filter hook input priority 0;\n{self.rules}}}\n}}\n")
        if made.returncode != 0:
            raise RuntimeError(f"{self.rules}\n{made.stderr}")

    @property
    def count(self) -> int:
        """How many packets it has been done to."""
        listed = self._nft("list", "table", "inet", "tidegate").stdout
        return sum(int(packets) for packets in re.findall(r"counter packets (\d+)", listed))

    def end(self) -> None:
        self._nft("delete", "table", "inet", "tidegate")


def lost(hosts: Hosts, percent: int) -> Packets:
    """So many of a hundred packets to the second host are lost."""
    return Packets(hosts, f"numgen random mod 100 < {percent}", "drop")


def reset(hosts: Hosts, one_in: int) -> Packets:
    """One in so many packets to the second host is answered by a reset, and does not arrive."""
    return Packets(hosts, f"numgen random mod {one_in} == 0", "reject with tcp reset")


def cut(hosts: Hosts) -> Packets:
    """No packet reaches the ranks of the second host any more, and nobody is told. Nor does one at another port that has to do
    with the beginning of a connection: what the launcher has goes on, and nobody finds out that the host is there."""
    return Packets(hosts, "", "drop", more="tcp flags & (syn | rst) != 0 counter drop;\n")


class Rate:
    """What leaves the second host does so at no more than some rate, until the end of a `with`."""

    def __init__(self, hosts: Hosts, rate: str) -> None:
        self.hosts, self.rate = hosts, rate

    def __enter__(self) -> Rate:
        self.hosts.shell(1, f"tc qdisc add dev eth0 root tbf rate {self.rate} burst 32kb latency 50ms")
        return self

    def __exit__(self, *_: object) -> None:
        self.hosts.shell(1, "tc qdisc del dev eth0 root")


def runs(pid: int, source: Path) -> bool:
    """Whether a process runs the program that was compiled of this source."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name == source.stem
    except OSError:
        return False


class Once:
    """An observer of a job (`process.run`) that does something once, so many seconds after a file has appeared. `action` is
    called with the ids of the job's processes."""

    def __init__(self, file: Path, after: float, action: Callable[[set[int]], None]) -> None:
        self.file, self.after, self.action = file, after, action
        self.begun: float | None = None
        self.done_at: float | None = None
        """When it began to be done, by the machine's monotonic clock; `None`: not yet."""

    def __call__(self, processes: set[int]) -> None:
        now = time.monotonic()
        if self.begun is None and self.file.exists():
            self.begun = now
        if self.begun is not None and self.done_at is None and now >= self.begun + self.after:
            self.done_at = now
            self.action(processes)
