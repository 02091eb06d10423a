"""`tidegate top` on jobs that run: on a terminal, as text, and as JSON."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric, Mpi
from harness.paths import TIDEGATE
from harness.terminal import Terminal, why_not

HOLDUP = PROGRAMS / "holdup.c"
RANKS = 4

needs_terminal = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


def environment(place: Path, mpi: Mpi | None = None) -> dict[str, str]:
    """The environment of a user of an MPI whose jobs are registered in a place of their own. Others of this user are seen as well:
    the tests look for theirs by the process of its `tidegate run`."""
    return (mpi or mpis.mpich()).bare_environment() | {"XDG_RUNTIME_DIR": str(place)}


@contextmanager
def running(place: Path, ranks: int, words: list[str], *options: str, mpi: Mpi | None = None, wrapper: tuple[str, ...] = ()) -> Iterator[subprocess.Popen]:
    """A job of `holdup` that runs meanwhile; at the end it is interrupted. `wrapper`: what each rank is started by."""
    mpi = mpi or mpis.mpich()
    command = [TIDEGATE, "run", *options, mpi.launcher, "-n", str(ranks), *wrapper, mpi.compile(HOLDUP), *words]
    mark = os.urandom(8).hex()
    job = subprocess.Popen([str(word) for word in command], env=environment(place, mpi) | {process.MARKER: mark}, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield job
    finally:
        job.terminate()
        try:
            job.wait(10)
        finally:
            for pid in process.marked(mark):
                os.kill(pid, signal.SIGKILL)


def once(place: Path, *words: str | int) -> dict:
    """What `tidegate top --once --json` says."""
    done = process.run([TIDEGATE, "top", "--once", "--json", *map(str, words)], environment(place), timeout=30)
    assert done.status == 0, done.explain()
    return json.loads(done.output)


def job_once(place: Path, job: subprocess.Popen, is_right: Callable[[dict], bool], *, timeout: float = 20.0) -> dict:
    """What it says of a job, as soon as that is right."""
    deadline = time.monotonic() + timeout
    while True:
        found = [found for found in once(place, "--interval", "1")["jobs"] if found["id"] == str(job.pid)]
        if found and len(found[0]["processes"]) > 0 and is_right(found[0]):
            return found[0]
        assert time.monotonic() < deadline, json.dumps(found and {key: value for key, value in found[0].items() if key != "processes"}, indent=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runtime")
    folder.chmod(0o700)
    return folder


@pytest.fixture(scope="module")
def slow(place: Path) -> Iterator[subprocess.Popen]:
    """A job in which rank 2 receives slowly what all others send it."""
    with running(place, RANKS, ["slow", "600", "2"], "--slots", "8") as job:
        yield job


@pytest.mark.quick
def test_a_running_job_is_found_and_who_holds_it_up(slow, place):
    # A rank that opened its endpoint between the two looks has no rates, and waits for less than all of the time. On a busy machine
    # a second may pass in which nobody has a processor.
    def has_moved(processes: list[dict]) -> bool:
        rates = [entry["rates"] for entry in processes]
        return all(rates) and sum(rate["messages_per_s"] for rate in rates) > 0 and rates[2]["bytes_received_per_s"] > 0

    found = job_once(place, slow, lambda found: found["roots"] and found["roots"][0]["holds_up"] == RANKS - 1 and has_moved(found["processes"]))
    assert found["command"].endswith("holdup slow 600 2") and found["mpi"] == "mpich" and found["is_running"]
    assert [entry["rank"] for entry in found["processes"]] == list(range(RANKS)) and found["processes_alive"] == RANKS
    root = found["roots"][0]
    assert root["kind"] == "rank" and root["who"][0]["rank"] == 2, found["sentence"]
    # Which of the two ends first depends on how long the ranks have had the processors for themselves.
    assert root["cause"] in ("credits", "window")
    assert found["processes"][0]["counters"]["messages_eager"] > 0


def test_one_look_as_text_fits_eighty_columns(slow, place):
    done = process.run([TIDEGATE, "top", "--once", str(slow.pid)], environment(place), timeout=30)
    assert done.status == 0 and f"job {slow.pid}, mpich, 4 of 4 ranks" in done.output, done.explain()
    assert all(len(line) <= 80 for line in done.output.splitlines() if "/" not in line.split(":")[0]), done.output


def test_without_a_terminal_it_names_the_other_way(place):
    done = process.run([TIDEGATE, "top"], environment(place), timeout=30)
    assert done.status == 2 and "--once" in done.output and "terminal" in done.output, done.explain()


def test_it_ends_with_its_terminal(slow, place):
    """A terminal window that is closed, a connection that breaks: reading from a terminal that is gone never ends."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(TIDEGATE, [str(TIDEGATE), "top", str(slow.pid), "--interval", "0.2"], environment(place))
    assert os.read(terminal, 100)
    time.sleep(0.5)
    os.close(terminal)
    ended, until = 0, time.monotonic() + 20
    while not ended and time.monotonic() < until:
        ended, _ = os.waitpid(pid, os.WNOHANG)
        time.sleep(0.1)
    if not ended:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert ended


