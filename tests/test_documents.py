"""The documents name files that exist, every make target that they name can be made, and every link leads somewhere."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import prose
import pytest
from harness import book
from harness.paths import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
FILE = re.compile(r"`([\w./-]+(?:\.(?:rs|py|c|md|toml|1|7)|/))`")
LINK = re.compile(r"\]\(([^)#:]+)\)")
PAPERS = [ROOT / "papers" / "README.md", *ROOT.glob("papers/*/README.md"), *ROOT.glob("papers/*/machine.md")]
PAGES = sorted({*DOCUMENTS, *ROOT.glob("docs/**/*.md"), *ROOT.glob("packaging/**/*.md"), *PAPERS})
"""All Markdown of the project."""
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
TARGET = re.compile(r"`make ([a-z-]+)")


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Names of all source files, without their folders."""
    folders = ["crates", "tests", "scripts", "benches", "demo", "docs", "fuzz", "papers"]
    return {path.name for folder in folders for path in (ROOT / folder).rglob("*") if "target" not in path.parts}


@pytest.mark.quick
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_named_exists(document, names):
    text = document.read_text()
    named = {name for name in FILE.findall(text) if not name.startswith(("/", ".", "build/", "target/", "lib/"))} | set(LINK.findall(text))
    # What a chapter of the book has its readers write is no file of the project.
    named -= {step.file for step in book.read(document).steps}
    # A name with a folder is seen from the root; a bare one belongs to the folder that the sentence is about.
    # Links are seen from the document, as on the web.
    named = {name for name in named if not (document.parent / name).exists()}
    missing = {name for name in named if not (ROOT / name).exists() and not ("/" not in name.rstrip("/") and name.rstrip("/") in names)}
    missing = {name for name in missing if not any((ROOT / "crates" / crate / "src" / name).exists() for crate in ("flow", "bulk", "message", "link", "ofi", "cli"))}
    assert not missing, f"{document.name} names what is not there: {sorted(missing)}"


@pytest.mark.quick
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(TARGET.findall(document.read_text())) <= targets


def anchors(text: str) -> set[str]:
    """What links may have behind `#`: headings as code hosts, and mdBook, make anchors of them."""
    seen, found = Counter(), set()
    for heading in HEADING.findall(CODE.sub("", text)):
        plain = re.sub(r"\[([^]]+)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w -]", "", plain.strip().lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found


def dead_links(page: Path) -> list[str]:
    """Links of a page that lead nowhere. Those to other machines are not looked at."""
    text = page.read_text()
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", CODE.sub("", text)):
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if re.match(r"[a-z]+:", link):
            continue
        if not target.exists() or anchor and anchor not in anchors(target.read_text()):
            dead.append(link)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(page):
    assert dead_links(page) == []


def test_dead_links_are_found(tmp_path):
    (tmp_path / "b.md").write_text("# A `heading`, twice\n## A heading twice\n")
    page = tmp_path / "a.md"
    good = "[1](b.md) [2](b.md#a-heading-twice) [3](b.md#a-heading-twice-1) [4](#own) [5](https://example.org/x)\n# Own\n"
    page.write_text(good + "```\n[6](c.md)\n```\n[7](c.md) [8](b.md#other) [9](#a-heading-twice)\n")
    assert dead_links(page) == ["c.md", "b.md#other", "#a-heading-twice"]


def test_the_book_has_every_page():
    """A chapter that SUMMARY.md does not list is in no book, and none of its commands is run."""
    listed = [path.resolve() for path in book.chapters()]
    above = {"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"}
    assert {path.name for path in listed if path.parent == ROOT} == {"README.md", *above}
    assert len(listed) == len(set(listed))
    assert {path for path in PAGES if book.DOCS in path.parents or path in PAPERS} - {book.SUMMARY} == set(listed) - {ROOT / name for name in ("README.md", *above)}


def test_long_sentences_and_openings_without_a_subject_are_found():
    long = "One " + "word " * 34 + "more."
    good = f"{long[4:]} What is it? [Next](a.md), `a b c` says.\n\n| What a title is | a fact; another |\n|---|---|\n\n**What to change** is a name.\n\n```text\n{long}\n```\n"
    assert prose.faults(good) == []
    found = prose.faults(f"# What\n\nShort. {long}\n- What is left goes.\n- A peer.\n  Nobody waits.\n\n| {long} |\n")
    assert [(line, fault.partition(":")[0]) for line, fault in found] == [
        (3, "a sentence of 36 words"), (4, "say the noun"), (5, "say the noun"), (8, "a sentence of 36 words")]


def test_pages_are_read_and_those_that_are_made_are_not():
    names = {str(path.relative_to(ROOT)) for path in prose.pages(ROOT)}
    assert {"README.md", "docs/limits.md", "docs/upstream/libfabric-tcp-strangers.md", "papers/prades/machine.md"} <= names
    assert not names & {"docs/SUMMARY.md", "papers/prades/README.md"}
