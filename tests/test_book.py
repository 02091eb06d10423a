"""The commands of the book are run as they are written, and what it shows of their output is what they print.

`scripts/harness/book.py` says how a chapter tells what is not run, and why.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PROGRAMS
from harness import book, papers, process
from harness import mpi as mpis
from harness.mpi import Fabric
from harness.paths import ROOT, TIDEGATE

CHAPTERS = book.chapters()
FIGURES = [path for path in CHAPTERS if path.is_relative_to(ROOT / "papers") and path.name == "README.md" and path.parent.name != "papers"]
"""Pages that `tidegate paper --pages` has written: their commands take hours. tests/test_paper.py runs the same at a reduced size."""
WRITTEN = [path for path in CHAPTERS if path not in FIGURES]
MARK = "@@@"
CHAPTER_SECONDS = 300
PROGRAM = [PROGRAMS / "traffic.c", 2, 20, 20_000, 7]
"""What `./program` is."""
INLINE = re.compile(r"`(tidegate [^`]+)`", re.DOTALL)
OPTION = re.compile(r"(?<!\S)--?[a-z][a-z-]*")
LAUNCHER = re.compile(r"\b(?:mpiexec|mpirun|srun)\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(autouse=True)
def only_tidegate(fabric: Fabric) -> None:
    if fabric is not Fabric.TIDEGATE:
        pytest.skip("about Tidegate's own command")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder in which the reader types: that of the sources, with a program in it."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for entry in ("README.md", "crates", "docs", "examples", "papers", "tests"):
        (folder / entry).symlink_to(ROOT / entry)
    source, *words = PROGRAM
    program = folder / "program"
    program.write_text("#!/bin/sh\nexec " + shlex.join([str(mpis.mpich().compile(source)), *map(str, words)]) + "\n")
    program.chmod(0o755)
    # A copy, because the first chapter compiles it.
    shutil.copy(mpis.mpich().compile(PROGRAMS / "holdup.c"), folder)
    return folder


def environment(place: Path) -> dict[str, str]:
    """That of a user of MPICH who has installed Tidegate, whose jobs nobody else sees."""
    mpi, home = mpis.mpich(), str(place.parent)
    path = f"{TIDEGATE.parent}:{mpi.launcher.parent}:{os.environ['PATH']}"
    own = {"PATH": path, "HOME": home, "XDG_RUNTIME_DIR": home, "XDG_CACHE_HOME": home, "PYTHONPATH": str(ROOT / "packaging" / "wheel")}
    return mpi.bare_environment() | own


def run(chapter: book.Chapter, place: Path) -> dict[int, tuple[int, str]]:
    """Runs the commands of a chapter in one shell; exit status and output by number of the step."""
    script = []
    for number, step in enumerate(chapter.steps):
        if step.file:
            script.append(f"cat > {step.file} <<'END OF FILE'\n{step.text}END OF FILE")
        if step.command:
            # What it prints may end within a line.
            script.append(f"echo '{MARK} {number}'\n{step.command}\nprintf '\\n{MARK} {number} %s\\n' $?")
    done = process.run(["bash", "-c", "\n".join(script)], environment(place), timeout=CHAPTER_SECONDS, cwd=place)
    assert not done.timed_out and not done.leftovers, done.explain()
    parts = re.findall(rf"^{MARK} (\d+)\n(.*?)^{MARK} \1 (\d+)$", done.output, re.MULTILINE | re.DOTALL)
    return {int(number): (int(status), printed) for number, printed, status in parts}


@pytest.mark.parametrize("path", CHAPTERS, ids=name)
def test_every_block_is_run_or_says_why_not(path):
    chapter = book.read(path)
    assert not chapter.faults, "\n".join(f"{name(path)}, {fault}" for fault in chapter.faults)


@pytest.mark.parametrize("path", [path for path in WRITTEN if any(step.command for step in book.read(path).steps)], ids=name)
def test_every_command_runs_and_prints_what_is_shown(path, place):
    chapter = book.read(path)
    ended, printed = run(chapter, place), ""
    for number, step in enumerate(chapter.steps):
        where = f"{name(path)}, line {step.line}"
        if step.command:
            assert number in ended, f"{where}: {step.command}: the shell did not come to its end"
            status, printed = ended[number]
            assert status == 0, f"{where}: {step.command}\nexit status {status}\n{printed}"
        elif not step.file:
            missing = book.lacks(step.text, printed, ignores_numbers=step.ignores_numbers)
            assert missing is None, f"{where}: this is not printed:\n{missing}\nbut this:\n{printed}"


@pytest.fixture(scope="module")
def figures() -> set[str]:
    """What `tidegate paper` knows."""
    listed = subprocess.run([papers.program(), "--list"], capture_output=True, text=True, check=True)
    return {line.split()[0] for line in listed.stdout.splitlines()} | {"all"}


@pytest.mark.papers
@pytest.mark.parametrize("path", FIGURES, ids=name)
def test_pages_of_figures_name_figures_that_there_are(path, figures):
    commands = [step.command for step in book.read(path).steps if step.command]
    assert commands
    for command in commands:
        words = command.split()
        assert words[:2] == ["tidegate", "paper"], command
        ids = [word for word in words[2:words.index("--out")] if not word.startswith("--") and not word.isdigit()]
        assert set(ids) <= figures, command


@pytest.fixture(scope="module")
def options() -> dict[str, set[str]]:
    """The options of each command of `tidegate`, and under no name its own. Those of `paper` are another program's."""
    listed = re.findall(r"^  ([a-z]+)  ", help_of(TIDEGATE).partition("Commands:")[2], re.MULTILINE)
    commands = [command for command in listed if command not in ("help", "paper")]
    return {command: options_in(help_of(TIDEGATE, *filter(None, [command]))) for command in ["", *commands]}