def test_a_job_that_is_not_there_is_named(place):
    for word, part in (("999999999", "no job 999999999"), ("/nowhere", "FI_TIDEGATE_STATS_DIR")):
        done = process.run([TIDEGATE, "top", "--once", word], environment(place), timeout=30)
        assert done.status == 2 and part in done.output, done.explain()


@needs_terminal
def test_the_terminal_shows_ranks_one_rank_and_the_matrix(slow, place):
    job = job_once(place, slow, lambda found: len(found["processes"]) == RANKS)
    with Terminal([TIDEGATE, "top", str(slow.pid), "--interval", "0.2"], environment(place)) as terminal:
        terminal.wait_for_text("rank 2 holds up 3 ranks", f"job {slow.pid}, mpich, 4 of 4 ranks")
        ranks = [str(rank) for rank in range(RANKS)]
        lines = terminal.wait_for(lambda lines: [line.split()[0] for line in lines[5:9] if line.strip()] == ranks)
        assert len(lines) == 24 and lines[23].rstrip().endswith("q quit"), lines
        terminal.press("Enter")
        terminal.wait_for_text("rank 0: holdup, process", "waits for", "receive memory")
        terminal.press("m")
        terminal.wait_for_text("row waits for column", "for   2")
        terminal.press("?")
        terminal.wait_for_text("show only ranks with a text")
        terminal.press("x", "m", "/")
        # No other row can have it: the oldest receive of each rank may name any rank.
        terminal.press("-l", str(next(row["pid"] for row in job["processes"] if row["rank"] == 3)))
        terminal.press("Enter")
        terminal.wait_for(lambda lines: lines[5].startswith("3 ") and not lines[6].strip())
        # A letter right behind Escape would be one key with Alt.
        terminal.press("Escape")
        terminal.wait_for(lambda lines: len(lines) > 8 and lines[8].startswith("3 "))
        terminal.press("r")
        terminal.wait_for(lambda lines: [line.split()[0] for line in lines[5:9] if line.strip()] == ["3", "2", "1", "0"])
        terminal.press("q")
        assert terminal.wait_for_end() == 0


@needs_terminal
def test_the_terminal_may_change_its_size(slow, place):
    with Terminal([TIDEGATE, "top", str(slow.pid), "--interval", "0.2"], environment(place)) as terminal:
        terminal.wait_for_text("4 of 4 ranks")
        terminal.resize(200, 50)
        terminal.wait_for_text("holds", "refused/s", "oldest receive")
        # A screen may be seen half drawn.
        terminal.wait_for(lambda lines: len(lines) == 50 and lines[49].rstrip().endswith("q quit"))
        terminal.resize(30, 5)
        terminal.wait_for_text("too small")
        terminal.resize(80, 24)
        terminal.wait_for(lambda lines: len(lines) == 24 and lines[23].rstrip().endswith("q quit"))
        terminal.press("C-c")
        assert terminal.wait_for_end() == 0


