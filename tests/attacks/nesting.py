"""Deep nesting, and things that are opened and never closed: dumps, tracebacks, brackets."""

from __future__ import annotations

import json

from tests.attacks.case import DIED, HEAD, KIND, OOM, SKIPS, Attack, files, log

GPU = {KIND: "gpu_oom"}


def dumped(name: str, text: str) -> Attack:
    """A log whose config dump is `text`, and whose run died of GPU memory all the same."""
    return log(f"dump: {name}", f"Running 1 job\n{text}\n\n# Running job: mugs\n{SKIPS}", 1, says=GPU)


def nested(depth: int) -> str:
    """An object in an object, indented as a dump is."""
    rows = [" " * (4 * level) + ('"a": {' if level else "{") for level in range(depth)]
    return "\n".join([*rows, *(" " * (4 * level) + "}" for level in reversed(range(depth)))])


def frames(count: int, text: str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n") -> str:
    """A traceback of so many frames."""
    return "Traceback (most recent call last):\n" + '  File "/x/a.py", line 3, in f\n    f()\n' * count + text


ATTACKS = [
    dumped("50 levels", nested(50)),
    dumped("5,000 levels", nested(5_000)),
    dumped("20,000 lists on a line", '{\n    "a": ' + "[" * 20_000 + "\n}"),
    dumped("20,000 lists, closed", '{\n    "a": ' + "[" * 7_000 + "]" * 7_000 + "\n}"),
    dumped("a dump of a list", "[\n    1\n]"),
    dumped("a dump of nothing", "{\n}"),
    dumped("a key without a value", '{\n    "train":\n}'),
    dumped("a value without a key", "{\n    3\n}"),
    dumped("not closed", '{\n    "train": {\n        "steps": 3'),
    dumped("closed twice", '{\n    "train": {}\n}\n}'),
    dumped("a key twice", '{\n    "train": {"steps": 1},\n    "train": {"steps": 2}\n}'),
    dumped("a key of 15,000 letters", '{\n    "' + "k" * 15_000 + '": 1\n}'),
    dumped("keys that are dots and brackets", '{\n    "a.b[0]..": {\n        "[": 1\n    }\n}'),
    dumped("a number of 15,000 digits", '{\n    "train": {\n        "steps": ' + "9" * 15_000 + "\n    }\n}"),
    dumped(
        "NaN and Infinity",
        '{\n    "train": {\n        "lr": NaN,\n        "steps": Infinity,\n        "batch_size": -Infinity\n    }\n}',
    ),
    dumped("1e999", '{\n    "train": {\n        "steps": 1e999\n    }\n}'),
    dumped("lone surrogates", '{\n    "train": {\n        "optimizer": "\\ud800\\udfff"\n    }\n}'),
    dumped("escapes in strings", '{\n    "model": {\n        "name_or_path": "\\u001b[2J\\u202e\\u0000"\n    }\n}'),
    dumped(
        "wrong types everywhere",
        json.dumps(
            {key: [[1], "x", None] for key in ("train", "model", "datasets", "sample", "network", "save")}, indent=4
        ),
    ),
    dumped(
        "numbers for sections",
        json.dumps(dict.fromkeys(("train", "model", "datasets", "sample", "network"), 3), indent=4),
    ),
    dumped(
        "datasets of datasets",
        json.dumps({"datasets": [[{"resolution": 1}], {"resolution": {"a": [1]}}, None, 3]}, indent=4),
    ),
    dumped("5,000 datasets", json.dumps({"datasets": [{"resolution": [512]}] * 5_000}, indent=4)),
    dumped("Python's own words", "{\n    'train': None,\n    'x': True\n}"),
    dumped("comments", '{\n    // no\n    "train": {} # no\n}'),
    log("tracebacks: 5,000 frames", HEAD + frames(5_000), 1, says=GPU),
    log("tracebacks: 100,000 frames", HEAD + frames(100_000), 1, says=GPU),
    log("tracebacks: 3,000 of them", HEAD + frames(2) * 3_000, 1, says=GPU),
    log("tracebacks: heads only", HEAD + "Traceback (most recent call last):\n" * 20_000 + OOM, 1, says=GPU),
    log("tracebacks: frames without a head", HEAD + '  File "a", line 1, in f\n' * 9_000 + OOM, 1, says=GPU),
    log(
        "tracebacks: chained a thousand times",
        HEAD + "\nDuring handling of the above exception, another exception occurred:\n\n".join([frames(3)] * 1_000),
        1,
        says=GPU,
    ),
    log(
        "tracebacks: cause and context in turn",
        HEAD
        + "\nThe above exception was the direct cause of the following exception:\n\n".join(
            [frames(1, "KeyError: 'x'\n")] * 30
        )
        + frames(1),
        1,
    ),
    log(
        "tracebacks: recursion",
        HEAD
        + frames(990, "  [Previous line repeated 974 more times]\nRecursionError: maximum recursion depth exceeded\n"),
        0,
        says={KIND: "not_memory"},
    ),
    log(
        "tracebacks: repeated without end",
        HEAD + frames(3, "  [Previous line repeated 99999999999999999999 more times]\n" + OOM),
        1,
        says=GPU,
    ),
    log(
        "tracebacks: a line number of 400 digits",
        HEAD + frames(0) + '  File "a", line ' + "9" * 400 + ", in f\n" + OOM,
        1,
        says=GPU,
    ),
    log(
        "tracebacks: a path of 10,000 letters",
        HEAD + frames(0, "") + '  File "' + "/x" * 5_000 + '", line 1, in f\n' + OOM,
        1,
        says=GPU,
    ),
    log(
        "tracebacks: code of 15,000 letters",
        HEAD + frames(0, "") + '  File "a", line 1, in f\n    ' + "x(" * 7_500 + "\n" + OOM,
        1,
        says=GPU,
    ),
    log(
        "tracebacks: the error is a frame's code",
        HEAD
        + frames(0, "")
        + '  File "a", line 1, in f\n    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")\nKeyError: 1\n',
        0,
    ),
    log("tracebacks: no error at the end", HEAD + frames(3, ""), 0),
    log("tracebacks: every line twice", HEAD + "".join(line * 2 for line in frames(20).splitlines(True)), 1, says=GPU),
    log(
        "tracebacks: an exception group",
        HEAD
        + '  + Exception Group Traceback (most recent call last):\n  |   File "a", line 1, in f\n  | ExceptionGroup: x (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n',
        1,
        says=GPU,
    ),
    log("boxes: opened 2,000 times", HEAD + "╭─── Traceback (most recent call last) ───╮\n" * 2_000 + OOM, 1, says=GPU),
    log(
        "boxes: rows without an end",
        HEAD
        + "╭─── Traceback (most recent call last) ───╮\n"
        + "│ x                                       │\n" * 20_000
        + OOM,
        1,
    ),
    log(
        "boxes: a row of 15,000 blanks",
        HEAD + "╭─── Traceback (most recent call last) ───╮\n│ a.py:3 in f" + " " * 15_000 + "\x00│\n" + OOM,
        1,
    ),
    log(
        "boxes: code without a path",
        HEAD + "╭─── Traceback (most recent call last) ───╮\n│ ❱ 3 x()  │\n╰───╯\n" + OOM,
        1,
        says=GPU,
    ),
    log("brackets of every kind", "([{<" * 40_000 + "\n" + DIED, 1, says=GPU),
    log("quotes that never close", HEAD + "'\"`" * 40_000 + "\n" + OOM, 1, says=GPU),
    files("a config of 10,000 levels", {"log.txt": DIED, "config.yaml": "train: " + "[" * 10_000}, warns=()),
    files(
        "a JSON config of 10,000 levels",
        {"log.txt": DIED, "config.yaml": '{"train": ' + "[" * 10_000 + "]" * 10_000 + "}"},
    ),
    files(
        "a config indented 5,000 deep",
        {"log.txt": DIED, "config.yaml": "".join(" " * n + "a:\n" for n in range(1_000))},
    ),
]
