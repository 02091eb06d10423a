"""Networks that no machine of the tests has, played by a provider of our own (`harness.fake`; the header of tests/programs/fake/fake.h
says all that it can): each provider of libfabric with the addresses, modes, keys and sizes that it has, all of which it insists on;
and each fault that such a provider may have. Everything arrives as it was sent, or the job ends with an error that says why."""

from __future__ import annotations

import pytest
from conftest import PROGRAMS
from harness import apart, fake, faults, process
from harness import hosts as made
from harness import mpi as mpis
from harness.mpi import Fabric

TRAFFIC, SILENCE = PROGRAMS / "traffic.c", PROGRAMS / "silence.c"
WORDS = ["2", "10", "200003", "1"]
"""Of `traffic`: messages of all ways, by packets, carried and read."""
READS, NO_READS = "which reads their memory", "long messages go packet by packet"
SOON_SECONDS = 15
"""So long a job may take that is to succeed, or to be refused, in less than one."""
FAILED_SECONDS = 10
"""A network that fails for so long has failed (fi_tidegate(7))."""
LOST_SECONDS = FAILED_SECONDS + 15
"""A job whose network has failed is over by then; the rest is for a machine that is busy."""

why_none = made.why_not() or fake.why_not()
pytestmark = pytest.mark.skipif(why_none is not None, reason=str(why_none))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("these are networks below Tidegate")


def unmended(*values, why: str, slow: bool = False) -> object:
    """A case that does not do what it should."""
    marks = [pytest.mark.xfail(strict=True, reason=why), *([pytest.mark.full] if slow else [])]
    return pytest.param(*values, marks=marks)


def slow(*values) -> object:
    """A case of the whole matrix alone."""
    return pytest.param(*values, marks=pytest.mark.full)


def ids(value: object) -> str | None:
    """Settings as the name of a test."""
    return ",".join(f"{word}" for word in value.values()) if isinstance(value, dict) else None


def settings(bad: str = "", like: str = "plain", **others: str) -> dict[str, str]:
    return {"LIKE": like} | ({"BAD": bad} if bad else {}) | {key.upper(): value for key, value in others.items()}


def arrives(hosts: made.Hosts, own: dict[str, str], *, name: str = "mpich", ranks_per_host: int = 1, **parameters: str) -> str:
    """A job over this provider, which succeeds. Each of its misdeeds has happened. Returns what it said."""
    mpi = mpis.WHEELS[name]()
    result = fake.run(hosts, mpi, ranks_per_host, [mpi.compile(TRAFFIC), *WORDS], own, timeout=SOON_SECONDS, **parameters)
    assert fake.VIOLATION not in result.output, result.explain()
    assert result.clean and f"from each of {2 * ranks_per_host} ranks to each, all as sent" in result.output, result.explain()
    for misdeed in filter(None, own.get("BAD", "").split(",")):
        assert f"fake-fi: {misdeed.split(':')[0]}\n" in result.output, f"{misdeed} did not happen\n{result.explain()}"
    return result.output


def refused(result: process.Result, *said: str) -> None:
    """It has ended with an error that says this."""
    assert fake.VIOLATION not in result.output, result.explain()
    assert result.status != 0 and not result.timed_out, result.explain()
    for words in said:
        assert words in result.output, f"{words} is not said\n{result.explain()}"


NETWORKS = {
    "psm3": (settings(like="psm3", name="psm3"), "psm3/irdma0 (100 Gbit/s)"),
    "psm2": (settings(like="psm2", name="psm2"), "psm2/hfi1_0"),
    "efa": (settings(like="efa", name="efa"), "efa/rdmap0s6-rdm"),
    "verbs": (settings(like="verbs", name="verbs;ofi_rxm"), "verbs;ofi_rxm/mlx5_0 (200 Gbit/s)"),
    "verbs-without-ip": (settings(like="verbs_ib", name="verbs;ofi_rxm"), "verbs;ofi_rxm/mlx5_0"),
    "verbs-datagrams": (settings(like="verbs_ud", name="verbs;ofi_rxd"), "verbs;ofi_rxd/mlx5_0-dgram"),
    "cxi": (settings(like="cxi", name="cxi"), "cxi/cxi0 (200 Gbit/s)"),
    "cxi-client-keys": (settings(like="cxi_client", name="cxi"), "cxi/cxi0"),
    "opx-2.5": (settings(like="opx25", name="opx"), "opx/hfi1_0"),
    "opx-2.6": (settings(like="opx26", name="opx"), "opx/hfi1_0 (400 Gbit/s)"),
    "tcp-rxm": (settings(like="rxm", name="tcp;ofi_rxm"), "tcp;ofi_rxm/eth0"),
    "udp-rxd": (settings(like="rxd", name="udp;ofi_rxd"), "udp;ofi_rxd/eth0"),
    "sockets": (settings(like="sockets", name="sockets"), "sockets/eth0"),
    "unknown": (settings(), "fake/plain0 (25 Gbit/s)"),
}
"""The settings with which each is played, and the words of the log about it."""
REMOVED = ("psm3", "psm2", "efa", "udp-rxd")
"""Removing an address ends a process, or breaks what others have with it."""


