"""`tidegate run --record` and `tidegate report` from end to end: real jobs, and the file in a real browser."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import browser, process
from harness import mpi as mpis
from harness.mpi import Fabric
from harness.paths import TIDEGATE
from test_run import job

LAGGARD = PROGRAMS / "laggard.c"
RANKS, SLOW = 4, 2
SIZE_MOST = 2 << 20
"""Of an HTML file."""
COUNTERS = ["messages_eager", "bytes_sent", "bytes_received", "packets_sent", "sends_delayed", "delay_ns", "unmatched_bytes",
            "receive_memory_bytes", "receive_fixed_bytes", "receive_peak_bytes"]


@pytest.fixture(autouse=True)
def only_tidegate(fabric):
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@pytest.fixture(scope="module")
def page():
    """A browser, or a reason why there is none."""
    if browser.find() is None:
        pytest.skip("no browser to look at reports with (Debian: chromium, `make optional`)")
    with browser.Page() as opened:
        yield opened


def report(*words: str | Path) -> subprocess.CompletedProcess:
    return subprocess.run([TIDEGATE, "report", *words], capture_output=True, text=True, timeout=240)


def facts(*words: str | Path) -> dict:
    """What `--json` says."""
    done = report("--json", *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory) -> Path:
    """Two recordings: `laggard` with one slow receiver, and the same without."""
    place = tmp_path_factory.mktemp("recordings")
    mpi = mpis.mpich()
    for name, pause in (("slow", "10"), ("even", "0")):
        words = ["run", "--quiet", "--scheme", "static", "--slots", "16", "--record", place / name, "--record-interval", "20ms", "--"]
        done = process.run([TIDEGATE, *words, *job(mpi, RANKS, [LAGGARD, str(SLOW), "40", pause, "1500"])], mpi.bare_environment(),
                           timeout=60, check_segments=True)
        assert done.clean and "all came" in done.output, done.explain()
    return place


def test_a_slow_receiver_is_seen_in_its_recording(recorded):
    found = facts(recorded / "slow")
    assert found["schema"] == "tidegate-report/1" and found["html"] is None
    run = found["runs"][0]
    assert run["recording"]["end"]["exit_code"] == 0 and run["recording"]["clock"] == "real" and not run["interrupted"]
    assert len(run["processes"]) == RANKS and run["samples"] >= 20
    assert run["job"]["sends_delayed"] > 0 and run["points"][0]["evidence"], run["paragraph"]
    # Each of 40 rounds has a pause of 10 ms for each of three senders.
    assert run["duration_s"] >= 1.2
    end = run["recording"]["end"]
    assert 0 < end["looks_ns"] / 1e9 < 0.25 * end["wall_time_s"], "looks take little of a processor, even of a busy one"


def test_the_report_is_a_paragraph_and_a_file(recorded):
    done = report(recorded / "slow")
    assert done.returncode == 0, done.stderr
    assert f"All else is in {recorded / 'slow' / 'report.html'}" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines()[:-1]), done.stdout
    text = (recorded / "slow" / "report.html").read_text()
    assert facts(recorded / "slow")["runs"][0]["paragraph"].split(".")[0] in text
    assert len(text) < SIZE_MOST
    assert not re.search(r"(?:src|href)=\"(?!data:)", text), "nothing is fetched"


def test_two_runs_are_compared(recorded, tmp_path):
    target = tmp_path / "both.html"
    done = report(recorded / "slow", recorded / "even", "-o", target)
    assert done.returncode == 0 and "even compared with slow: time" in done.stdout, done.stdout + done.stderr
    assert "even compared with slow" in target.read_text()
    comparison = facts(recorded / "slow", recorded / "even")["comparison"]
    time_line = next(line for line in comparison["lines"] if line["name"] == "time of the run")
    # Which of the two took longer is the machine's affair.
    assert len(time_line["numbers"]) == 2 and min(time_line["numbers"]) > 0


def test_a_folder_with_a_recording_is_refused_before_anything_starts(recorded, tmp_path):
    done = subprocess.run([TIDEGATE, "run", "--record", recorded / "slow", "touch", tmp_path / "started"], capture_output=True, text=True)
    assert done.returncode == 2 and "name another folder, or remove that one" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()
    assert report(tmp_path).returncode == 2 and "tidegate run --record" in report(tmp_path).stderr


def test_a_program_without_endpoints_leaves_nothing_to_report(tmp_path):
    done = subprocess.run([TIDEGATE, "run", "--record", tmp_path / "none", "true"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = report(tmp_path / "none")
    assert done.returncode == 2 and "no endpoint of Tidegate was seen while `true` ran" in done.stderr, done.stderr
    # A program that does not start leaves no folder.
    done = subprocess.run([TIDEGATE, "run", "--record", tmp_path / "other", "/nowhere/program"], capture_output=True, text=True)
    assert done.returncode == 127 and not (tmp_path / "other").exists()


def test_a_killed_recorder_leaves_a_recording(tmp_path):
    mpi = mpis.mpich()
    words = [TIDEGATE, "run", "--quiet", "--record", tmp_path / "cut", "--record-interval", "20ms", "--",
             *job(mpi, RANKS, [LAGGARD, str(SLOW), "100000", "1", "1500"])]
    with subprocess.Popen(list(map(str, words)), env=mpi.bare_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          start_new_session=True) as running:
        samples = tmp_path / "cut" / "samples.tidegate"
        deadline = time.monotonic() + 30
        while not samples.exists() or samples.stat().st_size < 6_000:
            assert time.monotonic() < deadline, "nothing is recorded"
            time.sleep(0.02)
        running.kill()
        running.wait()
        os.killpg(running.pid, signal.SIGKILL)
    found = facts(tmp_path / "cut")["runs"][0]
    assert found["interrupted"] and found["samples"] > 3 and found["job"]["messages_eager"] > 0
    # A file that was cut in the middle of a sample is one that ends a sample earlier.
    with samples.open("r+b") as file:
        file.truncate(samples.stat().st_size - 3)
    assert facts(tmp_path / "cut")["runs"][0]["samples"] == found["samples"] - 1
    # What the killed command left is removed by the next one.
    for left in Path("/dev/shm").glob("tidegate-run-*"):
        if not any(Path(f"/proc/{page.name.split('-')[0]}").exists() for page in left.iterdir()):
            shutil.rmtree(left, ignore_errors=True)


def test_a_simulated_run_gives_the_same_report(tmp_path):
    machine = tmp_path / "machine.toml"
    machine.write_text('[network]\ntopology = "mesh"\nsizes = "2x2"\n[flow]\nscheme = "static"\nslots_per_peer = 8\n'
                       '[workload]\noperation = "incast"\nbytes = 1024\nrepetitions = 50\n')
    words = [TIDEGATE, "sim", machine, "--record", tmp_path / "run"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    plain = subprocess.run(words[:3], capture_output=True, text=True, timeout=60)
    assert plain.stdout == done.stdout, "a run is the same whether it is recorded or not"
    run = facts(tmp_path / "run")["runs"][0]
    assert run["recording"]["clock"] == "simulated" and len(run["processes"]) == 64 and run["job"]["sends_delayed"] > 0
    assert report(tmp_path / "run").returncode == 0
    machine.write_text(machine.read_text().replace("slots_per_peer = 8", "slots_per_peer = [8, 16]"))
    done = subprocess.run([*words[:4], tmp_path / "other"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--record records one run" in done.stderr


# ---- in a browser ----------------------------------------------------------------------------------------------------------


def check(page: browser.Page, file: Path, folder: Path, **options) -> float:
    """Opens a file: nothing may be complained of, nothing but the file may be asked for, and nothing may stick out at the side."""
    page.complaints.clear()
    page.requests.clear()
    took = page.open(file, **options)
    assert page.complaints == []
    assert [address for address in page.requests if not address.startswith("data:")] == [file.resolve().as_uri()]
    assert page.value("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than its window"
    return took


def ink(page: browser.Page, canvas: str) -> int:
    """How many different colours a canvas has."""
    return page.value(f"""(canvas => {{
        const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, found = new Set();
        for (let i = 0; i < data.length; i += 4) if (data[i + 3]) found.add(data[i] << 16 | data[i + 1] << 8 | data[i + 2]);
        return found.size; }})(document.querySelector({canvas!r}))""")


def test_the_file_looks_right_in_a_browser(recorded, page, tmp_path):
    report(recorded / "slow")
    file = recorded / "slow" / "report.html"
    check(page, file, tmp_path)
    assert page.value("document.querySelectorAll('.charts canvas').length") >= 3
    assert ink(page, ".charts canvas") > 3 and ink(page, ".strips canvas") > 8
    light = page.value("getComputedStyle(document.body).backgroundColor")
    # Values by the keyboard: a rank, a time and a number.
    page.value("document.querySelector('.strips canvas').focus()")
    for _ in range(SLOW):
        page.press("ArrowDown")
    page.press("ArrowRight")
    said = page.value("document.querySelector('.strips output').textContent")
    assert re.match(rf"rank {SLOW} at [\d.]+ m?s: ", said), said
    # A chosen rank is drawn in the charts above.
    page.press("Enter")
    page.press("ArrowRight")
    assert f"rank {SLOW}: " in page.value("document.querySelector('.charts output').textContent")
    # And by the pointer.
    page.value("document.querySelector('.charts canvas').scrollIntoView()")
    x, y, width, height = page.value("(b => [b.x, b.y, b.width, b.height])(document.querySelector('.charts canvas').getBoundingClientRect())")
    page.move(x + width / 2, y + height / 2)
    assert re.match(r"[\d.]+ m?s: ", page.value("document.querySelector('.charts output').textContent"))
    assert page.complaints == []
    # Dark because the system is, and by the button.
    check(page, file, tmp_path, dark=True)
    dark = page.value("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    press = "document.getElementById('theme').click()"
    assert [page.value(f"{press}; getComputedStyle(document.body).backgroundColor") for _ in range(3)] == [light, dark, dark]
    page.print(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").stat().st_size > 10_000
    assert page.complaints == []
    # On a telephone.
    check(page, file, tmp_path, width=390, height=800)


def test_without_script_the_summary_remains(recorded, page, tmp_path):
    report(recorded / "slow")
    check(page, recorded / "slow" / "report.html", tmp_path, script=False)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    text = page.value("document.body.innerText")
    for part in ("What to change, and why", "time of the run", "Receive memory against its bound", "which is switched off"):
        assert part in text, part
    assert "colours: system" not in text, "a button that does nothing"


def test_two_runs_stand_side_by_side(recorded, page, tmp_path):
    target = tmp_path / "both.html"
    report(recorded / "slow", recorded / "even", "-o", target)
    check(page, target, tmp_path)
    left, right = page.value("[...document.querySelectorAll('#ranks .run')].map(run => run.getBoundingClientRect().x)")
    assert left < right


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def record(kind: int, payload: bytes) -> bytes:
    return bytes([kind]) + varint(len(payload)) + payload


def made_up(folder: Path, *, ranks: int, samples: int, program: str) -> None:
    """A recording as docs/report.md describes it, of ranks that all do different things at all times."""
    folder.mkdir()
    ends = {"exit_code": 0, "wall_time_s": samples / 10, "interval_ns": 10**8, "looks": samples, "looks_ns": 10**9, "stopped": None, "troubles": []}
    (folder / "recording.json").write_text(json.dumps({
        "schema": "tidegate-recording/2", "tidegate_version": "0", "clock": "real", "command": ["mpiexec", program], "mpi": None,
        "environment": {"X": program}, "host": program, "started_s": 1.8e9, "interval_ns": 10**8, "end": ends}))
    header = json.dumps({"schema": "tidegate-recording/2", "counters": COUNTERS}).encode()
    # What a counter grows by from sample to sample, as one of some records, which repeat: their sum stays positive.
    steps = []
    for variant in range(16):
        payload = varint(10**8) + varint(ranks)
        for rank in range(ranks):
            seed = rank * 2654435761 + variant * 40503
            grown = [(seed >> 3) % 5000, (seed >> 5) % 10**7, (seed >> 7) % 10**7, (seed >> 4) % 90000, (seed >> 9) % 50, (seed >> 2) % 10**8, (seed >> 6) % 4096]
            payload += varint(1 if rank else 0) + varint(7)
            for number, by in enumerate(grown):
                payload += varint(1 if number else 0) + varint(2 * by)
        steps.append(record(2, payload))
    bounds = varint(0) + varint(ranks)
    for rank in range(ranks):
        bounds += varint(1 if rank else 0) + varint(3) + varint(7) + varint(2 * (64 << 20)) + varint(1) + varint(2 << 20) + varint(1) + varint(3 << 20)
    with (folder / "samples.tidegate").open("wb") as file:
        file.write(b"TIDEREC\x02" + record(0, header))
        for rank in range(ranks):
            file.write(record(1, json.dumps({"rank": rank, "pid": rank, "id": rank + 1, "host": program, "program": program, "scheme": "dynamic",
                                             "slots_per_peer": 64, "credit_slots": 2, "peers": ranks}).encode()))
        file.write(record(2, bounds))
        for sample in range(samples - 1):
            file.write(steps[sample * 7 % 16])
    waits = [[{"peer": (rank * 17 + other * 31) % ranks + 1, "cause": cause, "count": 5, "waited_ns": (rank * 7919 + other * 104729) % 10**9, "goes_on": False}
              for other in range(64) for cause in ("credits", "pull")] for rank in range(ranks)]
    opened = [{"kind": "receive", "peer": None, "tag": program, "bytes": 8, "age_ns": 10**9, "waits_for": None}]
    (folder / "last.json").write_text(json.dumps({"schema": "tidegate-recording/2", "at_ns": 0, "endpoints": [
        {"ended": False, "bulk": program, "waits": waits[rank], "open": opened if rank == 3 else []} for rank in range(ranks)]}))


def test_a_large_job_makes_a_file_of_two_mebibytes_that_opens_in_a_second(page, tmp_path):
    made_up(tmp_path / "large", ranks=1024, samples=300, program="a.out")
    target = tmp_path / "large.html"
    done = report(tmp_path / "large", "-o", target)
    assert done.returncode == 0, done.stderr
    size = target.stat().st_size
    assert 200_000 < size < SIZE_MOST, size
    took = check(page, target, tmp_path)
    # A second on an idle machine; this one may be busy with other tests.
    assert took < 10, took
    assert ink(page, ".matrix canvas") > 20 and ink(page, ".strips canvas") > 20
    text = page.value("document.body.innerText")
    assert "rows stand for 1024 processes" in text and "300 samples of 1024 processes" in text


@pytest.mark.full
def test_two_large_jobs_share_a_file_of_two_mebibytes(tmp_path):
    made_up(tmp_path / "large", ranks=1024, samples=1000, program="a.out")
    both = tmp_path / "both.html"
    assert report(tmp_path / "large", tmp_path / "large", "-o", both).returncode == 0
    assert both.stat().st_size < SIZE_MOST, both.stat().st_size


def test_hostile_names_stay_text(page, tmp_path):
    hostile = "</script><img src=x onerror=\"window.bad=1\"><script>window.bad=1</script>'\"&lt;\u202e\x1b[31m"
    made_up(tmp_path / "hostile", ranks=4, samples=20, program=hostile)
    target = tmp_path / "hostile.html"
    assert report(tmp_path / "hostile", "-o", target).returncode == 0
    check(page, target, tmp_path)
    assert page.value("window.bad") is None and page.value("document.querySelectorAll('img').length") == 0
    assert "<img src=x onerror=" in page.value("document.body.innerText"), "the name is shown as it is"
