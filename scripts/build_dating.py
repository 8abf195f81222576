"""Build the dating tables from the history of an AI Toolkit checkout or bare repository.

    python scripts/build_dating.py REPOSITORY [--branch main] [--since 2024-08-01]

Writes `patterns/dating/frames.json` (which code line stood at which line of the files that tracebacks show,
version by version) and `patterns/dating/wordings.json` (which fixed texts the program could print, when).
Only text is read (`git log`, `git cat-file`); nothing of the repository is imported or run.
"""

from __future__ import annotations

import argparse
import ast
import base64
import difflib
import json
import re
import subprocess
import sys
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HOME = Path(__file__).resolve().parent.parent
OUT = HOME / "patterns" / "dating"
TRACKED = (
    *("run.py", "jobs/BaseJob.py", "jobs/ExtensionJob.py", "jobs/process/BaseSDTrainProcess.py"),
    *("extensions_built_in/sd_trainer/SDTrainer.py", "extensions_built_in/sd_trainer/DiffusionTrainer.py"),
    *("extensions_built_in/sd_trainer/UITrainer.py",),
    *("toolkit/stable_diffusion_model.py", "toolkit/models/base_model.py", "toolkit/models/wan21/wan21.py"),
    *("toolkit/dataloader_mixins.py", "toolkit/data_loader.py", "toolkit/data_transfer_object/data_loader.py"),
    *("toolkit/util/quantize.py", "toolkit/memory_management/manager.py"),
    *("toolkit/memory_management/manager_modules.py", "toolkit/train_tools.py", "toolkit/timer.py"),
    *("toolkit/network_mixins.py", "toolkit/lora_special.py", "toolkit/optimizer.py", "toolkit/ema.py"),
)
FAMILIES = "extensions_built_in/diffusion_models/"
PRINTING = ("run.py", "jobs/", "toolkit/", "extensions_built_in/")
PRINTERS = frozenset({"print", "print_acc", "print_and_status_update", "update_status", "tqdm"})
MIN_WORDING = 8
"""Shorter texts are too common to prove anything."""
MIN_SHAPE = 4
MAX_GAP = 8
"""A text that went and came back within so many commits was moved, not dropped."""


