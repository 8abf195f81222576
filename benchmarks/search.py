"""The reference of the marginal time: a search for the literals that the patterns declare, by ripgrep.

`rg -c` counts lines, so it goes on to the next line at the first hit. A bar log captured with carriage returns has
lines of 50 kB and more, and some literals (`e-0` of a JSON number) stand in each draw: with all literals, ripgrep reads
a thousandth of such a file. So there are two lists, all literals and those that stand in no draw, and two files, the
log as it is and with a draw a line.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from postmortem.knowledge.load import load
from postmortem.scan import Lexicon

PYTHON = (
    "import re, sys; words = open(sys.argv[1], 'rb').read().split(b'\\n')[:-1]; "
    "search = re.compile(b'|'.join(map(re.escape, words))).search; "
    "print(sum(search(line) is not None for line in open(sys.argv[2], 'rb')))"
)


def literals() -> list[bytes]:
    """The literals that the scan looks for, each once."""
    lexicon = Lexicon(load())
    return sorted({*lexicon.anchored, *lexicon.carrier_anchors})


def absent_from(sample: bytes, words: list[bytes]) -> list[bytes]:
    """Those of `words` that do not stand in `sample`."""
    return [word for word in words if word not in sample]


def written(words: list[bytes], path: pathlib.Path) -> pathlib.Path:
    """`words` as a file of patterns, one a line."""
    path.write_bytes(b"".join(word + b"\n" for word in words))
    return path


def tool() -> str:
    """The search that is there: ripgrep, or what stands in for it."""
    return "rg" if shutil.which("rg") else "grep" if shutil.which("grep") else "python"


def version() -> str:
    """The reference and its version; says when it is not ripgrep."""
    name = tool()
    if name == "python":
        return "no rg: reference is a Python `re` search for each line"
    first = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout.split("\n")[0]
    return first if name == "rg" else f"no rg: reference is {first}"


def command(words: pathlib.Path, log: pathlib.Path) -> list[str]:
    """The command that counts the lines of `log` with one of the words in the file `words`."""
    name = tool()
    if name == "python":
        return [sys.executable, "-c", PYTHON, str(words), str(log)]
    return [name, "-c", "-F", "-f", str(words), str(log)]
