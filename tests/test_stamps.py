"""Stamps (`scripts/stamp.py`): a part runs when one of its sources has changed, and no stamp is had without a run that
succeeded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from harness.paths import ROOT

SCRIPT = ROOT / "scripts" / "stamp.py"


class Project:
    """A project with one part, whose command notes that it has run."""

    def __init__(self, root: Path) -> None:
        self.root, self.stamp, self.runs = root, root / "tests" / "stamps" / "part.txt", root / "runs"
        self.stamp.parent.mkdir(parents=True)
        (root / "src").mkdir()
        (root / "src" / "one.rs").write_text("one")
        (root / "beside.rs").write_text("beside")
        self.stamp.write_text("# What it is.\nsrc/**/*.rs\n")

    def call(self, *words: str) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, SCRIPT, "--root", self.root, *words], capture_output=True, text=True)

    def run(self, ends: str = "true", *options: str) -> tuple[int, int]:
        """Exit status, and how many times the command has run; `ends`: how it ends, in words of the shell."""
        self.runs.write_text("")
        done = self.call("run", *options, "part", "--", "sh", "-c", f"echo ran >> {self.runs}; {ends}")
        return done.returncode, len(self.runs.read_text().splitlines())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_part_runs_once_and_again_when_a_source_changes_comes_or_goes(project):
    assert project.run() == (0, 1)
    assert project.run() == (0, 0)
    (project.root / "src" / "one.rs").write_text("two")
    assert project.run() == (0, 1)
    (project.root / "src" / "deep").mkdir()
    (project.root / "src" / "deep" / "two.rs").write_text("")
    assert project.run() == (0, 1)
    (project.root / "src" / "deep" / "two.rs").rename(project.root / "src" / "deep" / "three.rs")
    assert project.run() == (0, 1)
    (project.root / "src" / "deep" / "three.rs").unlink()
    assert project.run() == (0, 1)
    (project.root / "beside.rs").write_text("changed")
    assert project.run() == (0, 0)


def test_comments_and_empty_lines_need_no_run_and_code_behind_them_does(project):
    one = project.root / "src" / "one.rs"
    one.write_text("one();\n")
    assert project.run() == (0, 1)
    one.write_text("//! A file.\n\n    // Why.\none();\n")
    assert project.run() == (0, 0)
    one.write_text("//! A file.\n\n    // Why.\none(); // two();\n")
    assert project.run() == (0, 1)


def test_comments_count_where_a_stamp_says_so(project):
    one = project.root / "src" / "one.rs"
    project.stamp.write_text("# Comments count\nsrc/**/*.rs\n")
    one.write_text("//! A file.\none();\n")
    assert (project.run(), project.run()) == ((0, 1), (0, 0))
    one.write_text("//! Another file.\none();\n")
    assert project.run() == (0, 1)


def test_sources_that_are_as_they_were_need_no_run(project):
    assert project.run() == (0, 1)
    (project.root / "src" / "one.rs").write_text("two")
    (project.root / "src" / "one.rs").write_text("one")
    assert project.run() == (0, 0)


def test_a_part_that_fails_gets_no_stamp(project):
    before = project.stamp.read_text()
    assert project.run("exit 3") == (3, 1)
    assert project.stamp.read_text() == before
    assert project.run() == (0, 1)
    green = project.stamp.read_text()
    (project.root / "src" / "one.rs").write_text("broken")
    assert project.run("exit 1") == (1, 1)
    assert project.stamp.read_text() == green
    assert project.run("exit 1") == (1, 1)


def test_sources_that_change_while_the_part_runs_get_no_stamp(project):
    before = project.stamp.read_text()
    assert project.run(f"echo two > {project.root}/src/one.rs") == (0, 1)
    assert project.stamp.read_text() == before


def test_a_part_can_be_run_though_nothing_has_changed(project):
    assert project.run() == (0, 1)
    assert project.run("true", "--always") == (0, 1)
    assert project.run("exit 1", "--always") == (1, 1)


def test_other_patterns_are_another_part(project):
    assert project.run() == (0, 1)
    project.stamp.write_text(project.stamp.read_text().replace("src/**/*.rs", "src/**/*.rs\nbeside.rs"))
    assert project.run() == (0, 1)


def test_a_pattern_that_names_nothing_is_an_error_and_so_is_a_part_without_a_stamp(project):
    project.stamp.write_text("src/**/*.rs\ngone/*.rs\n")
    done = project.call("run", "part", "--", "true")
    assert done.returncode == 2 and "gone/*.rs names no file" in done.stderr
    done = project.call("run", "other", "--", "true")
    assert done.returncode == 2 and "there is no stamp other" in done.stderr


def test_the_list_says_what_would_run(project):
    assert "to be run" in project.call("list").stdout
    project.run()
    assert "current" in project.call("list").stdout


def test_every_stamp_of_this_project_names_files():
    done = subprocess.run([sys.executable, SCRIPT, "list"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.count("\n") == len(list((ROOT / "tests" / "stamps").glob("*.txt"))), done.stderr
