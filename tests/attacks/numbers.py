"""Numbers that are none, that are too large, or that say what cannot be: sizes, steps, dates, bars."""

from __future__ import annotations

from tests.attacks.case import DIED, HEAD, KIND, OOM, Attack, log
from tests.simulate import config, head, training

GPU = {KIND: "gpu_oom"}
HUGE = "9" * 4_000


def sized(name: str, tried: str, capacity: str = "23.52 GiB", free: str = "1.00 MiB", status: int = 1) -> Attack:
    """An error with these sizes."""
    text = f"Error running job: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {capacity} of which {free} is free.\n"
    return log(f"size: {name}", HEAD + text, status)


def drawn(name: str, *draws: str, before: str = HEAD, behind: str = "\n" + OOM) -> Attack:
    """A run whose bar is drawn so."""
    return log(f"bar: {name}", before + "".join("\r" + one for one in draws) + behind, 1, says=GPU)


def bar(
    n: object, total: object, clock: str = "00:01<00:02", pct: object = 50, rate: str = "1.00s/it", name: str = "mugs"
) -> str:
    """One draw, whatever it says."""
    return f"{name}: {pct:>3}%|#####     | {n}/{total} [{clock}, {rate}, lr: 1.0e-04 loss: 3.000e-01]"


def stamped(name: str, stamp: str) -> Attack:
    """A log with this in front of each line."""
    lines = (HEAD + OOM).splitlines()
    return log(f"date: {name}", "".join(f"{stamp}{line}\n" for line in lines), 1)


