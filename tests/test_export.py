"""`tidegate export` on a job that runs: the file and the port, read by libraries and tools of Prometheus; and what is
installed with it."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from conftest import PROGRAMS
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from harness import mpi as mpis
from harness import process
from harness.mpi import Fabric
from harness.paths import PROMTOOL, ROOT, TIDEGATE
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read_text

MONITORING = ROOT / "packaging" / "monitoring"
RANKS = 4
OPENMETRICS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
"""What Prometheus accepts."""


@pytest.fixture(scope="module", autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """That of a user whose jobs are registered in a place of their own."""
    place = tmp_path_factory.mktemp("runtime")
    place.chmod(0o700)
    return mpis.mpich().bare_environment() | {"XDG_RUNTIME_DIR": str(place)}


@pytest.fixture(scope="module")
def job(environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    """A job in which rank 2 receives slowly what all others send it. It has a number in Slurm."""
    mpi = mpis.mpich()
    command = [TIDEGATE, "run", "--slots", "8", mpi.launcher, "-n", RANKS, mpi.compile(PROGRAMS / "holdup.c"), "slow", "600", "2"]
    with process.started(command, environment | {"SLURM_JOB_ID": "123"}) as job:
        yield job


def values(families: list, job: subprocess.Popen) -> dict[str, float]:
    """What was exported of a job, by the names of the values; where there are several, their sum."""
    found: dict[str, float] = {}
    for family in families:
        for sample in family.samples:
            if sample.labels.get("job_id") == str(job.pid):
                found[sample.name] = found.get(sample.name, 0.0) + sample.value
    return found


def wait_for(look: Callable[[], list], job: subprocess.Popen, is_right: Callable[[dict[str, float]], bool]) -> tuple[list, dict[str, float]]:
    """What is exported, as soon as that is right."""
    deadline = time.monotonic() + 60
    while True:
        families = look()
        found = values(families, job)
        if is_right(found):
            return families, found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def is_held_up_by_rank_2(found: dict[str, float]) -> bool:
    return found.get("tidegate_job_blamed_rank") == 2 and found.get("tidegate_job_held_up_ranks") == RANKS - 1 and found["tidegate_job_ranks"] == RANKS


def check_by_promtool(text: str, *words: str) -> None:
    """Prometheus' own check, where it is installed."""
    promtool = shutil.which("promtool") or PROMTOOL
    if Path(promtool).exists():
        done = subprocess.run([promtool, *words], input=text, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr.strip(), done.stdout + done.stderr


def counters(families: list) -> dict[tuple, float]:
    """All counters, by name and labels."""
    return {(sample.name, *sorted(sample.labels.items())): sample.value for family in families if family.type == "counter" for sample in family.samples}


@pytest.mark.quick
def test_a_file_for_the_node_exporter_is_there_as_long_as_its_writer(job, environment, tmp_path):
    file = tmp_path / "tidegate.prom"
    # The umask of root may keep all others out.
    with process.started(["sh", "-c", 'umask 077; exec "$@"', "sh", TIDEGATE, "export", "--every", "1s", tmp_path], environment) as writer:
        def look() -> list:
            return list(read_text(file.read_text())) if file.exists() else []

        families, found = wait_for(look, job, is_held_up_by_rank_2)
        before = counters(families)
        assert found["tidegate_job_messages_sent_total"] > 0 and found["tidegate_job_processes"] == RANKS
        _, later = wait_for(look, job, lambda now: now.get("tidegate_job_sent_bytes_total", 0) > found["tidegate_job_sent_bytes_total"])
        assert file.stat().st_mode & 0o777 == 0o644
        text = file.read_text()
        after = counters(list(read_text(text)))
        assert all(after[name] >= value for name, value in before.items() if ("job_id", str(job.pid)) in name), (before, after)
        labels = next(sample.labels for family in families if family.name == "tidegate_job_info" for sample in family.samples if sample.labels["job_id"] == str(job.pid))
        assert (labels["program"], labels["mpi"], labels["scheme"], labels["slurm_job_id"]) == ("holdup", "mpich", "dynamic", "123")
        check_by_promtool(text, "check", "metrics")
        writer.terminate()
        assert writer.wait(20) == 0
    assert list(tmp_path.iterdir()) == []


def ask(port: int, accept: str, path: str = "/metrics") -> tuple[str, str]:
    """The media type and the text of an answer."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def test_prometheus_gets_openmetrics_by_http_and_others_what_they_ask_for(job, environment):
    with process.started([TIDEGATE, "export", "--listen", "0", "--ranks"], environment, stderr=subprocess.PIPE, text=True) as server:
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/metrics", server.stderr.readline())[1])
        silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        families, found = wait_for(lambda: list(read_openmetrics(ask(port, OPENMETRICS)[1])), job, is_held_up_by_rank_2)
        media_type, text = ask(port, OPENMETRICS)
        assert media_type == "application/openmetrics-text; version=1.0.0; charset=utf-8" and text.endswith("\n# EOF\n")
        units = {family.name: family.unit for family in families}
        assert units["tidegate_job_sent_bytes"] == "bytes" and units["tidegate_job_oldest_wait_seconds"] == "seconds"
        media_type, text = ask(port, "*/*")
        assert media_type == "text/plain; version=0.0.4; charset=utf-8" and "# EOF" not in text
        ranks = [sample for family in read_text(text) for sample in family.samples if sample.name == "tidegate_rank_up" and sample.labels["job_id"] == str(job.pid)]
        assert sorted(sample.labels["rank"] for sample in ranks) == ["0", "1", "2", "3"]
        check_by_promtool(text, "check", "metrics")
        assert "/metrics" in ask(port, "text/html", "/")[1]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask(port, "*/*", "/etc/passwd")
        for connection in silent:
            connection.close()
        server.terminate()
        assert server.wait(20) == 0


def test_dashboard_alerts_and_page_name_what_is_exported(job, environment):
    def look() -> list:
        done = subprocess.run([TIDEGATE, "export", "--ranks"], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return list(read_text(done.stdout))

    families, _ = wait_for(look, job, is_held_up_by_rank_2)
    exported = {sample.name for family in families for sample in family.samples}
    name = re.compile(r"\btidegate_(?:job|jobs|rank|exporter)(?:_[a-z_]+)?\b")
    for file in ("grafana-dashboard.json", "prometheus-rules.yml"):
        named = set(name.findall((MONITORING / file).read_text()))
        assert named and named <= exported, (file, sorted(named - exported))
    # The table of the page leaves out the beginning of the names of jobs.
    page = (ROOT / "docs" / "monitor.md").read_text()
    of_jobs, rest = page.split("| of a job, `tidegate_job_…` | |")[1].split("| of the exporter | |")
    cells = [line.split("|")[1] for line in of_jobs.splitlines() if line.startswith("| `")]
    listed = {f"tidegate_job_{word}" for cell in cells for word in re.findall(r"`([a-z_]+)`", cell)}
    assert listed == {name for name in exported if name.startswith("tidegate_job_")}
    first = next(number for number, cell in enumerate(cells) if "oldest_wait_seconds" in cell)
    of_ranks = {f"tidegate_rank_{word}" for cell in cells[first:] for word in re.findall(r"`([a-z_]+)`", cell)} | {"tidegate_rank_up", "tidegate_rank_awaited_by_ranks"}
    assert of_ranks == {name for name in exported if name.startswith("tidegate_rank_")}
    assert {name for name in exported if name.startswith(("tidegate_jobs", "tidegate_exporter_"))} == {
        word for line in rest.splitlines() if line.startswith("| `") for word in re.findall(r"`(tidegate_[a-z_]+)`", line.split("|")[1])}


def lost(before: object, after: object, place: str = "") -> list[str]:
    """What of a value is not in another one, or otherwise there."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [fault for key in before for fault in (lost(before[key], after[key], f"{place}.{key}") if key in after else [f"{place}.{key}"])]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [fault for number, (one, other) in enumerate(zip(before, after, strict=True)) for fault in lost(one, other, f"{place}[{number}]")]
    return [] if before == after else [place]


def test_the_dashboard_is_what_grafana_knows():
    """Grafana's own library, made from its schemas, keeps all of it: what the schemas do not know would be lost."""
    dashboard = json.loads((MONITORING / "grafana-dashboard.json").read_text())
    plugins.register_default_plugins()
    assert lost(dashboard, json.loads(JSONEncoder().encode(Dashboard.from_json(dashboard)))) == []
    # Names of panels and places: no two are the same, and no panel lies on another one.
    panels = [inner for panel in dashboard["panels"] for inner in [panel, *panel.get("panels", [])]]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [(x, y) for panel in panels for at in [panel["gridPos"]] for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24
    misspelt = dashboard | {"panels": [dashboard["panels"][1] | {"optoins": {}}]}
    assert lost(misspelt, json.loads(JSONEncoder().encode(Dashboard.from_json(misspelt)))) == [".panels[0].optoins"]


def test_alerts_fire_when_they_should():
    rules = yaml.safe_load((MONITORING / "prometheus-rules.yml").read_text())["groups"][0]["rules"]
    page = (ROOT / "docs" / "monitor.md").read_text()
    assert [rule["alert"] for rule in rules] == re.findall(r"^\| (Tidegate\w+) \|", page, re.MULTILINE)
    if not (shutil.which("promtool") or PROMTOOL.exists()):
        pytest.skip("promtool is not installed (make optional)")
    check_by_promtool("", "check", "rules", str(MONITORING / "prometheus-rules.yml"))
    check_by_promtool("", "test", "rules", str(ROOT / "tests" / "monitoring" / "rules.test.yml"))


def as_user(user: int, *words: str | Path) -> list[str | Path]:
    """A command of another user, of whom the system need not know."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *words]


def why_no_users() -> str | None:
    """Why no test can be several users here."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return "needs root and setpriv, to be several users"
    readable = subprocess.run(as_user(10007, "test", "-x", TIDEGATE)).returncode == 0
    return None if readable else f"other users may not read {TIDEGATE}"


@pytest.mark.skipif(why_no_users() is not None, reason=str(why_no_users()))
def test_root_exports_the_jobs_of_all_users_and_a_user_own_ones(environment):
    def exported(*words: str | Path) -> set[tuple[str, str]]:
        done = subprocess.run([*words, TIDEGATE, "export"], env=variables, cwd="/", capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        samples = [sample for family in read_text(done.stdout) if family.name == "tidegate_job_info" for sample in family.samples]
        return {(sample.labels["job_id"], sample.labels["user"]) for sample in samples}

    variables = {name: value for name, value in environment.items() if name not in ("XDG_RUNTIME_DIR", "TMPDIR")}
    command = as_user(10007, TIDEGATE, "run", "sleep", "600")
    with process.started(command, variables, cwd="/") as job, process.started([TIDEGATE, "run", "sleep", "600"], variables) as of_root:
        deadline, wanted = time.monotonic() + 60, {(str(job.pid), "10007"), (str(of_root.pid), "root")}
        while not wanted <= exported():
            assert time.monotonic() < deadline, exported()
        own = exported(*as_user(10007))
        assert (str(job.pid), "10007") in own and {user for _, user in own} == {"10007"}


def test_what_cannot_be_is_said_at_once(environment, tmp_path):
    taken = socket.create_server(("127.0.0.1", 0))
    for words, status, part in (
        (["--listen", str(taken.getsockname()[1])], 125, "cannot listen at 127.0.0.1:"),
        (["--every", "1s", tmp_path / "no" / "x.prom"], 2, "x.prom: No such file or directory"),
        (["--every", "1s", tmp_path / "node-exporter"], 2, "there is no such folder"),
        (["--every", "1s", "/dev/null"], 2, "it is no regular file"),
        (["--every", "1s", "-"], 2, "name one"),
    ):
        done = process.run([TIDEGATE, "export", *words], environment, timeout=30)
        assert done.status == status and part in done.output, done.explain()
