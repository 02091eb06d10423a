"""`tidegate doctor --hosts`: a job over the hosts tells whether they reach each other, and what stands between them."""

from __future__ import annotations

import json

import pytest
from harness import faults, process
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric
from harness.paths import LIBRARY_FOLDER, TIDEGATE

PORTS, LAUNCHER_PORTS = "41000-41003", "42000-42010"

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def doctor(hosts: made.Hosts, name: str, *options: str, seconds: int = 60) -> tuple[int, dict]:
    """The exit status, and what is said of the job over the hosts."""
    mpi = mpis.WHEELS[name]()
    names = hosts.addresses if name == "mpich" else hosts.names
    launcher: list[str] = {
        "mpich": ["-launcher", "rsh", "-launcher-exec", str(hosts.rsh), "-localhost", hosts.addresses[0]],
        "impi": ["-bootstrap", "rsh", "-bootstrap-exec", str(hosts.rsh)],
        "openmpi": [],
    }[name]
    words = [TIDEGATE, "doctor", "--json", "--provider-dir", LIBRARY_FOLDER, "--hosts", ",".join(names), "--timeout", str(seconds), *options]
    said = {key: value for key, value in hosts.environment(mpi).items() if key != "FI_PROVIDER_PATH"}
    environment = mpi.bare_environment() | said | {"MPIEXEC_PORT_RANGE": LAUNCHER_PORTS.replace("-", ":")}
    done = process.run(hosts.on(0, [*words, mpi.launcher, *launcher]), environment, timeout=180)
    report = json.loads(done.output[done.output.index("{"):])
    [verdict] = [check for check in report["checks"] if check["check"] == "hosts"]
    return done.status, verdict


@pytest.mark.parametrize("name", ["mpich", *(pytest.param(name, marks=pytest.mark.full) for name in ("openmpi", "impi"))])
def test_hosts_that_reach_each_other_pass_and_the_network_is_named(two, name):
    options = []
    if name == "impi":
        # Its libfabric looks for providers in one folder only.
        status, verdict = doctor(two, name)
        assert status == 1 and "offers no reliable datagrams" in verdict["text"] and "--shared DIR" in verdict["remedy"], verdict
        options = ["--shared", str(two.folder)]
    status, verdict = doctor(two, name, *options)
    assert status == 0 and verdict["verdict"] == "ok" and "exchanged messages over Tidegate by tcp/eth0" in verdict["text"], verdict


def all_ports_but(ports: str) -> str:
    """The rule by which these let connections in, and all others drop them without an answer."""
    return f"iifname eth0 tcp flags & (syn | ack) == syn tcp dport != {{ {ports} }} drop"


@pytest.mark.skipif(faults.why_no_packets() is not None, reason=str(faults.why_no_packets()))
def test_a_firewall_is_found_and_the_range_of_ports_that_it_lets_through_helps(two):
    with faults.firewall(two, input=all_ports_but(f"{LAUNCHER_PORTS}, {PORTS}")):
        status, verdict = doctor(two, "mpich", seconds=8)
        assert status == 1 and verdict["verdict"] == "no" and "a firewall drops them" in verdict["text"], verdict
        assert verdict["remedy"].startswith("tidegate doctor --ports 41000-41099 --hosts "), verdict
        status, verdict = doctor(two, "mpich", "--ports", PORTS)
        assert verdict["verdict"] == "ok", verdict


@pytest.mark.full
@pytest.mark.skipif(faults.why_no_packets() is not None, reason=str(faults.why_no_packets()))
def test_a_firewall_before_the_launcher_is_told_from_one_before_the_messages(two):
    with faults.firewall(two, input=all_ports_but(PORTS)):
        status, verdict = doctor(two, "mpich", "--ports", PORTS, seconds=4)
        assert status == 1 and "the launcher started" in verdict["text"] and "ssh" in verdict["remedy"], verdict