def help_of(*words: str | Path) -> str:
    return subprocess.run([*words, "--help"], capture_output=True, text=True, check=True).stdout


def options_in(text: str) -> set[str]:
    return set(OPTION.findall(text.replace(",", " ").replace("=", " ").replace("[", " ")))


def commands_within_sentences(path: Path) -> Iterator[tuple[str, str, set[str]]]:
    """Each command of `tidegate` that a sentence has: all of it, its name, and the options that it names."""
    for command in INLINE.findall(path.read_text()):
        own = LAUNCHER.split(" ".join(command.split()))[0].split(" -- ")[0]
        words = own.split()
        yield command, words[1] if words[1].isalpha() and words[1].islower() else "", options_in(own.partition(" ")[2])


@pytest.mark.parametrize("path", WRITTEN, ids=name)
def test_commands_within_sentences_have_the_options_that_they_name(path, options):
    for command, word, named in commands_within_sentences(path):
        if word != "paper":
            assert word in options, f"{command}: no such command"
            assert named <= options[word], f"{command}: no option {sorted(named - options[word])}"


@pytest.mark.papers
def test_commands_within_sentences_have_the_options_of_paper_that_they_name():
    options = options_in(help_of(papers.program()))
    for path in WRITTEN:
        for command, word, named in commands_within_sentences(path):
            assert word != "paper" or named <= options, f"{name(path)}: {command}: no option {sorted(named - options)}"


@pytest.mark.full
def test_the_book_can_be_made():
    """mdBook is built for it where it is missing."""
    done = process.run(["make", "-C", ROOT, "book"], timeout=1800)
    assert done.status == 0, done.explain()


def test_the_test_finds_what_is_wrong(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```\nls\n```\n\n<!-- run it not -->\n\n<!-- 2 not run: why -->\n```sh\nls\n```\n\n<!-- output -->\nText.\n\n<!-- output -->\n```sh\nls\n```\n")
    assert [fault.partition(":")[2][:40].strip() for fault in book.read(page).faults] == [
        "a block of no language: name one of c,",
        "what does this comment say? <!-- run it",
        "there is no command 2 to be not run",
        "a comment that belongs to a block stand",
        "a comment that makes no sense above a b",
    ]
    page.write_text("<!-- 2 run as: echo b -->\n```sh\necho a   # A comment.\n# Another.\ncat x | \\\n  cat\n```\n<!-- run: false -->\n")
    steps = book.read(page).steps
    assert [(step.line, step.command) for step in steps] == [(3, "echo a   # A comment."), (5, "echo b"), (8, "false")]
    assert book.lacks("a 12.5 MiB  b\n…\nc", "x\na 7\nKiB b\ny\nc\n", ignores_numbers=True) is None
    assert book.lacks("a 12.5 MiB b", "a 7 KiB b", ignores_numbers=False) == "a 12.5 MiB b"
    assert book.lacks("a…\nb", "b\na", ignores_numbers=True) == "b"
    assert book.lacks("a b…", "a bc", ignores_numbers=False) is None
