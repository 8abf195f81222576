"""Job configs that are bombs, that YAML allows and nobody means, or that are of the wrong types."""

from __future__ import annotations

import json
from typing import Any

from postmortem.knowledge.load import load
from tests.attacks.case import DIED, KIND, SKIPS, Attack, files
from tests.simulate import config as plain

GPU = {KIND: "gpu_oom"}
LOG = "Running 1 job\n# Running job: mugs\n" + SKIPS
"""A log without a dump, so that the file beside it speaks."""
DAMAGED = ("config_damaged",)
WRONG: tuple[Any, ...] = (
    "x",
    -1,
    10**30,
    1.5,
    True,
    None,
    [],
    [[]],
    {},
    {"a": 1},
    "\x1b[2J",
    "\ud800",
    "9" * 5_000,
    [None, "x", {}],
)


def config(name: str, text: str | bytes, *, warns: tuple[str, ...] = ()) -> Attack:
    """A run folder with this config."""
    return files(f"config: {name}", {"log.txt": LOG, "config.yaml": text}, 1, says=GPU, warns=warns)


def named(name: str, text: str | bytes, status: int, *, tells: str = "") -> Attack:
    """A config that the user names."""
    given = {"run.log": LOG, "c.yaml": text}
    return files(f"named config: {name}", given, status, arguments=("{}/run.log", "--config", "{}/c.yaml"), tells=tells)


def wrong(path: str) -> Attack:
    """A config in which one setting is in turn of each wrong type, a process for each."""
    processes = []
    for value in WRONG:
        process = json.loads(json.dumps(plain()))
        place = process
        *outer, last = path.replace("[]", "").split(".")
        for part in outer:
            below = place.setdefault(part, {})
            if isinstance(below, list):
                below = below[0] if below and isinstance(below[0], dict) else {}
            place = below if isinstance(below, dict) else {}
        place[last] = value
        processes.append(process)
    first = [{"config": {"process": [one]}} for one in processes]
    text = {"config": {"name": "x", "process": processes}}
    more = {f"{index}/config.yaml": json.dumps(one) for index, one in enumerate(first)}
    return files(
        f"config: wrong types for {path}", {"log.txt": LOG, "config.yaml": json.dumps(text), **more}, 1, says=GPU
    )


BOMB = (
    "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    + "train: {steps: 3}\n"
)
MERGES = (
    "a0: &a0 {x: 1}\n"
    + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9))
    + "train: {steps: 3}\n"
)
NESTED = "train: " + "{<<: " * 30 + "{" + "".join(f"k{n}: 1, " for n in range(20_000)) + "}" + "}" * 30 + "\n"
PROCESS = "config:\n  process:\n  - train: {batch_size: 4}\n    model: {arch: flux}\n"

