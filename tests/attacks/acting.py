"""Escapes, bidi and invisible characters, and markup for each place that shows a report."""

from __future__ import annotations

import unicodedata

from tests.attacks.case import DIED, HEAD, KIND, SIZES, Attack, files, log
from tests.hostile import HOSTILE
from tests.simulate import buckets, config, head

GPU = {KIND: "gpu_oom"}
_INVISIBLE = [
    character
    for code in range(0x11_0000)
    if unicodedata.category(character := chr(code)) in ("Cf", "Zl", "Zp") and code not in range(0xE0000, 0xE1000)
]


def everywhere(name: str, text: str) -> Attack:
    """`text` in a job's name, a path, a bucket's, a bar's, an error's and a line of its own."""
    one_line = " ".join(text.split()) or "x"
    data = (
        head(config(), name=one_line)
        + f"Caching latents for {one_line}\n"
        + buckets({"512x768": 3}, one_line)
        + f"{text}\n\r{one_line}:  50%|#####     | 1/2 [00:01<00:01,  1.00s/it]\n"
        + f'Traceback (most recent call last):\n  File "{one_line}", line 3, in f\n    {one_line}\n'
        + f"torch.OutOfMemoryError: {SIZES} {text}\n"
    )
    return log(name, data.encode("utf-8", "surrogatepass"), 1, says=GPU)


ATTACKS = [
    *(everywhere(f"hostile text {number}: {text[:24]!r}", text) for number, text in enumerate(HOSTILE)),
    log("every invisible character", "".join(_INVISIBLE) + "\n" + DIED + "".join(_INVISIBLE), 1, says=GPU),
    log("colour in every word", DIED.replace(" ", " \x1b[31m"), 1, says=GPU),
    log("escapes in the words of the error", DIED.replace("out of", "out\x1b[0m of"), 1, says=GPU),
    log("a hundred thousand escapes", HEAD + "\x1b[31m" * 100_000 + "\n" + DIED, 1, says=GPU),
    log("escapes nested", DIED + "\x1b[" * 20_000, 1, says=GPU),
    log("bidi around the error", HEAD + "\u202e" + f"Error running job: {SIZES}" + "\u202c\n", 1, says=GPU),
    *(
        log(f"{name} in the words of the error", DIED.replace("out of m", f"ou{mark}t of{mark} {mark}m"), 1, says=GPU)
        for name, mark in {
            "a colour": "\x1b[1m",
            "a cursor": "\x1b[2C",
            "a link": "\x1b]8;;http://x.example\x1b\\",
            "a short escape": "\x1b=",
            "a control": "\x07",
            "a delete": "\x7f",
            "a control beyond ASCII": "\x86",
            "a soft hyphen": "\xad",
            "a joiner": "\u034f",
            "a zero width": "\u200b",
            "a direction": "\u202e",
            "an isolate": "\u2066",
            "a filler": "\u3164",
            "a variation": "\ufe0f",
            "a byte order mark": "\ufeff",
            "an annotation": "\ufff9",
            "a tag": "\U000e0041",
        }.items()
    ),
    log("piles of marks", DIED + "e" + "\u0336" * 50_000, 1, says=GPU),
    log("a Korean report of it", DIED + "\x1b[2J\u202e<script>", 1, says=GPU, options=("--lang", "ko")),
    files(
        "in a config's keys",
        {"log.txt": DIED, "config.yaml": 'config: {process: [{train: {"\\e[31m<b>": 1, batch_size: 1}}]}\n'},
    ),
    files(
        "in a config's values",
        {
            "log.txt": "Running 1 job\n" + SIZES,
            "config.yaml": 'config: {name: "\\e[2J\\u202e", process: [{train: {optimizer: "<script>\\e]0;x\\a"}}]}\n',
        },
        hides=("\x1b", "\u202e"),
    ),
]
