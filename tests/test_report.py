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

LAGGARD, WAITS, HANGS = PROGRAMS / "laggard.c", PROGRAMS / "waits.c", PROGRAMS / "hangs.c"
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


def tidegate(*words: str | Path, **more) -> subprocess.CompletedProcess:
    return subprocess.run([TIDEGATE, *words], capture_output=True, text=True, timeout=240, **more)


def report(*words: str | Path) -> subprocess.CompletedProcess:
    return tidegate("report", *words)


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
    for command in ("diff", "report"):
        done = tidegate(command, recorded / "slow", recorded / "even", "-o", target)
        assert done.returncode == 0 and "even compared with slow: time" in done.stdout, done.stdout + done.stderr
        assert "even compared with slow" in target.read_text()
    comparison = facts(recorded / "slow", recorded / "even")["comparison"]
    time_line = next(line for line in comparison["lines"] if line["name"] == "time of the run")
    # Which of the two took longer is the machine's affair.
    assert len(time_line["numbers"]) == 2 and min(time_line["numbers"]) > 0


def test_sides_of_several_runs_are_compared_by_their_medians(recorded, tmp_path):
    slow, even = recorded / "slow", recorded / "even"
    found = json.loads(tidegate("diff", "--json", slow, slow, slow, "--", even, even, even).stdout)
    assert (found["schema"], found["runs"], found["html"]) == ("tidegate-diff/1", [3, 3], None)
    delayed = next(line for line in found["lines"] if line["id"] == "time")
    assert len(delayed["values"][0]) == 3 and delayed["medians"][0] == delayed["values"][0][0]
    same = json.loads(tidegate("diff", "--json", slow, slow).stdout)
    assert {line["difference"]["is"] for line in same["lines"]} == {"same"} and same["headline"].startswith("No difference"), same
    for words, said in (([slow], "compares two sides"), ([slow, even, even], "of which side"), ([slow, "--", tmp_path], "no recording is there")):
        done = tidegate("diff", *words)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    done = tidegate("diff", slow, even, "--json", "-o", "-")
    assert done.returncode == 2 and "both write to standard output" in done.stderr, done.stderr


