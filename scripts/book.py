#!/usr/bin/env python3
"""Makes a book of docs/, of the pages of papers/, and of some pages beside them, in build/book, by mdBook, and fails where a link in it leads nowhere.

mdBook is that of the PATH, or one in build/tools, which is built there from crates.io where it is missing. Links of the
chapters are plain links to files, so that they work on every host of code as well; those that lead out of the book lead
to the sources beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

sys.path.insert(0, str(Path(__file__).resolve().parent))
from harness.book import DOCS  # noqa: E402
from harness.paths import BUILD, ROOT  # noqa: E402

VERSION = "0.5.4"
BOOK = BUILD / "book"
SOURCES = BUILD / "book-sources"
PAPERS = ROOT / "papers"
TOOLS = BUILD / "tools"
ABOVE = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"]
"""Chapters that lie in the folder of the project, where code hosts look for them."""
LINK = re.compile(r'href="([^"#:]+)((?:#[^"]*)?)"')
SHOWN = {".svg", ".csv"}
"""What pages of papers lead to."""


def mdbook() -> str:
    """Where mdBook is."""
    for found in (TOOLS / "bin" / "mdbook", shutil.which("mdbook")):
        if found and Path(found).exists():
            told = subprocess.run([str(found), "--version"], capture_output=True, text=True).stdout
            if told.strip().endswith(VERSION):
                return str(found)
    print(f"book: building mdBook {VERSION} in {TOOLS.relative_to(ROOT)}, which takes minutes", flush=True)
    command = [os.environ.get("CARGO", "cargo"), "install", "mdbook", "--version", VERSION, "--locked", "--root", str(TOOLS)]
    # Only what is used: neither a server nor a watch over files. Without optimisation, which would take longer than all
    # books that it ever makes. In a folder of its own, not in that of the project.
    command += ["--no-default-features", "--features", "search", "--debug"]
    environment = {key: value for key, value in os.environ.items() if key != "CARGO_TARGET_DIR"} | {"CARGO_PROFILE_DEV_DEBUG": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"book: mdBook could not be built\n{done.stderr[-2000:]}\nCheck the network, or put mdbook {VERSION} into the PATH.")
    return str(TOOLS / "bin" / "mdbook")


def gather() -> None:
    """Puts all that the book is made of into one folder: docs/, the chapters above it, and in `papers` what pages of papers/ show."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(DOCS, SOURCES)
    for name in ABOVE:
        shutil.copyfile(ROOT / name, SOURCES / name)
    for page in [PAPERS / "README.md", *PAPERS.glob("*/README.md")]:
        place = SOURCES / page.parent.relative_to(ROOT)
        place.mkdir(parents=True, exist_ok=True)
        for file in [page, *page.parent.glob("machine.md"), *(file for file in page.parent.iterdir() if file.suffix in SHOWN)]:
            shutil.copyfile(file, place / file.name)
    for page in SOURCES.rglob("*.md"):
        own, text = page.relative_to(SOURCES), page.read_text()
        if own.parts[0] == "papers":
            up = "../" * (len(own.parts) - 1)
            page.write_text(text.replace(f"]({up}docs/", f"]({up}"))
        elif page.name in ABOVE:
            page.write_text(text.replace("](docs/", "]("))
        else:
            for name in ["papers/", *ABOVE]:
                text = text.replace(f"](../{name}", f"]({name}")
            page.write_text(text)


def lead_to_sources(page: Path) -> None:
    """Links of a page to files that are not in the book lead to those in the tree of the sources."""
    own = page.relative_to(BOOK)
    place = (ROOT if own.parts[0] == "papers" else DOCS) / own.parent

    def there(link: re.Match) -> str:
        if (page.parent / link[1]).exists():
            return link[0]
        # In the page of all chapters, to be printed, mdBook has taken a folder off the links of papers.
        for folder in (place, ROOT):
            target = Path(os.path.normpath(folder / link[1]))
            # mdBook takes every link to Markdown for one to a page of its own.
            source = target.with_suffix(".md") if target.suffix == ".html" and not target.exists() else target
            if source.exists():
                return f'href="{os.path.relpath(source, page.parent)}{link[2]}"'
        return link[0]

    page.write_text(LINK.sub(there, page.read_text()))


class Page(HTMLParser):
    """What a page links to, and what may be linked to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.links += [values[key] for key in ("href", "src") if values.get(key)]
        self.ids |= {values[key] for key in ("id", "name") if values.get(key)}


def dead_links() -> list[str]:
    """Links that lead nowhere, each behind its page."""
    pages = {path: Page(path) for path in sorted(BOOK.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            name, _, anchor = unquote(link).partition("#")
            target = Path(os.path.normpath(path.parent / name)) if name else path
            if re.match(r"[a-z]+:|//", link):
                continue
            if not target.exists() or anchor and target in pages and anchor not in pages[target].ids:
                dead.append(f"{path.relative_to(BOOK)}: {link}")
    return dead


def main() -> None:
    """Builds and checks."""
    command = mdbook()
    shutil.rmtree(BOOK, ignore_errors=True)
    gather()
    built = subprocess.run([command, "build", str(SOURCES), "--dest-dir", str(BOOK)], capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(f"book: mdBook failed\n{built.stdout}{built.stderr}")
    for page in BOOK.rglob("*.html"):
        lead_to_sources(page)
    dead = dead_links()
    if dead:
        sys.exit("book: links that lead nowhere:\n" + "\n".join(dead))
    print(f"book: {(BOOK / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
