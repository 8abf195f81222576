"""One target under atheris: `python -m tests.fuzz.fuzzer scan 60` from the repository's root; findings in build/fuzz.

Ends with libFuzzer's status: 0 after its time, another where an input broke a promise, hung or took too much memory.
"""

from __future__ import annotations

import hashlib
import signal
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["postmortem"]):
    from tests.fuzz.targets import TARGETS
from tests.fuzz.seeds import seeds, words

BUILD = Path("build/fuzz")
MAX_BYTES = {"databases": 8192, "scan": 24_000, "reading": 24_000, "intake": 24_000}
HANG_S = 5
"""Of the process's own time, so that a machine that is busy with others finds no hangs."""
MEMORY_MIB = 1024


def main() -> None:
    """Fuzz the target that the first argument names for as many seconds as the second says."""
    name, time_s = sys.argv[1], int(sys.argv[2])
    place = BUILD / name
    corpus = place / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in seeds(name):
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    dictionary = place / "words"
    dictionary.write_text("".join(f'"{_escaped(word)}"\n' for word in dict.fromkeys(words()) if word), "ascii")
    options = [
        f"-max_total_time={time_s}",
        "-timeout=1200",
        f"-rss_limit_mb={MEMORY_MIB}",
        f"-max_len={MAX_BYTES.get(name, 16_000)}",
        f"-artifact_prefix={place}/",
        f"-dict={dictionary}",
        "-print_final_stats=1",
        "-report_slow_units=1200",
        "-len_control=0",
        "-verbosity=1",
    ]
    target = TARGETS[name]
    signal.signal(signal.SIGVTALRM, _hangs)

    def timed(data: bytes) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
        target(data)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    atheris.Setup([sys.argv[0], *options, str(corpus)], timed)
    atheris.Fuzz()


def _hangs(number: int, frame: object) -> None:
    raise TimeoutError(f"more than {HANG_S} seconds for one input")


def _escaped(word: bytes) -> str:
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