def test_the_page_is_shown_by_the_users_browser_or_its_place_is_told(recorded, tmp_path):
    browser_of_mine, target = tmp_path / "browser", tmp_path / "page.html"
    browser_of_mine.write_text(f"#!/bin/sh\nprintf %s \"$1\" > {tmp_path}/shown\n")
    browser_of_mine.chmod(0o755)
    bare = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")}
    done = tidegate("report", "--open", recorded / "slow", "-o", target, env=bare | {"BROWSER": f"/nowhere/browser:{browser_of_mine}"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert (tmp_path / "shown").read_text() == str(target.resolve())
    done = tidegate("report", "--open", recorded / "slow", "-o", target, env=bare)
    assert done.returncode == 0 and f"tidegate: {target} is not shown: there is no display here" in done.stderr, done.stderr
    done = tidegate("diff", "--open", recorded / "slow", recorded / "even", "-o", "-")
    assert done.returncode == 2 and "--open shows a file" in done.stderr, done.stderr


def record(mpi, folder: Path, command: list, *options: str) -> process.Result:
    words = [TIDEGATE, "run", "--quiet", "--record", folder, "--record-interval", "20ms", *options, "--", *command]
    return process.run(words, mpi.bare_environment(), timeout=60)


# What the pages of each MPI say is tested in test_open_at_the_end.py; a report of another MPI costs seconds.
OF_EACH_MPI = ["mpich", *(pytest.param(name, marks=pytest.mark.full) for name in mpis.WHEELS if name != "mpich")]


@pytest.mark.parametrize("name", OF_EACH_MPI)
def test_nothing_is_open_after_a_clean_end(name, tmp_path):
    """MPIs close with receives of their own posted."""
    mpi = mpis.WHEELS[name]()
    done = record(mpi, tmp_path / "run", job(mpi, RANKS, [WAITS, "even", "2", "10"]))
    assert done.status == 0, done.explain()
    assert facts(tmp_path / "run")["runs"][0]["open"] == []
    report(tmp_path / "run", "-o", tmp_path / "page.html")
    assert "Still open at the end" not in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("name", OF_EACH_MPI)
def test_a_hang_is_drawn_with_its_tags(name, tmp_path):
    mpi = mpis.WHEELS[name]()
    done = record(mpi, tmp_path / "run", job(mpi, RANKS, [HANGS, "tag"]), "--hang-after", "1", "--hang-exit")
    assert done.status == 123, done.explain()
    run = facts(tmp_path / "run")["runs"][0]
    assert run["title"] == f"rank {RANKS - 1} waits for tag 77 of rank 0, which sent tag 78" and run["look_at"] == f"rank {RANKS - 1}", run["title"]
    report(tmp_path / "run", "-o", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    assert '<figure class="hang"' in text and text.count("<circle") == 2 and "and 2 more ranks wait for these" in text
    assert "after SIGTERM (signal 15)" in text or "ended by SIGTERM" in text, "how it ended"


def test_how_a_program_ended_is_told_also_without_endpoints(tmp_path):
    def ended(script: str) -> tuple[dict, str]:
        folder = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        subprocess.run([TIDEGATE, "run", "--record", folder, "sh", "-c", script], capture_output=True)
        run = facts(folder)["runs"][0]
        return run, next(line for line in run["summary"] if line["name"] == "how it ended")["values"][0]
    run, how = ended("exit 0")
    assert (run["title"], how) == ("no process used Tidegate", "exit code 0") and "may not use MPI" in run["paragraph"]
    # 127 is the number of no signal.
    for code, expected in ((255, "exit code 255"), (127, "exit code 127"), (139, "exit code 139 (SIGSEGV)")):
        assert ended(f"exit {code}")[1] == expected
    run, how = ended("kill -9 $$")
    assert (run["title"], how) == ("the job was ended by SIGKILL", "ended by SIGKILL (signal 9)")


def test_a_folder_with_a_recording_is_refused_before_anything_starts(recorded, tmp_path):
    done = subprocess.run([TIDEGATE, "run", "--record", recorded / "slow", "touch", tmp_path / "started"], capture_output=True, text=True)
    assert done.returncode == 2 and "name another folder, or remove that one" in done.stderr, done.stderr
    assert not (tmp_path / "started").exists()
    assert report(tmp_path).returncode == 2 and "tidegate run --record" in report(tmp_path).stderr


def test_a_program_without_endpoints_has_a_report_that_says_so(page, tmp_path):
    done = subprocess.run([TIDEGATE, "run", "--record", tmp_path / "none", "true"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = report(tmp_path / "none")
    assert done.returncode == 0 and done.stdout.startswith("No process used Tidegate."), done.stdout + done.stderr
    check(page, tmp_path / "none" / "report.html", tmp_path)
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
    # The rank to look at first is drawn in the charts from the start, else one that is chosen.
    blamed = facts(recorded / "slow")["runs"][0]["look_at"]
    if blamed != f"rank {SLOW}":
        page.press("Enter")
        page.press("ArrowRight")
    assert f"rank {SLOW}: " in page.value("document.querySelector('.charts output').textContent")
    assert page.value("document.querySelectorAll('time').length") == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC(.\d\d:\d\d)?", page.value("document.querySelector('time').textContent"))
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


def frame(kind: int, payload: bytes) -> bytes:
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
        steps.append(frame(2, payload))
    bounds = varint(0) + varint(ranks)
    for rank in range(ranks):
        bounds += varint(1 if rank else 0) + varint(3) + varint(7) + varint(2 * (64 << 20)) + varint(1) + varint(2 << 20) + varint(1) + varint(3 << 20)
    with (folder / "samples.tidegate").open("wb") as file:
        file.write(b"TIDEREC\x02" + frame(0, header))
        for rank in range(ranks):
            file.write(frame(1, json.dumps({"rank": rank, "pid": rank, "id": rank + 1, "host": program, "program": program, "scheme": "dynamic",
                                             "slots_per_peer": 64, "credit_slots": 2, "peers": ranks}).encode()))
        file.write(frame(2, bounds))
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