ATTACKS = [
    config("a bomb of aliases", BOMB, warns=DAMAGED),
    config("a bomb of merges", MERGES, warns=DAMAGED),
    config("an alias of itself", "train: &a {x: *a}\n", warns=DAMAGED),
    config("a list that holds itself", "train: &a [*a]\n", warns=DAMAGED),
    config("an alias of nothing", "train: *nothing\n", warns=DAMAGED),
    config("an anchor twice", "a: &x 1\nb: &x 2\ntrain: {steps: *x}\n"),
    config("a merge", "a: &a {batch_size: 4}\ntrain: {<<: *a, steps: 3}\n"),
    config("20,000 merges", "train: {" + "".join(f"<<: {{k{n}: 1}}, " for n in range(20_000)) + "steps: 3}\n"),
    config("a merge of merges", NESTED, warns=DAMAGED),
    config("a merge of a word", "train: {<<: x, steps: 3}\n"),
    config("a merge of itself", "train: &a {<<: *a, steps: 3}\n", warns=DAMAGED),
    config("a key twice", PROCESS + "    train: {batch_size: 1}\n", warns=("config_duplicate_key",)),
    config("5,000 keys twice", "train: {" + "a: 1, " * 5_000 + "a: 2}\n", warns=("config_duplicate_key",)),
    *(
        config(f"the tag {tag}", f"train: {{steps: {tag} x}}\n", warns=DAMAGED)
        for tag in (
            "!!python/object/apply:os.system",
            "!!python/name:os.system",
            "!x",
            "!!binary",
            "!!set",
            "!<tag:yaml.org,2002:python/none>",
        )
    ),
    config("a tag that fails", "train: {steps: !!int x}\n", warns=DAMAGED),
    config("a timestamp that is none", "train: {steps: 2001-99-99}\n", warns=DAMAGED),
    config("a number of 5,000 digits", f"train: {{steps: {'9' * 5_000}}}\n"),
    config("numbers of base 60", "train: {steps: 190:20:30, lr: 1:59.5}\n"),
    config("octal, hex, binary", "train: {steps: 0o17, batch_size: 0x10, lr: 0b11}\n"),
    config("nan and inf", "train: {steps: .nan, batch_size: .inf, lr: -.inf}\n"),
    config("yes, no, on, off", "train: {gradient_checkpointing: no, ema_config: {use_ema: on}}\n"),
    config("keys that are no words", "train: {[1, 2]: 3, {a: b}: 4}\n", warns=DAMAGED),
    config("a key of a null", "train: {null: 1, ~: 2, '': 3}\n"),
    config("a key of 100,000 letters", f"train: {{? {'k' * 100_000} : 1}}\n"),
    config("a value of a million letters", f"train: {{optimizer: {'v' * 1_000_000}}}\n"),
    config("too large", "x" * 3_000_000),
    config("300,000 values", "train: {x: [" + "1, " * 300_000 + "]}\n", warns=DAMAGED),
    config("many documents", "---\ntrain: {}\n---\ntrain: {}\n", warns=DAMAGED),
    config("directives", "%YAML 9.9\n---\ntrain: {steps: 3}\n", warns=DAMAGED),
    config("tabs", "train:\n\tsteps: 3\n", warns=DAMAGED),
    config("a string that never ends", 'train: {x: "\n', warns=DAMAGED),
    config("NULs", b"train: {steps: 3\0}\n", warns=DAMAGED),
    config("controls", b"train: {steps: 3}\n# \x07\x1b[2J\n", warns=DAMAGED),
    config("no UTF-8", b"train: {optimizer: \xff\xfe\xfd}\n"),
    config("UTF-16", PROCESS.encode("utf-16")),
    config("UTF-32", PROCESS.encode("utf-32")),
    config("empty", "", warns=DAMAGED),
    config("a comment", "# nothing\n", warns=DAMAGED),
    config("a word", "nothing\n", warns=DAMAGED),
    config("a list", "- train\n", warns=DAMAGED),
    config("no process", "config: {process: []}\n", warns=DAMAGED),
    config("a process that is a word", "config: {process: [x]}\n", warns=DAMAGED),
    config("processes that are a word", "config: {process: x}\n", warns=DAMAGED),
    config("10,000 processes", "config: {process: [" + "{train: {}}, " * 10_000 + "]}\n"),
    config("a name that is a list", "config: {name: [1], process: [{train: {}}]}\n"),
    config("JSON that breaks off", '{"config": {"process": [{"train": {', warns=DAMAGED),
    config("JSON with a key twice", '{"config": {"process": [{"train": {"steps": 1, "steps": 2}}]}}'),
    config("JSON with NaN", '{"config": {"process": [{"train": {"steps": NaN, "lr": Infinity}}]}}'),
    config("JSON with numbers without an end", '{"config": {"process": [{"train": {"steps": 1' + "0" * 5_000 + "}}]}}"),
    config(
        "JSON with lone surrogates", '{"config": {"name": "\\ud800", "process": [{"train": {"optimizer": "\\udfff"}}]}}'
    ),
    config("JSON of 1e999", '{"config": {"process": [{"train": {"steps": 1e999}}]}}'),
    named("a bomb", BOMB, 3, tells="more than 200000 values"),
    named("a tag", "train: !!python/object:x {}\n", 3, tells="tags are not accepted"),
    named("a PNG", b"\x89PNG\r\n\x1a\n" + b"\0" * 3_000, 3, tells="not YAML"),
    named("too large", b"x" * 3_000_000, 3),
    files(
        "named config: none",
        {"run.log": DIED},
        3,
        arguments=("{}/run.log", "--config", "{}/none.yaml"),
        tells="none.yaml",
    ),
    files(
        "named config: a folder", {"run.log": DIED}, 3, arguments=("{}/run.log", "--config", "{}"), tells="not a file"
    ),
    *(wrong(path) for path in sorted({setting.path for setting in load(cache=False).settings})),
]
