#!/usr/bin/env python3
"""Stamps: slow parts of the tests run when a source has changed on which they depend, and not else.

`tests/stamps/NAME.txt` lists the sources of a part as patterns of paths, one a line, and ends with the hash of these
sources when the part last succeeded. `stamp.py run NAME -- COMMAND` computes the hash, runs the command if it differs
from the one in the file, and writes the new one if the command has succeeded: commit it with the change.

    scripts/stamp.py list                        which parts would run
    scripts/stamp.py run NAME -- COMMAND ...     run the part, unless nothing has changed
    scripts/stamp.py run --always NAME -- ...    run it anyway

Comments of Rust sources and empty lines do not count: to say something better tries nothing anew. (A line of a string that
begins with `//` is taken for a comment.) They do where a line of the stamp is `# Comments count`. The patterns themselves count as well. A pattern that names no file is an error: a part whose sources have moved would
otherwise never run again.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path("tests") / "stamps"
MARK = "sha256 "
"""How the line with the hash begins."""


class Unusable(Exception):
    """A stamp that cannot be read, or names no sources."""


COMMENTS_COUNT = "# Comments count"


def meaning(path: Path, *, with_comments: bool) -> bytes:
    """The bytes of a source on which a part can depend."""
    contents = path.read_bytes()
    if path.suffix != ".rs" or with_comments:
        return contents
    lines = (line.strip() for line in contents.splitlines())
    return b"\n".join(line for line in lines if line and not line.startswith(b"//"))


@dataclass(frozen=True)
class Stamp:
    """The stamp of one part."""

    name: str
    root: Path = ROOT

    @property
    def path(self) -> Path:
        return self.root / FOLDER / f"{self.name}.txt"

    def lines(self) -> list[str]:
        """The file, without the line with the hash."""
        try:
            return [line for line in self.path.read_text().splitlines() if not line.startswith(MARK)]
        except FileNotFoundError:
            there = ", ".join(names(self.root))
            raise Unusable(f"there is no stamp {self.name} ({FOLDER} has {there})") from None

    def patterns(self) -> list[str]:
        return [line.strip() for line in self.lines() if line.strip() and not line.startswith("#")]

    def files(self) -> list[Path]:
        """The sources, in order."""
        found = set()
        for pattern in self.patterns():
            files = {path for path in self.root.glob(pattern) if path.is_file()}
            if not files:
                raise Unusable(f"{FOLDER / self.path.name}: {pattern} names no file")
            found |= files
        if not found:
            raise Unusable(f"{FOLDER / self.path.name} names no sources")
        return sorted(found)

    def now(self) -> str:
        """The hash of the patterns and the sources as they are."""
        total = hashlib.sha256()
        for text in [*self.patterns(), ""]:
            total.update(text.encode() + b"\n")
        with_comments = COMMENTS_COUNT in self.lines()
        for path in self.files():
            contents = meaning(path, with_comments=with_comments)
            total.update(f"{path.relative_to(self.root)}\n{len(contents)}\n".encode())
            total.update(contents)
        return total.hexdigest()

    def committed(self) -> str | None:
        """The hash in the file; `None` for a part that has never run."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        return next((line.removeprefix(MARK).strip() for line in lines if line.startswith(MARK)), None)

    def is_current(self) -> bool:
        return self.now() == self.committed()

    def run(self, part: Callable[[], int], *, always: bool = False) -> int:
        """Runs a part if its sources have changed; returns its exit status. The hash is written only if the part has
        succeeded, and its sources are still those that it began with."""
        before = self.now()
        if before == self.committed() and not always:
            print(f"{self.name}: nothing has changed on which it depends ({FOLDER / self.path.name})", flush=True)
            return 0
        status = part()
        if status != 0:
            return status
        if self.now() != before:
            print(f"{self.name}: its sources were changed meanwhile, so no stamp is written", flush=True)
        elif before != self.committed():
            self.path.write_text("\n".join([*self.lines(), MARK + before]) + "\n")
            print(f"{self.name}: succeeded; commit {FOLDER / self.path.name} with what you have changed", flush=True)
        return 0


def names(root: Path = ROOT) -> list[str]:
    """All parts that have a stamp."""
    return sorted(path.stem for path in (root / FOLDER).glob("*.txt"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="what", required=True)
    commands.add_parser("list", help="which parts would run")
    run = commands.add_parser("run", help="run a part unless nothing has changed")
    run.add_argument("--always", action="store_true", help="run it also if nothing has changed")
    run.add_argument("name")
    run.add_argument("command", nargs="+")
    given = parser.parse_args(arguments)
    try:
        if given.what == "list":
            for name in names(given.root):
                print(f"{name:<20} {'current' if Stamp(name, given.root).is_current() else 'to be run'}")
            return 0
        return Stamp(given.name, given.root).run(lambda: subprocess.run(given.command).returncode, always=given.always)
    except Unusable as error:
        print(f"stamp: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
