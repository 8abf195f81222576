"""Floods: what repeats thousands of times costs little, and never hides how the run ended."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.model import Event, ScanResult, Traceback
from postmortem.scan import Lexicon, floods, items, lines, scan, scanner, traceback, units
from postmortem.scan.items import MAX_ALIKE, MAX_ITEMS
from postmortem.scan.recognise import Recogniser
from postmortem.scan.traceback import MAX_FRAMES
from tests.conftest import Analyse
from tests.simulate import bar, config, finished, head, training

SIZES = (
    "CUDA out of memory. Tried to allocate {} MiB. GPU 0 has a total capacity of 23.52 GiB of which 1.00 MiB is free. "
    "Including non-PyTorch memory, this process has 23.00 GiB memory in use."
)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines that are asked for what they say."""
    asked: list[str] = []
    once = Recogniser.__call__

    def counting(self: Recogniser, text: str, *rest: object) -> object:
        asked.append(text)
        return once(self, text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Recogniser, "__call__", counting)
    return asked


def test_the_end_of_a_flooded_run_is_kept(run: Analyse) -> None:
    retries = "".join(
        f"torch.OutOfMemoryError: {SIZES.format(number % 900 + 10)}\n" for number in range(MAX_ALIKE + 500)
    )
    analysis = run(head(config()) + retries + f"Error running job: {SIZES.format(7)}\n")
    assert analysis.diagnosis.outcome == "failed"
    assert analysis.diagnosis.memory_mib["tried_to_allocate"] == 7
    assert "too_many_events" in [notice.id for notice in analysis.warnings]


def test_the_newest_attempt_outlives_a_flood_before_it(lexicon: Lexicon, run: Analyse) -> None:
    flood = head(config()) + "Saving at step 100\n" * 40
    log = flood * 500 + head(config()) + training(40, []) + finished()
    kept = scan([log.encode()], lexicon)
    assert len(kept.items) <= MAX_ITEMS
    analysis = run(log)
    assert analysis.attempts[-1].end.outcome == "completed"
    assert analysis.diagnosis.kind == "none"


def test_thousands_of_jobs_in_one_log(run: Analyse) -> None:
    log = "".join(head(config(), name=f"job{number}") for number in range(2000))
    assert run(log).attempt.job_name is not None


def test_banners_after_the_abort(run: Analyse) -> None:
    """Several failures without a bar between them, each with its own skips and abort."""
    failing = training(400, {0, 1, 2, 3})
    tail = failing[failing.rindex("\r") :].partition("\n")[2]
    analysis = run(head(config()) + failing + tail * 3)
    assert analysis.diagnosis.kind == "gpu_oom"


def test_digits_without_end(run: Analyse) -> None:
    analysis = run(head(config()) + "CUDA out of memory. Tried to allocate " + "1" * 15_000 + " GiB\n")
    assert analysis.diagnosis.memory_mib.get("tried_to_allocate") is None


POOL = (
    "Killed",
    "Error: {n}",
    "CUDA out of memory. Tried to allocate {n} MiB.",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n}.00 GiB",
    "CUDA error: out of memory",
    "Saving at step {n}",
    "OSError: [Errno {n}] No space left on device: 'x'",
    "exit code {n}",
    "{n}30000000.5 Killed",
    "2026-02-03T04:05:{n}.123456789Z Error: {n}",
    "[rank{n}]: Error: {n}",
    "INFO vllm {n} in progress",
    "loss {n}e-04",
    "Traceback (most recent call last):",
    '  File "/opt/x.py", line {n}, in f',
    "    x = y()",
    "E28Error{n}E28Error{n}: : 'a''a'",
    "E28ErrorE{n}Error: : 'a''a'",
    "Running {n} jobs",
    "{{",
    '    "a": {n}',
    "}}",
    "mugs:  {n}%|## | {n}/99 [00:04<01:09,  1.40s/it, lr: 1.0e-04 loss: 3.1e-01]",
    "nothing at all {n}",
    "",
    "\x1b[31mKilled\x1b[0m",
)
NUMBERS = (28, 29, 13, 17, 99, 37)
"""Some of which an entry names."""


@settings(deadline=None, max_examples=int(os.environ.get("FLOODS_N", "60")))
@given(st.data())
def test_a_flood_that_is_counted_says_what_its_lines_said(lexicon: Lexicon, data: st.DataObject) -> None:
    """Passing over a flood changes nothing: not which items are kept, nor where, nor how many were dropped."""
    run = st.tuples(
        st.lists(st.sampled_from(POOL), min_size=1, max_size=2), st.lists(st.sampled_from(NUMBERS), min_size=6)
    )
    lines = [
        text.format(n=n) for texts, numbers in data.draw(st.lists(run, max_size=4)) for n in numbers for text in texts
    ]
    cut = data.draw(st.sampled_from(["\n", "\n", "\r\n", "\r"]))
    log = cut.join(lines).encode()
    counted, read = counted_and_read(log, lexicon)
    assert counted == read


HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "/opt/a{n}.py", line {n}, in f\n'
BOX = "╭──── Traceback (most recent call last) ────╮\n│ /opt/run.py:{n} in main │\n│ ❱ {n}   job.run()     │\n╰────╯\n"
UNITS = (
    f"{HEAD}{FRAME}    g({{n}})\n{FRAME}    h()\nRuntimeError: {{n}}\n",
    f"{HEAD}{FRAME}    g()\nE28Error: {{n}}\n",
    f"{HEAD}{FRAME}    g({{n}})\n",
    f"{HEAD}{FRAME}{FRAME}KeyError: 'x'\n",
    f"{HEAD}{FRAME}{FRAME}    g()\n    g()\nKeyError: 'x'\n",
    f'{HEAD}File "/opt/x.py", line {{n}}, in f\ng({{n}})\nValueError: {{n}}\n',
    f"{HEAD}{FRAME}    raise KeyError\n{FRAME}    k{{n}}k28\nTypeError\n\nDuring handling of the above exception, another "
    f"exception occurred:\n\n{HEAD}{FRAME}    g()\nOSError: [Errno {{n}}] x\n",
    f"  + Exception Group {HEAD}  |{FRAME}  |     g()\n  | ExceptionGroup: unhandled errors ({{n}} sub-exception)\n",
    HEAD,
    FRAME,
    f"{FRAME}    Killed\n",
    f"{FRAME}    print('CUDA error: out of memory %s' % {{n}})\n",
    "    code()\n",
    "RuntimeError: {n}\n",
    BOX,
    f"{BOX}RuntimeError: {{n}}\n",
    f"{BOX}went on {{n}}\nRuntimeError: CUDA out of memory. Tried to allocate {{n}} MiB.\n",
    BOX.replace("╰────╯\n", ""),
    f"[rank{{n}}]: {HEAD}[rank{{n}}]: {FRAME}[rank{{n}}]:     g()\n[rank{{n}}]: ValueError: {{n}}\n",
    f"12:00:{{n}} INFO {HEAD}12:00:{{n}} INFO {FRAME}12:00:{{n}} INFO     g()\n12:00:{{n}} INFO KeyError: {{n}}\n",
    "Saving at step {n}\n",
    "nothing at all {n}\n",
    "Running {n} jobs\n",
    "    50%|##  | {n}/99 [00:04<01:09,  1.40s/it]\n",
    "{{\n",
)


@settings(deadline=None, max_examples=int(os.environ.get("FLOODS_N", "60")))
@given(st.data())
def test_a_flood_of_tracebacks_says_what_its_lines_said(lexicon: Lexicon, data: st.DataObject) -> None:
    """Of lines that belong together, too."""
    few = data.draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3))
    many = st.tuples(st.lists(st.sampled_from(few), min_size=1, max_size=2), st.lists(st.sampled_from(NUMBERS)))
    log = "".join(
        text.format(n=n) for texts, numbers in data.draw(st.lists(many, max_size=8)) for n in numbers for text in texts
    )
    frames, window = data.draw(st.sampled_from([5, 400])), data.draw(st.sampled_from([300, 1000, 1 << 16]))
    counted, read = counted_and_read(log.encode(), lexicon, frames=frames, window=window)
    assert counted == read


