"""One endless line, and the same thing a hundred thousand times."""

from __future__ import annotations

import json

from tests.attacks.case import DIED, HEAD, KIND, OOM, SIZES, SKIPS, log
from tests.simulate import BANNER, bar, finished, training

GPU = {KIND: "gpu_oom"}
MEGABYTE = 1 << 20

ATTACKS = [
    log("a line of a megabyte", "x" * MEGABYTE + "\n" + DIED, 1, says=GPU, warns=("long_lines_cut",)),
    log("a line of a megabyte that never ends", DIED + "x" * MEGABYTE, 1, says=GPU, warns=("long_lines_cut",)),
    log("a megabyte of blanks", " " * MEGABYTE + "\n" + DIED, 1, says=GPU),
    log("the error behind a megabyte on its line", HEAD + "x" * MEGABYTE + SIZES + "\n", 0),
    log("the error before a megabyte on its line", HEAD + "Error running job: " + SIZES + "x" * MEGABYTE, 1, says=GPU),
    log("blanks between the words of the error", HEAD + SIZES.replace(" ", " " * 900) + "\n", 0),
    log("blanks behind each line", DIED.replace("\n", " " * 3000 + "\n"), 1, says=GPU),
    log("blanks before each line", DIED.replace("\n", "\n" + " " * 3000), 1, says=GPU),
    log("a megabyte of percent signs", "%" * MEGABYTE + "\n" + DIED, 1, says=GPU),
    log("half of a bar a million times", DIED + "50%|" * 200_000, 1, says=GPU),
    log("brackets and no end", DIED + "[00:00<" * 100_000, 1, says=GPU),
    log("one word of the error, over and over", "Tried to allocate " * 30_000 + "\n" + DIED, 1, says=GPU),
    log("the error, over and over on one line", HEAD + SIZES * 3000 + "\n", 1, says=GPU),
    log(
        "its start over and over",
        HEAD + "CUDA out of memory. Tried to allocate 2 GiB (GPU 0; " * 5000 + "\n" + OOM,
        1,
        says=GPU,
    ),
    log("the error on 20,000 lines", HEAD + OOM * 20_000, 1, says=GPU, warns=("too_many_events",)),
    log("30,000 kinds of the error", HEAD + "".join(f"{SIZES} {n}\n" for n in range(30_000)), 1, says=GPU),
    log("20,000 banners", HEAD + "".join(BANNER.format(1 + n % 3) for n in range(20_000)) + DIED, 1, says=GPU),
    log("5,000 jobs", "".join(f"# Running job: j{n}\n" for n in range(5_000)) + DIED, 1, says=GPU),
    log("3,000 heads of jobs", "Running 1 job\n" * 3_000 + DIED, 1, says=GPU),
    log("50,000 empty lines", HEAD + "\n" * 50_000 + OOM, 1, says=GPU),
    log("carriage returns by the hundred thousand", HEAD + "\r" * 300_000 + OOM, 1, says=GPU),
    log("10,000 datasets", HEAD + "".join(f"Dataset: /d/{n}\n" for n in range(10_000)) + OOM, 1, says=GPU),
    log(
        "10,000 buckets",
        HEAD + "Bucket sizes for /d:\n" + "".join(f"{n}x{n}: 1 files\n" for n in range(64, 10_064)) + OOM,
        1,
        says=GPU,
    ),
    log("50,000 opening braces", "{\n" * 50_000 + DIED, 1, says=GPU),
    log(
        "a bar of another name each time",
        HEAD + "".join(bar(f"b{n}", 1, 2, 1, "") for n in range(20_000)) + "\n" + OOM,
        1,
        says=GPU,
    ),
    log(
        "a bar of another total each time",
        HEAD + "".join(bar("mugs", 1, n + 2, 1, "") for n in range(20_000)) + "\n" + OOM,
        1,
        says=GPU,
    ),
    log(
        "a bar back and forth",
        HEAD + "".join(bar("mugs", n % 2, 400, n, "") for n in range(20_000)) + "\n" + OOM,
        1,
        says=GPU,
    ),
    log("every second step is skipped", HEAD + training(6_000, range(0, 6_000, 2)) + finished(), 1),
    log(
        "JSON records with a megabyte in one",
        json.dumps({"log": "x" * MEGABYTE + "\n", "stream": "stdout"})
        + "\n"
        + json.dumps({"log": DIED, "stream": "x"}),
        1,
    ),
    log(
        "10,000 JSON records",
        "".join(
            json.dumps({"log": line + "\n", "time": "t"}) + "\n" for line in (HEAD + "x\n" * 10_000 + OOM).splitlines()
        ),
        1,
        says=GPU,
    ),
    log("a config without an end", "Running 1 job\n{\n" + '    "a": 1,\n' * 30_000 + SKIPS, 1),
    log("prefixes without an end", "[rank0]: " * 20_000 + "\n" + DIED, 1, says=GPU),
    log(
        "5,000 ranks",
        "".join(f"[rank{n}]: x\n" for n in range(5_000)) + HEAD + "".join(f"[rank{n}]: {OOM}" for n in range(500)),
        1,
        says=GPU,
    ),
    log("quotes of quotes", "> " * 8_000 + "\n" + DIED, 1, says=GPU),
    log("HTML entities by the hundred thousand", DIED.replace("<", "&lt;") + "&amp;lt;" * 60_000, 1, says=GPU),
    log("numbered lines", "".join(f"{n}: {line}\n" for n, line in enumerate(DIED.split("\n"), 1)), 1, says=GPU),
    log("flattened to one line", DIED.replace("\n", "\\n"), 1, says=GPU),
    log("flattened twice", DIED.replace("\n", "\\n").replace("\\", "\\\\"), 1),
    log("nothing but the error's first word", "CUDA " * 100_000, 3),
]
