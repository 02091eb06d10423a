"""`tidegate top` on jobs that run: on a terminal, as text, and as JSON."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
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
    with process.started(command, environment(place, mpi)) as job:
        yield job


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
        # The culprit comes first, and is marked.
        lines = terminal.wait_for(lambda lines: [line.split()[0] for line in lines[5:9] if line.strip()] == ["2", "0", "1", "3"] and lines[5].startswith("2 !"))
        assert len(lines) == 24 and lines[23].rstrip().endswith("q quit"), lines
        terminal.press("Enter")
        terminal.wait_for_text("rank 2: holdup, process", "is waited for by", "receive memory")
        terminal.press("m")
        terminal.wait_for_text("row waits for column", "for   2")
        terminal.press("?")
        terminal.wait_for_text("show the rank of that name")
        terminal.press("x", "m", "/")
        # No other row can have it: the oldest receive of each rank may name any rank.
        terminal.press("-l", str(next(row["pid"] for row in job["processes"] if row["rank"] == 3)))
        terminal.press("Enter")
        terminal.wait_for(lambda lines: lines[5].startswith("3 ") and not lines[6].strip())
        # A letter right behind Escape would be one key with Alt.
        terminal.press("Escape")
        terminal.wait_for(lambda lines: len(lines) > 8 and lines[8].startswith("3 "))
        # Cells of other ranks have this text, too: it is the name of one.
        terminal.press("/")
        terminal.press("-l", "rank 2")
        terminal.press("Enter")
        terminal.wait_for(lambda lines: lines[5].startswith("2 !") and not lines[6].strip() and "/rank 2: 1 of 4" in lines[4])
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


def said(lines: list[str]) -> str:
    """The lines of a screen as one text, without the bar at the right edge."""
    return " ".join(line.rstrip().rstrip("█║").strip() for line in lines)


@needs_terminal
def test_a_small_terminal_shows_the_whole_sentence_the_culprit_and_all_of_the_help(place):
    with running(place, RANKS, ["tag"]) as job:
        # Between the first looks it may have been starting for most of the time.
        found = job_once(place, job, lambda found: "tag 78" in found["sentence"] and {entry["state"] for entry in found["processes"]} == {"waits"})
        assert [entry["culprit"] for entry in found["processes"]] == [False, False, False, True], found["sentence"]
        with Terminal([TIDEGATE, "top", str(job.pid), "--interval", "0.2"], environment(place), width=40, height=10) as terminal:
            lines = terminal.wait_for(lambda lines: "of rank 3 accepts" in said(lines).replace("receive of", "of"))
            text = said(lines)
            assert "rank 3 waits" in text and "for a message of rank 0 (tag 77, MPI_COMM_WORLD), which waits for rank 3; 4 ranks wait in all;" in text, lines
            assert lines[8].startswith("3 !") and lines[9].rstrip().endswith("q quit"), lines
            terminal.press("?")
            terminal.wait_for_text("choose, or scroll")
            terminal.press("End")
            terminal.wait_for_text("its process", "other keys back")
            terminal.press("x")
            terminal.wait_for_text("3 !")
            terminal.press("q")
            assert terminal.wait_for_end() == 0


@pytest.mark.full
@needs_terminal
@pytest.mark.parametrize(("width", "height"), [(40, 10), (80, 24), (200, 50)])
def test_forty_eight_ranks_are_shown_at_every_size(width, height, place):
    with running(place, 48, ["tag"]) as job:
        job_once(place, job, lambda found: "tag 77" in found["sentence"] and "tag 78" in found["sentence"], timeout=120)
        with Terminal([TIDEGATE, "top", str(job.pid)], environment(place), width=width, height=height) as terminal:
            lines = terminal.wait_for(lambda lines: "rank 47 waits" in said(lines) and "of rank 47 accepts" in said(lines).replace("receive of", "of"), timeout=60)
            head = next(place for place, line in enumerate(lines) if line.startswith("rank  !"))
            assert lines[head + 1].startswith("47 !   waits"), lines
            assert len(lines) == height and not [line for line in lines[head + 1:-1] if not line.strip()], lines


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


def test_processes_whose_pages_are_of_another_version_are_no_missing_job(place, tmp_path):
    """Jobs that `mpiexec` alone has started are found by their environments, and those of another version as well."""
    pages = tmp_path / "pages"
    pages.mkdir()
    # A page that an ended job has left is no job.
    (pages / "999999999-0.counters").write_bytes(b"\x01" * 64)
    mine = environment(place) | {"FI_TIDEGATE_STATS_DIR": str(pages)}
    with subprocess.Popen(["sleep", "60"], env=mine, stdout=subprocess.DEVNULL) as job:
        try:
            assert not [found for found in once(place)["jobs"] if str(pages) in (found["trouble"] or "")]
            (pages / f"{job.pid}-0.counters").write_bytes(b"\x01" * 64)
            [found] = [found for found in once(place)["jobs"] if str(pages) in (found["trouble"] or "")]
        finally:
            job.kill()
    assert "pages of counters are left out" in found["trouble"], found


def test_a_rank_that_is_stopped_is_told_from_one_that_computes(place):
    with running(place, RANKS, ["slow", "600", "2"], "--slots", "8") as job:
        found = job_once(place, job, lambda found: found["processes_alive"] == RANKS)
        stopped = found["processes"][2]["pid"]
        os.kill(stopped, signal.SIGSTOP)
        try:
            found = job_once(place, job, lambda found: found["processes"][2]["doing"] == "stopped" and "not called MPI" in found["sentence"])
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert found["processes"][2]["state"] == "stopped" and "and is stopped" in found["sentence"], found["sentence"]


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


def end(mark: str, number: signal.Signals) -> None:
    """Ends all processes with a mark, of which some may be ending."""
    for pid in process.marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def without_run(mpi: Mpi, pages: Path, *words: str | Path) -> Iterator[subprocess.Popen]:
    """A job that was started without `tidegate run`, with pages in a folder."""
    pages.mkdir()
    mark = os.urandom(8).hex()
    command = [mpi.launcher, "-n", "2", *words, mpi.compile(HOLDUP), "slow", "600", "1"]
    environment = mpi.environment(Fabric.TIDEGATE, STATS_DIR=str(pages)) | {process.MARKER: mark}
    job = subprocess.Popen([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        yield job
    finally:
        end(mark, signal.SIGKILL)
        job.wait()


def folders(place: Path, *words: str, **variables: str) -> dict[str, str | None]:
    """The jobs that `tidegate top` shows, with their jobs of Slurm."""
    done = process.run([TIDEGATE, "top", "--once", "--json", "--interval", "0.1", *words], environment(place) | variables, timeout=30)
    assert done.status == 0, done.explain()
    return {found["id"]: found["slurm_job"] for found in json.loads(done.output)["jobs"]}


def test_jobs_that_no_run_has_started_are_found_and_which_job_of_slurm_they_are(place, tmp_path):
    """As `srun` starts them: numbers that no job of Slurm has at the same time."""
    mpi, one, other = mpis.mpich(), tmp_path / "one", tmp_path / "other"
    ids = [f"9{os.getpid()}{number}" for number in range(2)]
    with (without_run(mpi, one, "env", f"SLURM_JOB_ID={ids[0]}", "SLURM_ARRAY_JOB_ID=77", "SLURM_ARRAY_TASK_ID=3") as job,
          without_run(mpi, other, "env", f"SLURM_JOB_ID={ids[1]}", "SLURM_STEP_ID=4")):
        deadline = time.monotonic() + 60
        while len(both := {name: slurm for name, slurm in folders(place).items() if slurm in ids}) < 2:
            assert time.monotonic() < deadline, folders(place)
        assert both == {str(one): ids[0], str(other): ids[1]}
        # Inside of a job of Slurm, as by `srun --overlap --jobid=…`, its own jobs are meant.
        assert folders(place, SLURM_JOB_ID=ids[0]) == {str(one): ids[0]}
        assert set(folders(place, SLURM_JOB_ID="1" * 19)) >= set(both)
        for word, expected in ((ids[0], one), ("77_3", one), (f"{ids[1]}.4", other), (ids[1], other), (f"{ids[1]}.5", None), ("1" * 19, None)):
            assert folders(place, "--slurm", word) == ({str(expected): both[str(expected)]} if expected else {}), word
        # Each process of a job names it.
        [found] = once(place, one)["jobs"]
        for pid in (job.pid, *(entry["pid"] for entry in found["processes"])):
            assert [found["id"] for found in once(place, pid)["jobs"]] == [str(one)]
    assert not set(folders(place)) & set(both), "the pages are still there, and their processes are not"


USERS = (10_001, 10_002)
"""Two users of whom the system need not know."""


def as_user(user: int, *words: str | Path) -> list[str | Path]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]


def why_no_users() -> str | None:
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "needs root and setpriv, to be several users"
    needed = [TIDEGATE, mpis.mpich().launcher]
    readable = subprocess.run(as_user(USERS[0], "test", "-x", needed[0], "-a", "-x", needed[1])).returncode == 0
    return None if readable else f"other users may not read {needed[0]} or {needed[1]}"


@pytest.mark.skipif(why_no_users() is not None, reason=str(why_no_users()))
def test_root_sees_the_jobs_of_all_users_and_users_are_told_whose_a_job_is(place):
    mpi, jobs = mpis.mpich(), []
    # Other users cannot read where the tests' programs and folders are.
    with tempfile.TemporaryDirectory() as shared:
        os.chmod(shared, 0o755)
        program = shutil.copy(mpi.compile(HOLDUP), shared)
        mark = os.urandom(8).hex()
        try:
            for user in USERS:
                home = Path(shared) / str(user)
                home.mkdir(mode=0o700)
                os.chown(home, user, user)
                variables = mpi.bare_environment() | {"XDG_RUNTIME_DIR": str(home), "HOME": str(home), process.MARKER: mark}
                command = as_user(user, TIDEGATE, "run", mpi.launcher, "-n", "2", program, "slow", "600", "1")
                jobs.append(subprocess.Popen([str(word) for word in command], env=variables, cwd=home, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True))
            for user, job in zip(USERS, jobs, strict=True):
                found = job_once(place, job, lambda found: bool(found["roots"]))
                assert found["user"] == f"user {user}" and found["processes_alive"] == 2, found
            rank = found["processes"][0]["pid"]
            assert [found["id"] for found in once(place, rank)["jobs"]] == [str(jobs[1].pid)]
            text = process.run([TIDEGATE, "top", "--once"], environment(place), timeout=30).output
            assert all(f"job {job.pid} of user {user}, mpich, 2 of 2 ranks" in text for user, job in zip(USERS, jobs, strict=True)), text
            variables = mpi.bare_environment()
            own = process.run(as_user(USERS[0], TIDEGATE, "top", "--once", "--json"), variables, timeout=30, cwd=Path("/"))
            assert [found["id"] for found in json.loads(own.output)["jobs"]] == [str(jobs[0].pid)], own.explain()
            for word in (jobs[1].pid, rank, Path(shared) / str(USERS[1])):
                refused = process.run(as_user(USERS[0], TIDEGATE, "top", "--once", str(word)), variables, timeout=30, cwd=Path("/"))
                assert refused.status == 2 and f"belongs to user {USERS[1]}: run `tidegate top` as root or as user {USERS[1]}" in refused.output, refused.explain()
        finally:
            end(mark, signal.SIGTERM)
            for job in jobs:
                job.wait(20)


@pytest.mark.full
def test_one_slow_receiver_among_sixteen_is_found(place):
    with running(place, 16, ["slow", "600", "5"], "--slots", "8") as job:
        found = job_once(place, job, lambda found: bool(found["roots"]) and found["roots"][0]["holds_up"] >= 12, timeout=60)
        assert found["roots"][0]["who"][0]["rank"] == 5, found["sentence"]


@pytest.mark.full
def test_an_all_to_all_with_few_slots_is_told_from_a_slow_rank(place):
    # With 8 slots a message of 2,000 bytes within a host hardly ever waits for credits.
    with running(place, 8, ["alltoall", "600", "2000"], "--slots", "4", "--scheme", "static") as job:
        job_once(place, job, lambda found: "none of them stands out" in found["sentence"], timeout=60)
        job_once(place, job, lambda found: "credits" in {wait["cause"] for wait in found["waits"]}, timeout=60)
        # Each look finds receives open, of which none is to blame.
        said = [job_once(place, job, lambda found: bool(found["roots"]))["sentence"] for _ in range(5)]
        assert not [sentence for sentence in said if "for a message of" in sentence], said
