"""Half-written: a log that ends, or begins, in every kind of place."""

from __future__ import annotations

from tests.attacks.case import ABORT, DIED, FAILING, HEAD, RESULT, SIZES, Attack, log
from tests.simulate import BANNER, bar, training

PLACES = {
    "in the first word": "Running 1 jo",
    "in the dump": '    "train": {\n        "batch_s',
    "behind the dump": "\n}\n",
    "in the banner of the job": "# Running jo",
    "in the job's name": "# Running job: mu",
    "while it loads": "Loading transfo",
    "before the first bar": "Model Loaded\n",
    "in a bar": "mugs:   0%|",
    "in a bar's clock": "[00:0",
    "in a bar's postfix": ", lr: 1.0e-0",
    "behind a bar": "e-04 loss: 0.30",
}
BEHIND = {
    "in a banner of a skip": BANNER.format(1)[:60],
    "behind a banner of a skip": BANNER.format(1),
    "in the line that aborts": f"Error running job: {ABORT[:30]}",
    "in the table of results": RESULT[:50],
    "in a traceback's head": "Traceback (most rec",
    "in a frame": 'Traceback (most recent call last):\n  File "/x/a.p',
    "behind a frame": 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in f\n',
    "in a frame's code": 'Traceback (most recent call last):\n  File "/x/a.py", line 3, in f\n    x = torch.emp',
    "in the error's name": "torch.OutOfMemoryErr",
    "behind the error's name": "torch.OutOfMemoryError: ",
    "in the error's first words": "torch.OutOfMemoryError: CUDA out of mem",
    "in its first size": f"torch.OutOfMemoryError: {SIZES[: SIZES.index('2.00') + 2]}",
    "in its unit": f"torch.OutOfMemoryError: {SIZES[: SIZES.index('GiB') + 2]}",
    "in its capacity": f"torch.OutOfMemoryError: {SIZES[: SIZES.index('23.52') + 3]}",
    "in an escape": "\x1b[3",
    "in a title": "\x1b]0;half",
    "in a carriage return": "\r",
    "in a letter": "\ud55c",
}
KNOWN = ("behind the error's name", "in the error's first words", "in its first size", "in its unit", "in its capacity")
"""Where enough of the error stands to know it."""
DEEP = HEAD + training(400, [], until=20) + "\n"


def cut(name: str, text: str, word: str) -> Attack:
    """`text` up to the end of `word`."""
    return log(f"ends {name}", text[: text.index(word) + len(word)], 0)


ATTACKS = [
    *(cut(name, DEEP, word) for name, word in list(PLACES.items())[1:]),
    log("ends in the first word", PLACES["in the first word"], 3),
    *(
        log(
            f"ends {name}",
            DEEP.encode() + text.encode()[: None if name != "in a letter" else 2],
            1 if name in KNOWN else 0,
        )
        for name, text in BEHIND.items()
        if name not in ("behind a banner of a skip",)
    ),
    log("ends behind a banner of a skip", HEAD + training(400, [], until=20) + BANNER.format(1), 1),
    *(log(f"ends after {share}/16", FAILING[: len(FAILING) * share // 16], 0) for share in (2, 4, 8)),
    *(log(f"begins after {share}/16", DIED[len(DIED) * share // 16 :], 1) for share in (1, 3, 5, 9, 12)),
    log("the middle alone", DIED[len(DIED) // 3 : len(DIED) // 2], 3),
    log("the error alone", SIZES, 1),
    log("the error's half", SIZES[:40], 1),
    log("its other half", SIZES[40:], 3),
    log("a bar alone", bar("mugs", 5, 400, 10, ""), 0),
    log("half of a bar alone", bar("mugs", 5, 400, 10, "")[:20], 3),
    log("a frame alone", '  File "/x/run.py", line 3, in main\n', 0),
    log("a head alone", HEAD, 0),
    log("written twice, the first half only", FAILING[: len(FAILING) // 2] + FAILING, 1),
    log("written over: an old end behind a new start", HEAD + FAILING[len(HEAD) // 2 :], 1),
    log("holes of NUL where a disk lost power", FAILING[:3000] + "\0" * 4096 + FAILING[3000:], 1),
]