@pytest.mark.parametrize("network", NETWORKS)
def test_each_network_carries_a_job(two, network):
    own, said = NETWORKS[network]
    output = arrives(two, own)
    assert f"other hosts are reached by {said}" in output and READS in output, output


@pytest.mark.parametrize("network", [name if name in REMOVED else slow(name) for name in NETWORKS])
def test_each_network_carries_a_job_of_several_ranks_on_each_host(two, network):
    """Peers of the same host leave at the end, one after the other."""
    arrives(two, NETWORKS[network][0], ranks_per_host=2)


IN_TWO_PARTS = [name for name, (own, _) in NETWORKS.items() if ";" in own.get("NAME", "")]


@pytest.mark.full
@pytest.mark.parametrize(("name", "network"), [(name, network) for name in ("openmpi", "impi") for network in NETWORKS if (name, network) not in {("impi", it) for it in IN_TWO_PARTS}])
def test_each_network_carries_each_mpi(two, name, network):
    """Intel MPI's libfabric asks its own utilities alone for providers in two parts."""
    arrives(two, NETWORKS[network][0], name=name)


def test_efa_is_taken_and_not_efa_direct(two):
    """Of two offers of one domain; the first has messages of 8928 bytes, though it states more."""
    arrives(two, settings(like="efa_direct", name="efa"))


FACTS = {
    "one-receive": settings(facts="rx=1"),
    "few-registered-receives": settings(facts="rx=4", like="verbs"),
    "one-send": settings(facts="tx=1"),
    "short-messages": settings(facts="longest=16384"),
    "short-reads": settings(facts="longest=20001", like="verbs"),
    "keys-of-4": settings(facts="key=4"),
    "short-keys-of-its-own": settings(facts="key=2", like="verbs"),
    "context": settings(facts="context=1"),
    "context2": settings(facts="context=2"),
    "registered": settings(facts="mr=4"),
    "registered-by-short-keys": settings(facts="mr=4,key=1"),
    "names-uncounted": settings(facts="insertion=1"),
    "names-afresh": settings(facts="insertion=2"),
}
"""Facts that a provider may have, and none of the networks above has."""
WITHOUT_READS = {"keys-of-1": "key=1", "keys-of-3": "key=3", "no-reads": "reads=0", "raw-keys": "mr=8", "events": "mr=256", "unknown-mode": "mr=65536",
                 "local-of-endpoint": "mr=516"}


SELDOM = ("keys-of-4", "short-messages", "context", "registered", "names-afresh")
"""Seen by the networks above too."""


@pytest.mark.parametrize("facts", [slow(name) if name in SELDOM else name for name in FACTS])
def test_limits_and_modes_are_kept(two, facts):
    arrives(two, FACTS[facts])


@pytest.mark.parametrize("facts", ["keys-of-3", "raw-keys", *(slow(name) for name in WITHOUT_READS if name not in ("keys-of-3", "raw-keys"))])
def test_where_reads_cannot_be_used_messages_go_packet_by_packet(two, facts):
    output = arrives(two, settings(facts=WITHOUT_READS[facts]))
    assert NO_READS in output and READS not in output, output


@pytest.mark.parametrize("network", ["verbs-without-ip", slow("cxi"), slow("psm3")])
def test_a_thread_that_makes_progress_is_alone_in_the_network(two, network):
    """The provider ends a process two of whose threads are in one domain."""
    arrives(two, NETWORKS[network][0], PROGRESS="thread")


def test_ports_are_those_of_sockets_or_of_the_port_beside_them(two):
    """Where addresses have no ports, the port by which peers notice the end of a process is in the range."""
    for network in ("efa", "verbs"):
        arrives(two, NETWORKS[network][0], PORTS="24100-24163")


@pytest.mark.parametrize(("domains", "taken"), [("a0:100d,a1:25,a2:50,a3:0", "fake/a2 (50 Gbit/s)"), ("a0:100d", "fake/a0")])
def test_a_device_that_is_up_and_fast_is_taken(two, domains, taken):
    assert f"other hosts are reached by {taken}" in arrives(two, settings(domains=domains))


