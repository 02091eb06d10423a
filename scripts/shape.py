#!/usr/bin/env python3
"""Checks the shape of the code: circles between files, long files, long functions, long comment lines, and sentences that
readers stumble over, in comments and in pages.

    scripts/shape.py             what is beyond a limit; exit status 1 if anything is
    scripts/shape.py --circles   also the uses that close each circle
    scripts/shape.py --bless     notes how many of those sentences are left, where there are fewer

Comments shall name their subject: the peer, the caller, the number of slots. Sentences whose subject is "What ..." or
"Who ...", and the words in WORDS, are counted in each crate, and `scripts/sentences.txt` has how many there may be. Older ones
are many; a commit may add none. In pages (`scripts/prose.py`) a sentence has at most 35 words and no such opening; the same file
has the pages in which some are left.

A file uses another if it names something that is defined there: by a path (`crate::…`, `super::…`, also by way of a
re-export or `super::*`, where the file that defines it counts), or if it calls a method of `self` that only that file
defines (because `impl` blocks of one type may lie in many files). Tests and generated bindings are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from pathlib import Path

import prose

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES, FUNCTION_LINES, COLUMNS = 500, 70, 120
PAGE_LINES = {"docs/benchmarks.md": 150}
"""Pages that have a limit: how numbers came about is in the history of the repository."""
GENERATED = {"bindings.rs"}
LIMITS = {"flow": [], "bulk": [], "message": [], "link": [], "ofi": ["objects::domain", "objects::endpoint", "objects::completion_queue", "objects::counter"]}
"""Crates whose files must not use each other in a circle. Circles among the files named are allowed (libfabric's own
objects)."""

SENTENCES = ROOT / "scripts" / "sentences.txt"
"""How many comments of each crate, and sentences of each page, have a form that is not wanted any more. Written by `--bless`."""
SUBJECTS = re.compile(r"(?:^|[.:;!?]\s+)(?:What|Who|Whoever|Whatever)\b", re.M)
WORDS = re.compile(r"\b(?:nobody|somebody|anybody|whom|anew|amid|beside|so many|so much)\b", re.I)

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ITEM = re.compile(
    r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|unsafe\s+|extern\s+\"C\"\s+)*(?:fn|struct|enum|trait|type|union|static|const)\s+"
    r"([A-Za-z_][A-Za-z0-9_]*)",
    re.M,
)
MACRO = re.compile(r"^\s*macro_rules!\s+([a-z_]+)", re.M)


def plain(text: str) -> str:
    """The code alone: no comments, strings, characters, nor anything behind `#[cfg(test)]`."""
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r'b?"(?:\\.|[^"\\])*"', '""', text, flags=re.S)
    text = re.sub(r"'(?:\\.|[^'\\])'", "' '", text)
    cut = re.search(r"^#\[cfg\(test\)\]\s*\n(?:#\[[^\n]*\]\n)*mod [a-z_]+ \{", text, flags=re.M)
    return text[: cut.start()] if cut else text


class Crate:
    def __init__(self, name: str):
        self.source = ROOT / "crates" / name / "src"
        self.files: dict[str, str] = {}
        for path in sorted(self.source.rglob("*.rs")):
            if path.name in GENERATED or path.stem in ("tests", "loom_tests"):
                continue
            self.files[self.module_of(path)] = plain(path.read_text())
        self.items = {module: self.items_of(text) for module, text in self.files.items()}
        self.exports = {module: self.exports_of(module) for module in self.files}
        self.methods = self.find_methods()

    def module_of(self, path: Path) -> str:
        parts = list(path.relative_to(self.source).with_suffix("").parts)
        if parts[-1] in ("mod", "lib", "main"):
            parts.pop()
        return "::".join(parts)

    @staticmethod
    def items_of(text: str) -> set[str]:
        return {m.group(1) for m in ITEM.finditer(text)} | {m.group(1) for m in MACRO.finditer(text)}

    def uses_of(self, module: str) -> list[tuple[list[str], str, bool]]:
        """(path, name in this file, whether it is exported again) of each `use`."""
        found = []
        for match in re.finditer(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", self.files[module], flags=re.M):
            for path, name in self.flatten(match.group(2)):
                found.append((path, name, bool(match.group(1))))
        return found

    def flatten(self, tree: str, before: tuple[str, ...] = ()):
        tree = tree.strip()
        brace = tree.find("{")
        if brace < 0:
            path, _, name = tree.partition(" as ")
            parts = [*before, *path.strip().split("::")]
            if parts[-1] == "self":
                parts.pop()
            yield parts, (name.strip() or parts[-1])
            return
        head = [part for part in tree[:brace].strip().removesuffix("::").split("::") if part]
        depth, start, inner = 0, 0, tree[brace + 1 : tree.rindex("}")]
        for index, char in enumerate(inner + ","):
            depth += (char == "{") - (char == "}")
            if char == "," and depth == 0:
                if inner[start:index].strip():
                    yield from self.flatten(inner[start:index], (*before, *head))
                start = index + 1

    def exports_of(self, module: str):
        return {name: path for path, name, again in self.uses_of(module) if again}

    def absolute(self, path: list[str], module: str) -> list[str] | None:
        here = module.split("::") if module else []
        path = list(path)
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("self", "super"):
            while path and path[0] in ("self", "super"):
                if path.pop(0) == "super":
                    here = here[:-1]
            return here + path
        child = "::".join([*here, path[0]])
        if child in self.files:
            return [*here, *path]
        return None

    def origins(self, path: list[str], seen=()) -> set[str]:
        """Where the thing that a path names is defined."""
        for length in range(len(path), -1, -1):
            module = "::".join(path[:length])
            if module not in self.files:
                continue
            rest = path[length:]
            if not rest:
                return {module}
            name = rest[0]
            if name in self.items[module]:
                return {module}
            if name == "*":
                return {module}
            again = self.exports[module].get(name)
            if again and (module, name) not in seen:
                target = self.absolute(again, module)
                if target is not None:
                    return self.origins(target, (*seen, (module, name)))
                return set()
            return {module}
        return set()

    def find_methods(self) -> dict[str, set[str]]:
        """The files in which methods of a name are defined, of names that one file alone defines."""
        where = defaultdict(set)
        for module, text in self.files.items():
            for match in re.finditer(r"^    (?:pub(?:\([^)]*\))?\s+)(?:const\s+|unsafe\s+)*fn ([a-z_0-9]+)", text, flags=re.M):
                where[match.group(1)].add(module)
        return {name: modules for name, modules in where.items() if len(modules) == 1}

    def edges(self) -> dict[str, dict[str, set[str]]]:
        graph: dict[str, dict[str, set[str]]] = {module: defaultdict(set) for module in self.files}
        for module, text in self.files.items():
            body = re.sub(r"^\s*(pub(?:\([^)]*\))?\s+)?use\s+[^;]+;", "", text, flags=re.M)
            words = set(WORD.findall(body))
            targets: list[tuple[set[str], str]] = []
            for path, name, again in self.uses_of(module):
                target = self.absolute(path, module)
                if target is None:
                    continue
                if path[-1] == "*":
                    origin = "::".join(target[:-1])
                    if origin in self.files:
                        for other in words & self.items[origin]:
                            targets.append(({origin}, other))
                        for other, exported in {p[1]: p[0] for p in self.uses_of(origin)}.items() if origin in self.files else ():
                            if other in words:
                                real = self.absolute(exported, origin)
                                if real is not None:
                                    targets.append((self.origins(real), other))
                elif not (again and name not in words):
                    targets.append((self.origins(target), name))
            for match in re.finditer(r"\b((?:crate|super|self)(?:::[A-Za-z_][A-Za-z0-9_]*)+)", body):
                target = self.absolute(match.group(1).split("::"), module)
                if target is not None:
                    targets.append((self.origins(target), match.group(1)))
            for match in re.finditer(r"\bself\s*\.\s*([a-z_0-9]+)\s*\(", body):
                owner = self.methods.get(match.group(1))
                if owner and not re.search(rf"fn {match.group(1)}\b", body):
                    targets.append((owner, f"self.{match.group(1)}()"))
            for origins, name in targets:
                for origin in origins:
                    if origin != module:
                        graph[module][origin].add(name)
        return graph


def circles(graph) -> list[list[str]]:
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, on, found = {}, {}, [], set(), []
    sys.setrecursionlimit(10_000)

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on.add(node)
        for other in graph[node]:
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while True:
                part.append(stack.pop())
                on.discard(part[-1])
                if part[-1] == node:
                    break
            if len(part) > 1:
                found.append(sorted(part))

    for node in graph:
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def functions(text: str):
    """(name, lines) of each function as rustfmt lays them out."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        match = re.match(r"^(\s*)(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|async\s+|unsafe\s+|extern\s+\"C\"\s+)*fn\s+([a-z_0-9]+)", line)
        if not match:
            continue
        for end in range(number, len(lines)):
            if lines[end].startswith(match.group(1) + "}"):
                yield match.group(2), end - number + 1
                break
            if lines[end].rstrip().endswith(";") and end == number:
                break


