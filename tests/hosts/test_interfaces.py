"""Which interface carries a job over hosts that have several, and what is said where it is the wrong one: hosts with the bridge of
Docker, whose address is the same on all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import PROGRAMS
from harness import hosts as made
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric

TRAFFIC = PROGRAMS / "traffic.c"

pytestmark = pytest.mark.skipif(made.why_not() is not None, reason=str(made.why_not()))


@pytest.fixture(scope="module")
def with_docker() -> Iterator[made.Hosts]:
    with made.Hosts(2) as hosts:
        for host in range(2):
            # A container is there, so the bridge has a carrier; p0 is a card without a way to other hosts.
            hosts.shell(host, """
                ip link add docker0 type bridge; ip addr add 172.17.0.1/16 dev docker0; ip link set docker0 up
                ip link add c0 type veth peer name c1; ip link set c0 master docker0; ip link set c0 up; ip link set c1 up""")
        yield hosts


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("these are Tidegate's choices")


def run(hosts: made.Hosts, mpi: mpis.Mpi, level: str = "warn", **parameters: str) -> process.Result:
    environment = mpi.environment(Fabric.TIDEGATE, **parameters) | {"FI_LOG_LEVEL": level}
    return made.run(hosts, mpi, 1, [mpi.compile(TRAFFIC), "1", "1", "8", "1"], environment, timeout=60)


def test_the_bridge_of_containers_is_passed_over(with_docker):
    result = run(with_docker, mpis.mpich(), "info")
    assert result.clean and "other hosts are reached by tcp/eth0" in result.output, result.explain()


@pytest.mark.full
@pytest.mark.parametrize("name", mpis.WHEELS)
def test_each_mpi_passes_over_it(with_docker, name):
    result = run(with_docker, mpis.WHEELS[name]())
    assert result.clean, result.explain()


@pytest.mark.parametrize("default", ["p0", "eth0"])
def test_the_interface_of_the_default_route_is_taken(default):
    """Also where it leads nowhere, which the job says then: p0 has the same address on both hosts."""
    with made.Hosts(2) as hosts:
        for host in range(2):
            hosts.shell(host, f"""
                ip link add p0 type veth peer name p1; ip addr add 10.88.0.1/24 dev p0; ip link set p0 up; ip link set p1 up
                ip route add default dev {default}""")
        result = run(hosts, mpis.mpich(), "info")
    assert f"other hosts are reached by tcp/{default}" in result.output, result.explain()
    assert result.clean if default == "eth0" else (result.status != 0 and "of the interface p0" in result.output), result.explain()


def test_an_address_that_both_hosts_have_is_a_fault_with_a_remedy(with_docker):
    """It is said on standard error, without any log."""
    result = run(with_docker, mpis.mpich(), "none", FABRIC="tcp/docker0")
    assert result.status != 0 and not result.timed_out, result.explain()
    for said in ("at 172.17.0.1:", "of the interface docker0", "FI_TIDEGATE_FABRIC=tcp/INTERFACE", "eth0 (10.77.0."):
        assert said in result.output, result.explain()