@needs_terminal
def test_ranks_that_are_killed_are_gone_and_a_job_whose_folder_goes_has_ended(place, tmp_path):
    mpi, pages = mpis.mpich(), tmp_path / "pages"
    pages.mkdir()
    command = mpi.command(RANKS, [mpi.compile(HOLDUP), "slow", "600", "0"])
    job = subprocess.Popen([str(word) for word in command], env=mpi.environment(Fabric.TIDEGATE, STATS_DIR=str(pages)), stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        with Terminal([TIDEGATE, "top", pages, "--interval", "0.2"], environment(place)) as terminal:
            terminal.wait_for_text("4 of 4 ranks")
            [found] = once(place, pages)["jobs"]
            os.kill(found["processes"][3]["pid"], signal.SIGKILL)
            # MPICH ends the others.
            lines = terminal.wait_for(lambda lines: any(line.startswith("3 ") and "gone" in line for line in lines))
            assert any(line.startswith("1 ") for line in lines), lines
            job.wait(20)
            shutil.rmtree(pages)
            terminal.wait_for_text("ended")
            for keys in ("Enter", "m", "?", "x", "q"):
                terminal.press(keys)
            assert terminal.wait_for_end() == 0
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def test_the_job_of_a_run_is_gone_with_it(place):
    with running(place, 2, ["apart", "600"]) as job:
        job_once(place, job, lambda found: found["processes_alive"] == 2)
    assert str(job.pid) not in [found["id"] for found in once(place)["jobs"]]


def test_a_folder_of_counter_pages_can_be_named(place, tmp_path):
    mpi = mpis.mpich()
    pages = tmp_path / "pages"
    pages.mkdir()
    done = process.run(mpi.command(2, [mpi.compile(HOLDUP), "apart", "0.5"]), mpi.environment(Fabric.TIDEGATE, STATS_DIR=str(pages)), timeout=60)
    assert done.clean, done.explain()
    [found] = once(place, pages)["jobs"]
    assert [entry["rank"] for entry in found["processes"]] == [0, 1] and found["processes_alive"] == 0


@pytest.mark.parametrize("name", mpis.WHEELS)
def test_a_tag_that_was_never_sent_is_found(name, place):
    with running(place, RANKS, ["tag"], mpi=mpis.WHEELS[name]()) as job:
        # The message with the other tag is worth a mention once it is half a second old.
        found = job_once(place, job, lambda found: "tag 77" in found["sentence"] and "tag 78" in found["sentence"])
    assert found["sentence"].startswith(f"rank {RANKS - 1} waits") and "for a message of rank 0" in found["sentence"], found["sentence"]


@pytest.mark.parametrize("name", ["openmpi", "impi"])
def test_a_slow_receiver_is_found_with_each_mpi(name, place):
    with running(place, RANKS, ["slow", "600", "2"], "--slots", "8", mpi=mpis.WHEELS[name]()) as job:
        found = job_once(place, job, lambda found: found["roots"] and found["roots"][0]["holds_up"] == RANKS - 1)
    assert found["mpi"] == name and found["roots"][0]["who"][0]["rank"] == 2, found["sentence"]
    # These two take in what has come whenever they wait for one of the senders: after some seconds the receive memory is full.
    assert found["roots"][0]["cause"] in ("credits", "window"), found["sentence"]


def test_ranks_that_a_wrapper_starts_are_one_job(place):
    # Each has a shell of its own as parent.
    with running(place, RANKS, ["slow", "600", "2"], "--slots", "8", wrapper=("sh", "-c", '"$0" "$@"; exit $?')) as job:
        found = job_once(place, job, lambda found: found["roots"] and found["roots"][0]["holds_up"] == RANKS - 1)
    assert found["processes_alive"] == RANKS and found["roots"][0]["who"][0]["rank"] == 2, found["sentence"]


def test_files_that_are_no_pages_hide_no_page(place, tmp_path):
    mpi, pages = mpis.mpich(), tmp_path / "pages"
    pages.mkdir()
    done = process.run(mpi.command(2, [mpi.compile(HOLDUP), "apart", "0.1"]), mpi.environment(Fabric.TIDEGATE, STATS_DIR=str(pages)), timeout=60)
    assert done.clean, done.explain()
    (pages / "1-0.counters").write_bytes(b"of some other version")
    os.mkfifo(pages / "2-0.counters")
    [found] = once(place, pages)["jobs"]
    assert [entry["rank"] for entry in found["processes"]] == [0, 1], found
    assert "2 pages of counters are left out" in found["trouble"] and "1-0.counters" in found["trouble"], found["trouble"]
    done = process.run([TIDEGATE, "counters", pages], environment(place), timeout=30)
    assert done.status == 0 and "2 processes of holdup" in done.output and "2 pages of counters are left out" in done.output, done.explain()


def test_a_rank_that_is_stopped_is_told_from_one_that_computes(place):
    with running(place, RANKS, ["slow", "600", "2"], "--slots", "8") as job:
        found = job_once(place, job, lambda found: found["processes_alive"] == RANKS)
        stopped = found["processes"][2]["pid"]
        os.kill(stopped, signal.SIGSTOP)
        try:
            found = job_once(place, job, lambda found: found["processes"][2]["doing"] == "stopped" and "not called MPI" in found["sentence"])
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert found["processes"][2]["state"] == "away" and "and is stopped" in found["sentence"], found["sentence"]


def test_a_folder_may_have_a_name_that_is_no_text(place, tmp_path):
    mpi = mpis.mpich()
    pages = os.path.join(os.fsencode(tmp_path), b"pages\xff\xfe")
    os.mkdir(pages)
    variables = {os.fsencode(name): os.fsencode(value) for name, value in mpi.environment(Fabric.TIDEGATE).items()}
    command = [os.fsencode(word) for word in mpi.command(2, [mpi.compile(HOLDUP), "apart", "0.1"])]
    done = subprocess.run(command, env=variables | {b"FI_TIDEGATE_STATS_DIR": pages}, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for words in (["counters", "--json"], ["top", "--once", "--json"]):
        done = subprocess.run([TIDEGATE, *words, pages], capture_output=True, timeout=30)
        assert done.returncode == 0 and len(json.loads(done.stdout).get("jobs", [1])) == 1, (words, done.stderr)
        assert b"holdup" in done.stdout
    # Recordings and traces are written there, too.
    here = mpi.bare_environment()
    for words in (["run", "--record", os.path.join(pages, b"recording")], ["record", "-o", os.path.join(pages, b"x.goal")]):
        done = subprocess.run([TIDEGATE, *words, *command], env=here, capture_output=True, timeout=60)
        assert done.returncode == 0, (words, done.stderr)
    for words in (["report", os.path.join(pages, b"recording")], ["plan", os.path.join(pages, b"x.goal"), "--schemes", "static", "--slots", "64", "--seeds", "1"]):
        done = subprocess.run([TIDEGATE, *words], capture_output=True, timeout=60)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.full
def test_one_slow_receiver_among_sixteen_is_found(place):
    with running(place, 16, ["slow", "600", "5"], "--slots", "8") as job:
        found = job_once(place, job, lambda found: bool(found["roots"]) and found["roots"][0]["holds_up"] >= 12, timeout=60)
        assert found["roots"][0]["who"][0]["rank"] == 5, found["sentence"]


@pytest.mark.full
def test_an_all_to_all_with_few_slots_is_told_from_a_slow_rank(place):
    with running(place, 8, ["alltoall", "600", "2000"], "--slots", "8", "--scheme", "static") as job:
        found = job_once(place, job, lambda found: "none of them stands out" in found["sentence"], timeout=60)
        assert "credits" in {wait["cause"] for wait in found["waits"]}, found["sentence"]
        # Each look finds receives open, of which none is to blame.
        said = [job_once(place, job, lambda found: bool(found["roots"]))["sentence"] for _ in range(5)]
        assert not [sentence for sentence in said if "for a message of" in sentence], said