MASKED = [
    settings("first_domain_fails,odd_offers,mr_fails:3,key_most", "verbs"), settings("mr_fails,close_busy"), settings("mr_bind_fails", "cxi"),
    settings("send_again:3,send_refused:5,send_error:7,twice:4"), settings("send_lost:9,lost:15!"), settings("send_blocks:5!", rank="0"),
    settings("recv_again:3,recv_refused:7,recv_error:15!"), settings("recv_cut:12!,recv_long:16!"),
    settings("read_again:3,read_refused:4,read_error:5"), settings("read_missing,cq_error:5"),
    settings("late,shuffle,stray:5,send_again:3,read_error:3,recv_error:15!,twice:4", "verbs"),
    settings("null_remove,null_reg"), settings("null_read"), settings("null_mr_bind", "cxi"),
]
"""Several faults of one kind at once, so that few jobs see them all."""
EACH = [f"send_{fault}" for fault in ("again:3", "refused:5", "error:5", "error:20+", "lost:5")] + ["lost:15", "twice:3"]
EACH += [f"recv_{fault}" for fault in ("again:3", "refused:7", "error:15", "cut:15", "long:15")]
EACH += ["read_again:3", "read_refused:3", "read_error:3", "late", "shuffle", "stray:3", "cq_error:5", "odd_offers", "first_domain_fails", "key_most"]
EACH += ["mr_fails", "mr_fails:3", "close_busy", "null_remove", "null_reg", "null_read"]
"""Each of them alone."""


@pytest.mark.parametrize("own", [*MASKED, *(slow(settings(bad, like)) for bad in EACH for like in ("verbs", "cxi") if not (bad, like) in (("mr_fails", "verbs"), ("null_reg", "verbs"), ("key_most", "cxi")))], ids=ids)
def test_a_fault_that_can_be_made_up_for_changes_nothing(two, own):
    arrives(two, own)


@pytest.mark.skipif(apart.why_not() is not None, reason=str(apart.why_not()))
@pytest.mark.parametrize("library", [slow("system"), "impi"])
@pytest.mark.parametrize("bad", ["no_fd", "no_getwait", "trywait_again", "null_trywait", "late"])
def test_a_thread_that_sleeps_is_woken_however_little_there_is_to_sleep_on(two, tmp_path, library, bad):
    extra = {"FAKE_BAD": bad, "FI_PROVIDER_PATH": str(fake.providers(two, mpis.impi()))}
    result = apart.run(two, library, tmp_path, "sleep", 0.2, network="fake", timeout=SOON_SECONDS, extra=extra)
    assert result.clean and "apart: woke" in result.output and f"fake-fi: {bad}\n" in result.output, result.explain()


@pytest.mark.parametrize(("own", "said"), [
    slow(settings("fabric_fails"), "opening fake/plain0: fi_fabric failed: Input/output error"),
    (settings("domain_fails"), "opening fake/plain0: fi_domain failed"),
    slow(settings("av_fails"), "fi_av_open failed"),
    slow(settings("cq_fails"), "fi_cq_open failed"),
    slow(settings("endpoint_fails"), "fi_endpoint failed"),
    slow(settings("bind_fails"), "fi_ep_bind failed"),
    (settings("enable_fails"), "fi_enable failed"),
    (settings("no_offers"), "this libfabric offers no reliable datagrams by it; it does by: "),
    (settings("name_fails"), "fi_getname failed: Input/output error"),
    (settings("name_long"), "its addresses have"),
    (settings("name_empty"), "opening fake/plain0: it gives its endpoint no address (fi_getname)"),
    (settings("mr_fails", "verbs"), "fi_mr_reg failed: Cannot allocate memory"),
    (settings("null_control"), "fi_enable failed: Function not implemented"),
    *(slow(settings(f"null_{function}"), "Function not implemented") for function in ("bind", "av_open", "cq_open", "endpoint", "domain", "getname")),
    (settings(like="ucx"), "opening fake/mlx5_0: its addresses have 1024 bytes, and there is room for 32"),
    *((settings(like="ucx", name=name), "its addresses have hundreds of bytes") for name in ("ucx", "mlx")),
    (settings(like="mrail", name="tcp;ofi_mrail"), "FI_TIDEGATE_FABRIC=tcp;ofi_mrail: "),
    (settings(like="opx_daos", name="opx"), "opening opx/hfi1_0: its addresses have 48 bytes"),
    (settings(facts="longest=16383"), "the messages of fake/plain0 have at most 16383 bytes, and 16384 are needed"),
], ids=ids)
def test_what_cannot_be_opened_is_refused_with_a_word(two, own, said):
    mpi = mpis.mpich()
    refused(fake.run_alone(two, mpi, [mpi.compile(TRAFFIC), *WORDS], own, timeout=SOON_SECONDS), "tidegate: ", said)


