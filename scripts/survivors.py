"""What mutmut's last run left: `python scripts/survivors.py` counts the changes of each file, and prints those that no
test noticed and that scripts/survivors.yaml does not answer, and answers there that no survivor asks for any more.

mutmut knows only a number for a change, and numbers shift with every edit; here a change is its function and the lines
that it takes away and puts in. Status 1 where a survivor has no answer, or an answer no survivor.
"""

from __future__ import annotations

import difflib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
MUTANTS = ROOT / "mutants"
ANSWERS = Path(__file__).with_suffix(".yaml")
_START = re.compile(r"( *)(?:async )?def (x\S*?)__mutmut_(\w+)\(")
_WORDS = {0: "survived", 33: "not reached", None: "not tried"}
"""mutmut's exit codes; every other one is a test that failed, or a change that never ended."""

Change = tuple[str, str, str]
"""The function, the lines that went, the lines that came."""


def changes(text: str) -> Iterator[tuple[str, str, str, str]]:
    """The changes in a file as mutmut writes it: the name of the function there, a number, lines that went and came."""
    original: dict[str, list[str]] = {}
    found: list[tuple[str, str, list[str]]] = []
    for part in re.split(rf"(?m)^(?={_START.pattern})", text):
        start = _START.match(part or "")
        if start is None or "\n" not in part:
            continue
        lines: list[str] = []
        for line in part.splitlines():
            outside = line.strip() and len(line) - len(line.lstrip()) <= len(start[1])
            if lines and outside and not line.lstrip().startswith(")"):
                break
            lines.append(line.replace(f"__mutmut_{start[3]}(", "(", 1) if not lines else line)
        if start[3] == "orig":
            original[start[2]] = lines
        else:
            found.append((start[2], start[3], lines))
    for name, number, lines in found:
        moves = [line for line in difflib.ndiff(original[name], lines) if line[0] in "-+"]
        went, came = (" ".join(line[2:].strip() for line in moves if line[0] == sign) for sign in "-+")
        yield name, number, went, came


def shown(module: str, name: str) -> str:
    """The function as people write it: ``odds._Seen.rest`` for ``xǁ_Seenǁrest``, ``odds._drawn`` for ``x__drawn``."""
    plain = name[2:].replace("ǁ", ".")
    return f"{module}.{plain}"


def main() -> int:
    """The table by file, what is not answered, what is stale; the status."""
    answered = {(one["in"], one["from"], one["to"]) for one in yaml.safe_load(ANSWERS.read_text(encoding="utf-8"))}
    used: set[Change] = set()
    left: list[tuple[str, Change]] = []
    skipped = 0
    print(f"{'':24}  made killed answered left unreached untried")
    for meta in sorted(MUTANTS.glob("postmortem/*/*.py.meta")):
        codes = json.loads(meta.read_text(encoding="utf-8"))["exit_code_by_key"]
        if not codes:
            continue
        module = f"{meta.parent.name}.{meta.name.split('.')[0]}"
        counts: Counter[str] = Counter()
        for name, number, went, came in changes(meta.with_suffix("").read_text(encoding="utf-8")):
            word = _WORDS.get(codes.get(f"postmortem.{module}.{name}__mutmut_{number}"), "killed")
            change = (shown(module, name), went, came)
            if word in ("survived", "not reached") and change in answered:
                used.add(change)
                word = "answered"
            elif word in ("survived", "not reached"):
                left.append((word, change))
            counts[word] += 1
        skipped += counts["not tried"]
        words = ("killed", "answered", "survived", "not reached", "not tried")
        print(f"{module:24} {sum(counts.values()):5} " + " ".join(f"{counts[word]:6}" for word in words))
    for word, (where, went, came) in left:
        print(f"{word}: {where}\n  - {went}\n  + {came}")
    # what was not tried may still ask for its answer
    stale = sorted(answered - used) if not skipped else []
    for where, went, came in stale:
        print(f"answered, but no survivor: {where}\n  - {went}\n  + {came}")
    return 1 if left or stale else 0


if __name__ == "__main__":
    sys.exit(main())