class Repository:
    """The texts of a repository, through git."""

    def __init__(self, path: str, branch: str) -> None:
        self._git = ["git", "-C", path]
        self._branch = branch
        self._cat = subprocess.Popen([*self._git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, *words: str) -> str:
        """What a git command prints."""
        return subprocess.run([*self._git, *words], check=True, capture_output=True, encoding="utf-8").stdout

    def commits(self) -> list[tuple[str, int, int]]:
        """All commits that the branch stood at, oldest first, with the second they were made.

        The third value is when their content could first be had: what a merge brings in may have been public
        on a branch of the same repository (or on its other half) before; a stranger's fork does not count.
        """
        rows = self.run("log", "--first-parent", "--reverse", "--format=%H %ct %p|%s", self._branch)
        found: list[tuple[str, int, int]] = []
        for row in rows.splitlines():
            head, subject = row.split("|", 1)
            name, at, *parents = head.split()
            first = int(at)
            foreign = subject.startswith("Merge pull request") and " from ostris/" not in subject
            if len(parents) > 1 and not foreign:
                dates = self.run("log", "--format=%ct", f"{name}^1..{name}").split()
                first = min([first, *map(int, dates)])
            found.append((name[:7], int(at), first))
        return found

    def changes(self) -> Iterator[tuple[str, int, list[tuple[str, str | None]]]]:
        """Each commit with the Python files that it changed, as (path, blob or None where it went)."""
        text = self.run(
            *("log", "--first-parent", "--reverse", "--raw", "--no-abbrev", "--no-renames", "-m"),
            *("--format=@%H %ct", self._branch, "--", "*.py"),
        )
        head: tuple[str, int] | None = None
        rows: list[tuple[str, str | None]] = []
        for line in text.splitlines():
            if line.startswith("@"):
                if head:
                    yield *head, rows
                name, at = line[1:].split()
                head, rows = (name[:7], int(at)), []
            elif line.startswith(":"):
                fields, path = line.split("\t", 1)
                blob, status = fields.split()[3:5]
                rows.append((path, None if status == "D" else blob))
        if head:
            yield *head, rows

    def text(self, blob: str) -> str:
        """The text of one file."""
        assert self._cat.stdin and self._cat.stdout
        self._cat.stdin.write(blob.encode() + b"\n")
        self._cat.stdin.flush()
        size = int(self._cat.stdout.readline().split()[2])
        content = self._cat.stdout.read(size + 1)[:-1]
        return content.decode("utf-8", "replace")


def digest(line: str) -> bytes:
    """Three bytes for one stripped code line, as postmortem/diagnosis/dating.py works them out."""
    return zlib.crc32(line.strip().encode()).to_bytes(4, "big")[1:]


def hunks(before: list[bytes], after: list[bytes]) -> list[list[object]]:
    """What turns `before` into `after`, last place first: [start, removed, the added lines' digests]."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    found: list[list[object]] = []
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag != "equal":
            found.append([a, b - a, base64.b64encode(b"".join(after[c:d])).decode()])
    return found[::-1]


class Words(NamedTuple):
    """The texts of one file: those that it prints whole, all lines of its constants, and its f-strings' shapes."""

    printed: frozenset[str] = frozenset()
    constant: frozenset[str] = frozenset()
    shapes: frozenset[str] = frozenset()


def words_of(text: str) -> Words:
    """What a file can print as a line or as the name of a bar, and what it holds in any other way."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return Words()
    printed: set[str] = set()
    constant: set[str] = set()
    shapes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            constant.update(line.strip() for line in node.value.splitlines())
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            if sum(len(str(part).strip()) for part in parts if part is not None) >= MIN_SHAPE:
                shape = "".join(".*" if part is None else re.escape(str(part)) for part in parts)
                shapes.add(shape.strip())
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
            if name in PRINTERS:
                given = [] if name == "tqdm" else list(node.args)
                given += [word.value for word in node.keywords if word.arg == "desc"]
                for value in given:
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        printed.add(value.value.strip())
    telling = {w for w in printed if len(w) >= MIN_WORDING and "\n" not in w and re.search(r"[A-Za-z]{3}", w)}
    return Words(frozenset(telling), frozenset(constant), frozenset(shapes))


def ranges(held: list[tuple[int, frozenset[str], frozenset[str]]], wanted: set[str]) -> dict[str, list[list[Any]]]:
    """When each wording could be printed: half-open ranges of indexes into the commits.

    A text counts as there as soon as any constant holds it as a line, or any f-string could give it.
    """
    every = {shape for _, _, shapes in held for shape in shapes}
    matching: dict[str, set[str]] = {word: set() for word in wanted}
    joined = "\n".join(sorted(wanted))
    for shape in every:
        for found in re.finditer(rf"^\s*{shape}\s*$", joined, re.M):
            matching[found[0].strip()].add(shape)
    result: dict[str, list[list[Any]]] = {}
    for word in wanted:
        spans: list[list[Any]] = []
        for index, constants, shapes in held:
            there = word in constants or not matching[word].isdisjoint(shapes)
            if there and (not spans or spans[-1][1] is not None):
                if spans and index - spans[-1][1] <= MAX_GAP:
                    spans[-1][1] = None
                else:
                    spans.append([index, None])
            elif not there and spans and spans[-1][1] is None:
                spans[-1][1] = index
        result[word] = spans
    return result


def main() -> int:
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository")
    parser.add_argument("--branch", default="main")
    parser.add_argument("--since", default="2024-08-01", help="older versions count as one")
    options = parser.parse_args()
    repository = Repository(options.repository, options.branch)
    commits = repository.commits()
    since = int(repository.run("log", "-1", "--format=%ct", f"--until={options.since}", options.branch))
    start = max(index for index, (_, at, _) in enumerate(commits) if at <= since)
    index_of = {name: max(0, index - start) for index, (name, _, _) in enumerate(commits)}
    frames: dict[str, list[list[object]]] = {}
    lines: dict[str, list[bytes]] = {}
    texts: dict[str, Words] = {}
    parsed: dict[str, Words] = {}
    held: list[tuple[int, frozenset[str], frozenset[str]]] = []
    wanted: set[str] = set()
    latest: dict[str, tuple[str | None, int]] = {}
    for name, _, rows in repository.changes():
        index = index_of[name]
        for path, blob in rows:
            if path in TRACKED or (path.startswith(FAMILIES) and "/src/" not in path):
                if index == 0:
                    latest[path] = (blob, 0)
                else:
                    _flush(repository, path, latest, lines, frames)
                    latest[path] = (blob, index)
                    _flush(repository, path, latest, lines, frames)
            if path.startswith(PRINTING):
                if blob is not None and blob not in parsed:
                    parsed[blob] = words_of(repository.text(blob))
                texts[path] = parsed[blob] if blob is not None else Words()
        now = (
            frozenset().union(*(words.constant for words in texts.values())),
            frozenset().union(*(words.shapes for words in texts.values())),
        )
        wanted.update(*(words.printed for words in texts.values()))
        held = [*(held[:-1] if held and held[-1][0] == index else held), (index, *now)]
    for path in list(latest):
        _flush(repository, path, latest, lines, frames)
    kept = commits[start:]
    dates = [[at, name, _since(kept, index), min(at, first)] for index, (name, at, first) in enumerate(kept)]
    bounded = {word: spans for word, spans in ranges(held, wanted).items() if spans and spans != [[0, None]]}
    OUT.mkdir(parents=True, exist_ok=True)
    _write(OUT / "commits.json", dates, "commits")
    _write(OUT / "frames.json", frames, "files")
    _write(OUT / "wordings.json", dict(sorted(bounded.items())), "wordings")
    sys.stdout.write(f"{len(dates)} versions, {len(frames)} files, {len(bounded)} wordings\n")
    return 0


def _since(commits: list[tuple[str, int, int]], index: int) -> int:
    """The index of the version at which the content of version `index` could first be had."""
    first = commits[index][2]
    while index and commits[index - 1][1] >= first:
        index -= 1
    return index


def _flush(
    repository: Repository,
    path: str,
    latest: dict[str, tuple[str | None, int]],
    lines: dict[str, list[bytes]],
    frames: dict[str, list[list[object]]],
) -> None:
    """Add the pending version of `path` to the table, as its difference from the one before."""
    if path not in latest:
        return
    blob, index = latest.pop(path)
    now = [digest(line) for line in repository.text(blob).removesuffix("\n").split("\n")] if blob is not None else []
    change = hunks(lines.get(path, []), now)
    if change:
        frames.setdefault(path, []).append([index, change])
    lines[path] = now


def _write(target: Path, value: dict[str, object] | list[object], key: str) -> None:
    """One row a line, so that a rebuilt table can be read as a difference."""
    if isinstance(value, dict):
        rows = [f"{json.dumps(name)}:{json.dumps(item, separators=(',', ':'))}" for name, item in value.items()]
        body = "{" + ",\n".join(rows) + "}"
    else:
        body = "[" + ",\n".join(json.dumps(item, separators=(",", ":")) for item in value) + "]"
    target.write_text(f'{{"{key}":{body}}}\n', encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())
