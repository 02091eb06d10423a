"""The remedies that docs/hosts.md names against strangers: a firewall that lets in the ports of a job and no others, and one
that lets no other user of the hosts reach these."""

from __future__ import annotations

import subprocess

import pytest
from conftest import PROGRAMS
from harness import faults, process
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

HOLDUP = PROGRAMS / "holdup.c"
PORTS, LAUNCHER_PORTS = "41000-41001", "42000-42010"
NOBODY = "65534"
OTHER_USERS = f"tcp dport {PORTS} meta skuid != 0 counter reject with tcp reset"
"""For what leaves a host."""
OTHER_PORTS = f"tcp flags & (syn | ack) == syn tcp dport != {{ {PORTS}, {LAUNCHER_PORTS} }} counter drop"
"""For what comes to a host."""
RULES = {"input": OTHER_PORTS, "output": OTHER_USERS}

pytestmark = [pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not())),
              pytest.mark.skipif(faults.why_no_packets() is not None, reason=str(faults.why_no_packets()))]


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's ports")


def connects(hosts: made.Hosts, host: int, port: int, user: str) -> bool:
    """Whether a user of this host reaches a port of the first one."""
    script = f"import socket, sys; sys.exit(socket.socket().connect_ex(('{hosts.addresses[0]}', {port})) != 0)"
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "timeout", "5", "/usr/bin/python3", "-c", script]
    return subprocess.run(hosts.on(host, words)).returncode == 0


def test_a_firewall_lets_a_job_run_and_keeps_other_users_from_its_ports(two):
    # fi_tidegate(7): "A rule for what leaves a host keeps its other users from these ports, on the host and towards others."
    mpi, tried = mpis.mpich(), {}

    def is_open() -> bool:
        return bool(subprocess.run(two.on(0, ["ss", "-ltnH", "sport", "=", ":41000"]), capture_output=True, text=True).stdout)

    def attempt(_: set[int]) -> None:
        if not tried and is_open():
            found = {(host, user): connects(two, host, 41000, user) for host in range(2) for user in ("0", NOBODY)}
            # Else the job may have ended before the last attempt.
            if is_open():
                tried.update(found)

    with faults.firewall(two, **RULES):
        # The second, where the machine is so loaded that the first ends too soon.
        for seconds in ("2", "20"):
            result = made.run(two, mpi, 2, [mpi.compile(HOLDUP), "alltoall", seconds, "1000"],
                              mpi.environment(Fabric.TIDEGATE, PORTS=PORTS) | {"MPIEXEC_PORT_RANGE": LAUNCHER_PORTS.replace("-", ":")}, timeout=60, observe=attempt)
            assert result.clean, result.explain()
            if tried:
                break
    assert tried == {(0, "0"): True, (0, NOBODY): False, (1, "0"): True, (1, NOBODY): False}


def test_without_the_range_that_firewall_stops_the_job_so_the_range_is_what_lets_it_run(two):
    mpi = mpis.mpich()
    with faults.firewall(two, **RULES):
        result: process.Result = made.run(two, mpi, 1, [mpi.compile(HOLDUP), "alltoall", "0.1", "100"],
                                          mpi.environment(Fabric.TIDEGATE) | {"MPIEXEC_PORT_RANGE": LAUNCHER_PORTS.replace("-", ":")}, timeout=2.5)
    assert result.timed_out, result.explain()