ATTACKS = [
    *(
        sized(name, text)
        for name, text in (
            *(
                ("zero", "0 bytes"),
                ("negative", "-2.00 GiB"),
                ("17179869184.00 GiB", "17179869184.00 GiB"),
                ("4,000 digits", HUGE + " GiB"),
            ),
            *(
                ("nan", "nan GiB"),
                ("inf", "inf GiB"),
                ("1e999", "1e999 GiB"),
                ("no unit", "2.00"),
                ("another unit", "2.00 parsecs"),
            ),
            *(
                ("leading zeros", "000000002.00 GiB"),
                ("two points", "2.0.0 GiB"),
                ("a comma", "2,00 GiB"),
                ("Arabic digits", "\u0662.\u0660\u0660 GiB"),
            ),
            *(
                ("full-width digits", "２.００ GiB"),
                ("a point only", ". GiB"),
                ("hex", "0x10 GiB"),
                ("bytes of 20 digits", "18446744073709551615 bytes"),
            ),
            *(("underscores", "2_000 MiB"), ("a space in it", "2 .00 GiB"), ("a plus", "+2.00 GiB")),
        )
    ),
    sized("more free than there is", "2.00 GiB", "8.00 GiB", "900.00 GiB"),
    sized("no capacity", "2.00 GiB", "0 bytes", "0 bytes"),
    sized("a capacity that underflowed", "2.00 GiB", "17179869183.99 GiB"),
    sized("a free size of 4,000 digits", "2.00 GiB", "23.52 GiB", HUGE + " MiB"),
    drawn("n beyond its total", bar(900, 400)),
    drawn("a total of zero", bar(0, 0)),
    drawn("n without a total", bar(5, 0)),
    drawn("12 digits", bar("9" * 12, "9" * 12)),
    drawn("4,000 digits", bar(HUGE, HUGE)),
    drawn("negative", bar(-5, -400)),
    drawn("leading zeros", bar("0007", "0400")),
    drawn("999 percent", bar(5, 400, pct=999)),
    drawn("backwards", *(bar(n, 400) for n in range(300, 0, -1))),
    drawn("standing still", *[bar(5, 400)] * 5_000),
    drawn("jumping by a million", *(bar(n * 1_000_000, 999_999_999) for n in range(500))),
    drawn("steps beyond the config's", *(bar(n, 10**11) for n in range(0, 10**11, 10**9))),
    drawn("a clock of colons", bar(5, 400, ":::::<:::::")),
    drawn("a clock with two colons", bar(5, 400, "12::0<00:02")),
    drawn("a clock of 16 digits", bar(5, 400, "9999999999999999<00:02")),
    drawn("a clock that runs back", *(bar(n, 400, f"{99 - n:02d}:00<00:02") for n in range(90))),
    drawn("an empty clock", bar(5, 400, "<")),
    drawn("a rate of 24 signs", bar(5, 400, rate="9" * 20 + "s/it")),
    drawn("no rate", bar(5, 400, rate="?")),
    drawn("a rate of zero", bar(5, 400, rate="0.00s/it")),
    drawn("a postfix of 400 letters", bar(5, 400)[:-1] + "x" * 350 + "]"),
    drawn("a postfix without an end", bar(5, 400)[:-1] + "x" * 9_000),
    drawn("loss: nan", bar(5, 400).replace("3.000e-01", "nan")),
    drawn("a name of percents", bar(5, 400, name="100%| 3/3 [00:00<00:00]")),
    drawn("a name that is the error", bar(5, 400, name="CUDA out of memory. Tried to allocate 2.00 GiB")),
    drawn("no name", bar(5, 400, name="")),
    drawn("torn in every place", *(bar(5, 400)[:at] for at in range(len(bar(5, 400))))),
    log("steps: the config says -1", head(config(train__steps=-1)) + training(40, [39]) + OOM, 1),
    log("steps: the config says 1e15", head(config(train__steps=10**15)) + training(40, [39]) + OOM, 1),
    log("steps: the config says a word", head(config(train__steps="many")) + training(40, [39]) + OOM, 1),
    log("steps: saved at 10**30", HEAD + f"Saving at step {10**30}\n" + OOM, 1, says=GPU),
    log("exit code of 400 digits", HEAD + "exited with code " + "1" * 400 + "\n", 0),
    log("exit code in hex without an end", HEAD + "exited with code 0x" + "f" * 400 + "\n", 0),
    log("a signal of 400 digits", HEAD + "died with <Signals." + "9" * 400 + "\n", 0),
    log("exit code behind 15,000 blanks", HEAD + "exitcode" + " " * 15_000 + "\x00\n" + OOM, 1, says=GPU),
    log(
        "a killed process of 400 digits",
        HEAD + "Out of memory: Killed process " + "1" * 400 + " (python) total-vm:1kB\n",
        1,
    ),
    log("buckets of zero by zero", HEAD + "Bucket sizes for /d:\n0x0: 0 files\n1 buckets made\n" + OOM, 1, says=GPU),
    log(
        "buckets of 400 digits",
        HEAD + f"Bucket sizes for /d:\n{'9' * 400}x{'9' * 400}: {'9' * 400} files\n" + OOM,
        1,
        says=GPU,
    ),
    log(
        "a GPU number of 400 digits",
        HEAD + f"CUDA out of memory. Tried to allocate 2.00 GiB. GPU {'9' * 400} has a total capacity of 23 GiB\n",
        1,
        says=GPU,
    ),
    log("100 other processes", HEAD + OOM.strip() + " Process 1 has 2.00 GiB memory in use." * 100 + "\n", 1, says=GPU),
    *(
        stamped(name, stamp)
        for name, stamp in (
            *(
                ("month 13", "2026-13-45T25:61:61Z "),
                ("the year 0", "0000-00-00T00:00:00Z "),
                ("the year 9999", "9999-12-31T23:59:59Z "),
            ),
            *(
                ("Feb 30", "Feb 30 12:00:00 host kernel: "),
                ("Feb 29 of no leap year", "2025-02-29 12:00:00.123 | INFO     | a:b:1 - "),
            ),
            *(
                ("a zone of 99 hours", "2026-02-03T04:05:06+99:99 "),
                ("hour 24", "2026-02-03T24:00:00Z "),
                ("second 60", "2026-12-31T23:59:60Z "),
            ),
            *(
                ("nine decimals", "2026-02-03T04:05:06.999999999Z "),
                ("an epoch of 20 digits", "99999999999999999999.999: "),
                ("an uptime of 12 digits", "[999999999999.999999] "),
            ),
            *(
                ("half a day at 13 PM", "[02/03/2026 13:05:06 PM] "),
                ("glog of month 99", "E9999 99:99:99.999999 1 a.cc:1] "),
                ("a date in Arabic digits", "\u0662\u0660\u0662\u0666-02-03T04:05:06Z "),
            ),
        )
    ),
    log(
        "date: running back",
        "".join(f"2026-02-03T04:{59 - n % 60:02d}:00Z {line}\n" for n, line in enumerate(DIED.splitlines())),
        1,
        says=GPU,
    ),
    log(
        "date: another form each line",
        "".join(
            f"{('[rank0]: ', '2026-02-03T04:05:06Z ', 'Feb  3 04:05:06 h kernel: ', '')[n % 4]}{line}\n"
            for n, line in enumerate(DIED.splitlines())
        ),
        1,
    ),
]
