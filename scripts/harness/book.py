"""The book: README.md and the chapters of docs/, and the commands in them.

A fenced block of `sh` is commands, and each of them is run (`tests/test_book.py`), unless a comment right above the block says
otherwise:

    <!-- not run: REASON -->        none of the block
    <!-- run as: COMMAND -->        this in place of the block
    <!-- 2 not run: REASON -->      the second command of the block
    <!-- 2 run as: COMMAND -->      this in place of the second command of the block
    <!-- file: NAME -->             the block, in whatever language, is this file in the folder where commands run
    <!-- run: COMMAND -->           this first; needs no block below it
    <!-- output -->                 the block is what the command before it prints, or a part of it; `…` stands for anything
    <!-- output but for numbers --> the same, whatever the numbers are

A block of `python` is run by Python.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from .paths import ROOT

DOCS = ROOT / "docs"
SUMMARY = DOCS / "SUMMARY.md"
LANGUAGES = {"sh", "python", "text", "toml", "c", "rust"}
MARK = re.compile(r"^<!-- (?:(\d+) )?(not run|run as|run|file|output but for numbers|output)(?:: (.+?))? -->$")
FENCE = re.compile(r"^```(\S*)$")


@dataclass
class Step:
    """Something that the test does with a chapter, in the order of its text."""

    line: int
    """Where it stands, from 1."""
    command: str | None = None
    """To be run by a shell."""
    file: str | None = None
    """Name of a file to be written, with `text`."""
    text: str = ""
    """Of a file, or expected of the command before."""
    ignores_numbers: bool = False
    """What is expected is so but for its numbers."""


@dataclass
class Chapter:
    """One file of the book."""

    path: Path
    steps: list[Step] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    """What is wrong with its blocks and comments, in words."""
    passed_over: list[str] = field(default_factory=list)
    """Reasons why commands are not run."""


def chapters() -> list[Path]:
    """README.md, and what SUMMARY.md lists."""
    listed = re.findall(r"\]\(([^)]+)\)", SUMMARY.read_text())
    return [ROOT / "README.md", *((DOCS / name).resolve() for name in listed)]


def read(path: Path) -> Chapter:
    """A chapter with all that is to be done with it."""
    chapter, marks, lines = Chapter(path), [], path.read_text().splitlines()
    at = 0
    while at < len(lines):
        line, at = lines[at], at + 1
        fence, mark = FENCE.match(line), MARK.match(line)
        if line.startswith("```") and fence:
            end = next((number for number in range(at, len(lines)) if lines[number] == "```"), len(lines))
            _take_block(chapter, at, fence[1], lines[at:end], marks)
            marks, at = [], end + 1
        elif mark and mark[2] == "run" and mark[3]:
            chapter.steps.append(Step(at, command=mark[3]))
        elif mark:
            marks.append(mark)
        elif line.startswith("<!--"):
            chapter.faults.append(f"line {at}: what does this comment say? {line}")
        elif line and marks:
            chapter.faults.append(f"line {at}: a comment that belongs to a block stands above no block")
            marks = []
    return chapter


def _take_block(chapter: Chapter, line: int, language: str, lines: list[str], marks: list[re.Match]) -> None:
    """A block begins in a line, with these marks above it."""
    kinds = {mark[2] for mark in marks}
    if language not in LANGUAGES:
        chapter.faults.append(f"line {line}: a block of {language or 'no language'}: name one of {', '.join(sorted(LANGUAGES))}")
    if kinds & {"not run", "run as"} and language not in ("sh", "python") or kinds & {"output", "output but for numbers"} and language != "text":
        chapter.faults.append(f"line {line}: a comment that makes no sense above a block of {language}")
    for mark in marks:
        if mark[2] == "file":
            chapter.steps.append(Step(line, file=mark[3], text="\n".join(lines) + "\n"))
        elif mark[2].startswith("output"):
            chapter.steps.append(Step(line, text="\n".join(lines), ignores_numbers=mark[2] != "output"))
    if language == "python":
        commands = [(line, "python3 - <<'END OF PYTHON'\n" + "\n".join(lines) + "\nEND OF PYTHON")]
    else:
        commands = _commands(line, lines) if language == "sh" else []
    whole = [mark for mark in marks if mark[2] in ("not run", "run as") and not mark[1]]
    if whole:
        commands = [(line, mark[3]) for mark in whole if mark[2] == "run as"]
        chapter.passed_over += [mark[3] for mark in whole if mark[2] == "not run"]
    for mark in marks:
        if mark[2] not in ("not run", "run as") or not mark[1]:
            continue
        number = int(mark[1])
        if whole or not 1 <= number <= len(commands):
            chapter.faults.append(f"line {line}: there is no command {number} to be {mark[2]}")
        elif mark[2] == "run as":
            commands[number - 1] = (commands[number - 1][0], mark[3])
        else:
            commands[number - 1] = (commands[number - 1][0], "")
            chapter.passed_over.append(mark[3])
    chapter.steps += [Step(where, command=command) for where, command in commands if command]


def _commands(line: int, lines: list[str]) -> list[tuple[int, str]]:
    """The commands of a block that begins in a line, each with its line. One goes on behind a backslash."""
    commands, unfinished = [], ""
    for number, text in enumerate(lines, line + 1):
        whole = unfinished + text
        unfinished = whole + "\n" if text.endswith("\\") else ""
        if not unfinished and whole.strip() and not whole.lstrip().startswith("#"):
            commands.append((number - whole.count("\n"), whole))
    return commands


def lacks(expected: str, printed: str, *, ignores_numbers: bool) -> str | None:
    """The first part of what is expected that was not printed behind those before it; parts are what `…` stands between.
    Where lines are broken does not count."""
    def plain(text: str) -> str:
        text = " ".join(text.split())
        # With their units, which depend on the numbers.
        return re.sub(r"[-+]?\d[\d,.]*(?: ?(?:B|[KMGT]iB|ns|us|µs|ms|s|min)\b)?", "#", text) if ignores_numbers else text

    rest = plain(printed)
    for part in map(str.strip, plain(expected).split("…")):
        _, found, rest = rest.partition(part) if part else ("", True, rest)
        if not found:
            return part
    return None