def counted_and_read(
    log: bytes, lexicon: Lexicon, *, frames: int = MAX_FRAMES, window: int = 64
) -> tuple[ScanResult, ScanResult]:
    """A log scanned with floods passed over as soon as can be, and with every line read; few events of a kind kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(items, "MAX_ALIKE", 3)
        patch.setattr(items, "MAX_SKIPS", 4)
        patch.setattr(traceback, "MAX_FRAMES", frames)
        patch.setattr(units, "MAX_UNIT", min(frames, lines.MAX_UNIT))
        patch.setattr(scanner, "PATIENCE", 1 << 30)
        read = scan([log], lexicon)
        patch.setattr(scanner, "PATIENCE", 2)
        patch.setattr(scanner, "MAX_PATIENCE", 2)
        patch.setattr(floods, "WINDOW", window)
        return scan([log], lexicon), read


@pytest.mark.parametrize(
    ("usual", "other"),
    [
        ("OSError: [Errno 27] It went on", "OSError: [Errno 28] It went on"),
        ("OSError: [Errno 27]", "OSError: [Errno 12]"),
        ("Killed (exit code 132)", "Killed (exit code 137)"),
        ("0730000000.5 Killed", "1730000000.5 Killed"),
        ("E1ErrorE2Error: : 'a''a'", "E1ErrorE1Error: : 'a''a'"),
    ],
)
def test_a_digit_that_means_something(lexicon: Lexicon, usual: str, other: str) -> None:
    """A line that differs from all before it by such a digit is not counted as one of them."""
    flood = f"{usual}\n" * 40
    log = f"{flood}{other}\n{flood}".encode()
    counted, read = counted_and_read(log, lexicon)
    assert counted == read
    assert scan([f"{usual}\n".encode()], lexicon).items != scan([f"{other}\n".encode()], lexicon).items


def test_a_flood_of_torn_bars(lexicon: Lexicon) -> None:
    """What stands behind a torn bar is read without its description."""
    log = bar("mugs", 11, 99, 24, "") + "\n" + "mugs:  12%|## Killed\n" * 40
    counted, read = counted_and_read(log.encode(), lexicon)
    assert counted == read
    assert {item.pattern for item in read.items if isinstance(item, Event)} == {"process.killed"}


def test_a_flood_of_one_process_while_another_one_fails(lexicon: Lexicon) -> None:
    """Lines that name their process differ in a digit that has a meaning."""
    head = '[rank0]: Traceback (most recent call last):\n[rank0]:   File "/opt/x.py", line 1, in f\n[rank0]:     y()\n'
    log = "[rank1]: ValueError: 1\n" * 20 + head + "[rank1]: ValueError: 1\n" * 20 + "[rank0]: ValueError: 2\n"
    counted, read = counted_and_read(log.encode(), lexicon)
    assert counted == read
    assert any(isinstance(item, Traceback) and item.exception is not None for item in read.items)


def test_a_flood_is_passed_over(lexicon: Lexicon, read: list[str]) -> None:
    """A million lines alike are not read one by one."""
    count = 100_000
    log = "".join(f"Error: {number:06}\n" for number in range(count)).encode()
    found = scan([log], lexicon)
    assert len(read) < 2 * MAX_ALIKE
    assert len(found.items) == MAX_ALIKE + 1
    assert [item.place.line for item in found.items[-2:] if isinstance(item, Event)] == [MAX_ALIKE, count]
    assert [notice.values for notice in found.warnings] == [{"count": count - MAX_ALIKE - 1}]


@pytest.mark.parametrize(
    "unit", [UNITS[0], UNITS[6].replace("[Errno {n}] x", "{n}"), BOX, f"{BOX}RuntimeError: {{n}}\n"]
)
def test_a_flood_of_tracebacks_is_passed_over(lexicon: Lexicon, read: list[str], unit: str) -> None:
    """Those of which only the last is kept are not read line by line."""
    count = 3 * MAX_ALIKE
    log = f"Running 1 job\n{''.join(unit.format(n=10_000 + n) for n in range(count))}Error: 1\n".encode()
    found = scan([log], lexicon)
    assert len(read) < unit.count("\n") * 1.5 * MAX_ALIKE
    last = [item for item in found.items if isinstance(item, Traceback)][-1]
    assert last.frames[-1].number == 10_000 + count - 1


def test_frames_beyond_those_that_are_kept(lexicon: Lexicon) -> None:
    """A recursion without end: each frame keeps its own code, and the code of the others is no statement."""
    code = ["f(g)", "raise RuntimeError('CUDA out of memory. Tried to allocate 2.00 GiB')"]
    frames = "".join(
        f'  File "/opt/x.py", line {number + 1}, in f\n    {code[number >= MAX_FRAMES]}\n'
        for number in range(3 * MAX_FRAMES)
    )
    log = f"Traceback (most recent call last):\n{frames}KeyError: 'exp_avg'\n"
    event, traceback = scan([log.encode()], lexicon).items
    assert isinstance(event, Event)
    assert event.exception == "KeyError"
    assert isinstance(traceback, Traceback)
    assert [frame.number for frame in traceback.frames] == list(range(1, MAX_FRAMES + 1))
    assert {frame.code.reveal() for frame in traceback.frames} == {code[0]}
    assert traceback.exception is event


def test_frames_beyond_those_that_are_kept_are_not_read(lexicon: Lexicon, read: list[str]) -> None:
    frames = "".join(f'  File "/opt/x.py", line {number}, in f\n    f({number})\n' for number in range(5 * MAX_FRAMES))
    scan([f"Traceback (most recent call last):\n{frames}".encode()], lexicon)
    assert len(read) <= MAX_FRAMES + 8


def test_a_flood_is_noticed_however_the_text_is_cut_in_blocks(lexicon: Lexicon, read: list[str]) -> None:
    edge = "─" * 40
    boxes = [
        f"╭{edge} Traceback (most recent call last) {edge}╮\n│ /opt/x/run.py:{n} in main │\n╰{edge}╯\n"
        for n in range(20_000)
    ]
    scan(["".join(boxes).encode()], lexicon)
    assert len(read) < 3 * len(boxes) / 2
