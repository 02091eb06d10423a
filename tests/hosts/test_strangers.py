"""Attacks by processes that belong to no job: another user of a host, another host, and a thief of a connection. fi_tidegate(7),
Strangers and SECURITY, says how far they get; each sentence stands over the test that checks it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process, strangers
from harness.mpi import Fabric

STEADY, TRAFFIC = PROGRAMS / "steady.c", PROGRAMS / "traffic.c"
SCRIPT = Path(strangers.__file__)
SECONDS = 40
"""How long a job goes on at most while a stranger tries."""

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("strangers of Tidegate")


@dataclass
class Rank:
    """A process of a job: its host, and where it listens for other hosts."""

    pid: int
    host: int
    port: int


@dataclass
class Attack:
    """A stranger that comes once a job of four ranks on two hosts is under way."""

    hosts: made.Hosts
    words: Callable[[dict[int, Rank]], list[str | int]]
    """What it is told: the ranks by number."""
    over: Path
    """Made when it has done what it can: then the job ends."""
    host: int = 1
    ranks: dict[int, Rank] = field(default_factory=dict)
    said: dict = field(default_factory=dict)
    grown: int = 0
    """By how many MiB rank 0 has grown meanwhile at most."""
    looks: int = 0
    child: subprocess.Popen | None = None
    before: int = 0

    def __call__(self, processes: set[int]) -> None:
        if self.child:
            self._watch()
            return
        self.ranks = self._find(processes)
        self.looks += len(self.ranks) == 4
        # Some looks later they have met each other.
        if self.looks < 12:
            return
        self.before = self._resident()
        command = [*strangers.NOBODY, sys.executable, SCRIPT, *self.words(self.ranks)]
        words = [str(word) for word in self.hosts.on(self.host, command)]
        # Not one of the job's processes, which are known by their environment.
        environment = {"PATH": os.environ["PATH"]}
        self.child = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def _watch(self) -> None:
        if not self.said:
            self.grown = max(self.grown, self._resident() - self.before)
            if self.child.poll() is not None:
                self.end()

    def end(self) -> dict:
        """What it has done."""
        self.over.touch()
        if self.child and not self.said:
            self.child.terminate() if self.child.poll() is None else None
            output = self.child.communicate()[0]
            found = re.search(r"^\{.*\}$", output, re.MULTILINE)
            self.said = json.loads(found[0]) if found else {"output": output}
        return self.said

    def _resident(self) -> int:
        try:
            return int(Path(f"/proc/{self.ranks[0].pid}/statm").read_text().split()[1]) * 4096 >> 20
        except OSError:
            return 0

    def _find(self, processes: set[int]) -> dict[int, Rank]:
        ports = {}
        for host, address in enumerate(self.hosts.addresses):
            listed = subprocess.run([str(word) for word in self.hosts.on(host, ["ss", "-ltnpH"])], capture_output=True, text=True).stdout
            for line in listed.splitlines():
                where, pid = line.split()[3], re.search(r"pid=(\d+)", line)
                if pid and where.startswith(address):
                    ports[int(pid[1])] = (host, int(where.rsplit(":", 1)[1]))
        ranks = {}
        for pid in processes & ports.keys():
            try:
                found = re.search(rb"PMI_RANK=(\d+)", Path(f"/proc/{pid}/environ").read_bytes())
            except OSError:
                continue
            if found:
                ranks[int(found[1])] = Rank(pid, *ports[pid])
        return ranks


def run(attack: Attack) -> process.Result:
    mpi = mpis.mpich()
    attack.over.unlink(missing_ok=True)
    words = [mpi.compile(STEADY), str(SECONDS), attack.over]
    result = made.run(attack.hosts, mpi, 2, words, mpi.environment(Fabric.TIDEGATE), observe=attack, timeout=60)
    attack.end()
    return result


def survives(attack: Attack) -> None:
    result = run(attack)
    assert result.status == 0 and "all as sent, and nothing else" in result.output, f"{attack.said}\n{result.explain()}"
    assert attack.said.get("sent", 0) > 0 and attack.said["user"] == 65534, attack.said


# fi_tidegate(7): "Another user of the host sees ports, process ids, and the names of segments and sockets, none of which leads to
# the secret or to these numbers."
# fi_tidegate(7): "They cannot send messages to an endpoint of this user, or end it, by anything that they see; what they can do who
# reach the port of its network is said under Strangers."
def test_another_user_of_the_host_gets_in_by_nothing_that_it_sees(two, tmp_path):
    attack = Attack(two, lambda ranks: ["guess", two.addresses[0], ranks[0].port], tmp_path / "over", host=0)
    survives(attack)
    assert attack.said["numbers"] > 4, "it sees the names at least"
    assert attack.said["answers"] == 0, "it gets no answer to what it asks for at its own address"


# fi_tidegate(7): "It cannot say in a rank's name that it hears another no more or that it closes, nor join the job as one of its ranks."
def test_a_thief_of_a_connection_ends_no_rank_and_joins_nothing(two, tmp_path):
    attack = Attack(two, lambda ranks: ["steal", two.addresses[0], ranks[0].port, ranks[2].port, ranks[3].port], tmp_path / "over")
    survives(attack)


# fi_tidegate(7): "libfabric's tcp believes whoever reaches its port, and nothing above it can prevent that: a header of 16 bytes can
# end the process, one that promises a long message makes it set aside as much memory, and a connection that claims another process's
# port takes the place of that one's."
# If this fails, libfabric has been mended: the page has to say so.
def test_what_libfabrics_tcp_lets_strangers_do(two, tmp_path):
    attack = Attack(two, lambda ranks: ["promise", two.addresses[0], ranks[0].port, 200, 1], tmp_path / "over")
    result = run(attack)
    assert result.status == 0 and attack.grown > 150, f"{attack.grown} {attack.said}\n{result.explain()}"
    attack = Attack(two, lambda ranks: ["acknowledge", two.addresses[0], ranks[0].port], tmp_path / "over")
    result = run(attack)
    assert result.status != 0, f"{attack.said}\n{result.explain()}"


def mixed(hosts: made.Hosts, tmp_path: Path, first: str, second: str) -> process.Result:
    """A job whose ranks on the second host have another network."""
    mpi = mpis.mpich()
    script = tmp_path / "mixed.sh"
    script.write_text('#!/bin/sh\n[ "$(hostname)" = h1 ] || export FI_TIDEGATE_FABRIC="$OTHER"\nexec "$@"\n')
    script.chmod(0o755)
    environment = mpi.environment(Fabric.TIDEGATE, FABRIC=first)
    environment |= {"OTHER": second}
    if ";" in second:
        # A provider in two parts asks for the lower one as if it were the application.
        environment["FI_PROVIDER"] = "tidegate,tcp,ofi_rxm"
    # Else the launcher ends the others before they can say anything.
    words = [script, mpi.compile(TRAFFIC), "1", "1", "8", "1"]
    return made.run(hosts, mpi, 1, words, environment, "-disable-auto-cleanup", timeout=60)


# fi_tidegate(7): "Addresses tell the parameters that both sides must have alike, and which network their owners have, and greetings
# tell them again at the first contact; where they differ, both sides get an error that names the parameter and both values, at
# fi_av_insert(3) if the address is inserted after the endpoint was opened."
@pytest.mark.parametrize(("first", "second"), [("tcp", "tcp;ofi_rxm"), ("tcp", "sockets"), ("tcp", "none")])
def test_hosts_that_chose_different_networks_say_so_on_both_sides(two, tmp_path, first, second):
    result = mixed(two, tmp_path, first, second)
    assert result.status != 0 and not result.timed_out, result.explain()
    for ours, theirs in ((first, second), (second, first)):
        said = rf"FI_TIDEGATE_FABRIC is {re.escape(ours)} here \(pid \d+\) and {re.escape(theirs)} at pid \d+"
        assert re.search(said, result.output), result.explain()


# fi_tidegate(7): "One that is not there is refused with those that are, and so is one that leaves no host (shm, sm2)."
def test_a_network_that_leaves_no_host_is_refused(two):
    mpi = mpis.mpich()
    words = [mpi.compile(TRAFFIC), "1", "1", "8", "1"]
    result = made.run(two, mpi, 1, words, mpi.environment(Fabric.TIDEGATE, FABRIC="shm"), timeout=60)
    assert result.status != 0 and not result.timed_out, result.explain()
    assert "FI_TIDEGATE_FABRIC=shm: it leaves no host" in result.output and "it does by:" in result.output, result.explain()


def number(pid: int) -> int:
    """What the host key has of a host's /dev/shm (crates/link/src/shm/life.rs)."""
    facts = os.stat(f"/proc/{pid}/root/dev/shm")
    return (facts.st_dev ^ facts.st_ino << 32) * 0x9E3779B97F4A7C15 % 2**64


# fi_tidegate(7): "Copies of one virtual machine that were resumed from the same snapshot see the same boot id; the network carries
# what goes between them, as each has an address that the other has not, if both have opened one."
def test_copies_of_one_virtual_machine_are_two_hosts():
    """The second host shows a boot id by which, with its own /dev/shm, it has the first one's host key."""
    boot = int(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""), 16)
    with made.Hosts(2) as hosts:
        folded = (boot >> 64 ^ boot) % 2**64 ^ number(hosts.pids[0]) ^ number(hosts.pids[1])
        shown = hosts.folder / "boot_id"
        shown.write_text(f"{folded:032x}\n")
        subprocess.run([str(word) for word in hosts.on(1, ["mount", "--bind", shown, "/proc/sys/kernel/random/boot_id"])], check=True)
        mpi = mpis.mpich()
        result = made.run(hosts, mpi, 2, [mpi.compile(TRAFFIC), "2", "5", "70000", "1"], mpi.environment(Fabric.TIDEGATE), timeout=60)
    assert result.clean and "from each of 4 ranks to each, all as sent" in result.output, result.explain()