def test_a_domain_that_is_not_offered_is_refused_with_those_that_are(two):
    mpi, own = mpis.mpich(), settings(like="verbs", name="verbs;ofi_rxm")
    result = fake.run_alone(two, mpi, [mpi.compile(TRAFFIC), *WORDS], own, timeout=SOON_SECONDS, FABRIC="verbs;ofi_rxm/mlx5_9")
    refused(result, 'there is no domain "mlx5_9"; there are: mlx5_0, mlx5_1')


def test_hosts_whose_addresses_are_of_different_kinds_say_so(two):
    """A device with IP on one host, and one without on the other."""
    mpi = mpis.mpich()
    script = two.folder / "of-both-kinds"
    script.write_text('#!/bin/sh\n[ "$PMI_RANK" = 0 ] && export FAKE_LIKE=verbs\nexec "$@"\n')
    script.chmod(0o755)
    own = settings(like="verbs_ib", name="verbs;ofi_rxm")
    refused(fake.run(two, mpi, 1, [script, mpi.compile(TRAFFIC), *WORDS], own, timeout=SOON_SECONDS), "is of another kind than ours")


NEVER_TAKEN = "nothing is taken for a peer that lives, which cannot be told from one that computes: 15 minutes (link/fabric/liveness.rs, SILENT_FOR)"
NEVER_ENDS = "an operation to a peer that lives and that never ends is waited for without an end: it cannot be told from one that computes"


@pytest.mark.parametrize(("own", "said"), [
    (settings("insert_fails"), "inserting the network address"),
    (settings("insert_none"), "inserting the network address"),
    (settings("null_insert"), "inserting the network address"),
    (settings("insert_nowhere"), "inserting the network address"),
    slow(settings("null_recv"), "the network below has failed: posting a receive failed: Function not implemented"),
    slow(settings("null_send"), "sending to it failed for 10 s: sending failed: Function not implemented"),
    slow(settings("null_cq_read"), "the network below has failed: reading completions failed"),
    slow(settings("null_cq_readerr,send_error:5"), "the network below has failed: reading completions failed"),
    slow(settings("cq_error:50+"), "the network below has failed: reading completions failed: Input/output error"),
    slow(settings("recv_again:34+"), "the network below has failed: posting a receive failed: Resource temporarily unavailable"),
    slow(settings("recv_refused:34+"), "the network below has failed: posting a receive failed: Input/output error"),
    slow(settings("send_lost:20+"), "sending to it failed for 10 s: an operation failed"),
    slow(settings("send_refused:20+"), "sending to it failed for 10 s: "),
    slow(settings("mr_fails:3+", "verbs"), "registers no memory to send from"),
    slow(settings("readerr_again,send_error:5"), "the network below has failed"),
    slow(settings(facts="longest_message=16000"), "sending to it failed for 10 s: "),
    unmended(settings("send_again:20+"), "peer lost", why=NEVER_TAKEN, slow=True),
    unmended(settings("swallowed:20+"), "peer lost", why=NEVER_ENDS, slow=True),
    unmended(settings("read_swallowed:3!"), "peer lost", why=NEVER_ENDS, slow=True),
], ids=ids)
def test_a_fault_that_cannot_be_made_up_for_ends_the_job_with_an_error(two, tmp_path, own, said):
    # The launcher drops what a rank said just before it ended, now and then.
    mpi, words = mpis.mpich(), tmp_path / "words"
    result = fake.run(two, mpi, 1, faults.in_range(two, [mpi.compile(TRAFFIC), *WORDS], words), own, timeout=LOST_SECONDS)
    result.output += words.read_text() if words.exists() else ""
    refused(result, said)


@pytest.mark.parametrize("words", [pytest.param([], id="silent"), pytest.param(["talking"], id="talking", marks=pytest.mark.full)])
@pytest.mark.parametrize("own", [
    settings(like="rxm", name="tcp;ofi_rxm"), slow(settings(like="sockets", name="sockets")),
    slow(settings()),
    slow(settings("dead_errors")),
    settings("dead_silent"),
], ids=ids)
def test_a_rank_killed_on_another_host_is_named(two, tmp_path, own, words):
    """Whether the network below refuses what goes to it for ever, ends each send with an error, or tells nothing at all."""
    mpi = mpis.mpich()

    def kill(processes: set[int]) -> None:
        two.end(max(pid for pid in processes if faults.runs(pid, SILENCE) and two.has(1, pid)))

    once, said = faults.Once(tmp_path / "begun", 0.5, kill), tmp_path / "said"
    program = faults.in_range(two, [mpi.compile(SILENCE), once.file, *words], said)
    result = made.run(two, mpi, 1, program, fake.environment(two, mpi, own), "-disable-auto-cleanup", timeout=LOST_SECONDS, observe=once)
    result.output += said.read_text() if said.exists() else ""
    assert once.done_at is not None, result.explain()
    refused(result, "peer lost: rank 1")