def comments(text: str) -> str:
    """The comments of a file, each block of lines as one line."""
    blocks, block = [], []
    for line in [*text.split("\n"), ""]:
        match = re.match(r"\s*//[/!]?\s?(.*)", line)
        if match and match.group(1).strip():
            block.append(match.group(1).strip())
        elif block:
            blocks.append(" ".join(block))
            block = []
    return "\n".join(blocks)


def unwanted() -> dict[str, int]:
    """How many forms that are not wanted the comments of each crate have."""
    found = {}
    for source in sorted([*(ROOT / "crates").glob("*/src"), ROOT / "papers" / "src"]):
        texts = [comments(path.read_text()) for path in sorted(source.rglob("*.rs")) if path.name not in GENERATED]
        found[str(source.parent.relative_to(ROOT))] = sum(len(form.findall(text)) for text in texts for form in (SUBJECTS, WORDS))
    return found


def sentences(bless: bool) -> list[str]:
    """Crates whose comments, and pages whose sentences, have more such forms than are noted."""
    crates = unwanted()
    faults = {str(path.relative_to(ROOT)): prose.faults(path.read_text()) for path in prose.pages(ROOT)}
    found = crates | {page: len(of_page) for page, of_page in faults.items() if of_page}
    noted = dict(line.rsplit(" ", 1) for line in SENTENCES.read_text().splitlines()) if SENTENCES.exists() else {}
    if bless:
        lowest = {name: min(count, int(noted.get(name, count))) for name, count in found.items()}
        SENTENCES.write_text("".join(f"{name} {count}\n" for name, count in lowest.items()))
        noted = {name: str(count) for name, count in lowest.items()}
    problems = []
    for name, count in found.items():
        if count > int(noted.get(name, 0)):
            what = "a subject that readers have to guess (see scripts/shape.py)" if name in crates else "too many words, or an opening that is not wanted (see scripts/prose.py)"
            problems.append(f"{name}: {count} sentences with {what}; {noted.get(name, 0)} were noted: mend what is new")
            problems += [f"    {name}:{line}: {fault}" for line, fault in faults.get(name, [])]
    return problems


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--circles", action="store_true", help="show the uses within each circle")
    options.add_argument("--bless", action="store_true", help="note how many sentences are left that shall go")
    arguments = options.parse_args()
    problems = sentences(arguments.bless)
    for name, allowed in LIMITS.items():
        crate = Crate(name)
        graph = crate.edges()
        for circle in circles(graph):
            if set(circle) <= set(allowed):
                continue
            names = [module or "lib" for module in circle]
            problems.append(f"crates/{name}: a circle of {len(names)} files: {', '.join(names)}")
            if arguments.circles:
                for module in circle:
                    for other in circle:
                        if graph[module].get(other):
                            problems.append(f"    {module} -> {other}: {', '.join(sorted(graph[module][other])[:6])}")
    for path in sorted(path for folder in ("crates", "papers") for path in (ROOT / folder).rglob("*.rs")):
        if path.name in GENERATED or "target" in path.parts:
            continue
        text, place = path.read_text(), path.relative_to(ROOT)
        lines = text.split("\n")
        if len(lines) - 1 > FILE_LINES:
            problems.append(f"{place}: {len(lines) - 1} lines")
        problems += [f"{place}: fn {name} has {size} lines" for name, size in functions(text) if size > FUNCTION_LINES]
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS and "//" in line:
                problems.append(f"{place}:{number}: a line of {len(line)} columns")
    for page, most in PAGE_LINES.items():
        lines = len((ROOT / page).read_text().splitlines())
        if lines > most:
            problems.append(f"{page}: {lines} lines, {most} at most")
    print("\n".join(problems) or "nothing is beyond a limit")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
