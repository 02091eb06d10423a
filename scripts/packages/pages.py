"""The chapters of the book that users read, for packages. Links to what packages do not have become plain text."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from harness.paths import ROOT

DOCUMENTS = ["README.md", "CHANGELOG.md"]
PICTURES = ["docs/report.png", "docs/who-waits.png", "docs/simulator/model.svg", "papers/prades/fig5-fig5a.svg", "papers/prades/fig19-fig19.svg", "docs/machine.toml"]
"""What the chapters show beside text."""
FOR_DEVELOPERS = ["add-a-figure.md", "add-a-network.md", "add-a-scheme.md"]
"""Chapters that are of use beside the sources only."""
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#]*)((?:#[^)\s]*)?)\)")


def names() -> list[str]:
    """All files, by their place in the sources, which is also that in a package."""
    chapters = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    return DOCUMENTS + [f"docs/{name}" for name in chapters if name not in FOR_DEVELOPERS] + PICTURES


def without_dead_links(text: str, name: str, kept: set[str]) -> str:
    """A page whose links lead to files that come along; entries of a list of contents that do not are left out."""

    def leads_somewhere(link: re.Match) -> bool:
        target = os.path.normpath(os.path.join(os.path.dirname(name), link[3])) if link[3] else name
        return bool(re.match(r"[a-z]+:", link[3])) or target in kept

    def entry(line: str) -> bool:
        return name != "docs/SUMMARY.md" or all(leads_somewhere(link) for link in LINK.finditer(line))

    text = "".join(line for line in text.splitlines(keepends=True) if entry(line))
    return LINK.sub(lambda link: link[0] if leads_somewhere(link) else link[2], text)


def write_pages(folder: Path) -> None:
    """Puts all of them into a folder."""
    kept = set(names())
    for name in sorted(kept):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            place.write_text(without_dead_links((ROOT / name).read_text(), name, kept))
        else:
            shutil.copyfile(ROOT / name, place)
