"""A log that went through a paste gives the same answer as the log itself."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.intake import open_path, open_stream, pastes
from postmortem.intake.pastes import damage, undo
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.scan import Lexicon
from tests.simulate import config, finished, head, training

FIXTURES = Path(__file__).parents[2] / "fixtures"


def lines(change: Callable[[int, str], str]) -> Callable[[str], str]:
    """A paste that changes every line, given its number."""
    return lambda text: "\n".join(change(number, line) for number, line in enumerate(text.split("\n"), 1))


FORMS: dict[str, tuple[str | None, Callable[[str], str]]] = {
    "html": ("html", html.escape),
    "html breaks": ("html", lambda text: html.escape(text).replace("\n", "<br>\n")),
    "one line of html": ("html", lambda text: html.escape(text).replace("\n", "<br/>")),
    "hard spaces": ("hard_spaces", lambda text: text.replace(" ", "\u00a0")),
    "indented": ("margin", lines(lambda _, line: "    " + line)),
    "tab": ("margin", lines(lambda _, line: "\t" + line)),
    "box": ("margin", lines(lambda _, line: "\u2502 " + line)),
    "trimmed margin": ("margin", lines(lambda _, line: ("    " + line).rstrip(" "))),
    "numbered": ("line_numbers", lines(lambda number, line: f"{number:5d}  {line}")),
    "grep -n": ("line_numbers", lines(lambda number, line: f"{number}:{line}")),
    "escaped": ("flattened", json.dumps),
    "fence": (None, lambda text: f"my run died:\n\n```\n{text}\n```\nany ideas?\n"),
    "double spaced": (None, lambda text: text.replace("\n", "\n\n")),
    "quoted mail": (None, lines(lambda _, line: "> " + line)),
    "nul": (None, lambda text: text.replace("\n", "\0\n")),
}


def claims(analysis: Analysis) -> tuple[object, ...]:
    found = analysis.diagnosis
    skips = tuple((oom.step, oom.caught, oom.phase) for oom in analysis.attempt.ooms)
    return found.kind, found.phase, found.step, found.signature, found.outcome, found.memory_mib, skips


def read(data: bytes, lexicon: Lexicon) -> tuple[tuple[object, ...], tuple[str, ...]]:
    log = open_stream(io.BytesIO(data)).logs[0]
    source = Source(log.name, log.encoding, log.chunks(), log.repairs)
    return claims(analyse("-", [source], [], lexicon)), log.repairs


@pytest.fixture(scope="module")
def texts() -> list[str]:
    files = [*FIXTURES.glob("*/run.log"), *FIXTURES.glob("*/log.txt")]
    found = [b"".join(open_path(path).logs[-1].chunks()).decode("utf-8", "replace") for path in sorted(files)]
    assert len(found) > 40
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_paste_changes_no_claim(form: str, texts: list[str], lexicon: Lexicon) -> None:
    name, paste = FORMS[form]
    undone = 0
    for text in texts:
        claimed, repairs = read(paste(text).encode(), lexicon)
        assert claimed == read(text.encode(), lexicon)[0]
        undone += name in repairs
    assert name is None or undone > len(texts) // 2


def test_logs_themselves_are_left_alone(texts: list[str]) -> None:
    assert [damage(text.encode()[:65536]) for text in texts] == [()] * len(texts)


def test_a_fragment_keeps_the_indent_of_its_frames() -> None:
    fragment = '  File "/a.py", line 1, in f\n    x()\n' * 5
    assert damage(fragment.encode()) == ()
    assert [repair.name for repair in damage(re.sub("(?m)^", "      ", fragment).encode())] == ["margin"]


def test_a_traceback_joined_to_one_line_parts_again(lexicon: Lexicon) -> None:
    text = (
        "Error running job: CUDA out of memory. Tried to allocate 96.00 MiB. See documentation for Memory Management\n"
        f"{'=' * 40}\nResult:\n - 0 completed jobs\n - 1 failure\n{'=' * 40}\n"
        'Traceback (most recent call last):\n  File "C:\\aitk\\run.py", line 120, in <module>\n    main()\n'
        '  File "C:\\aitk\\jobs\\process\\BaseSDTrainProcess.py", line 1565, in run\n    self.sd.load_model()\n'
        '  File "C:\\aitk\\toolkit\\stable_diffusion_model.py", line 700, in load_model\n    transformer.to(device)\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB.\n"
    )
    joined = re.sub(r"\s+", " ", text).encode()
    assert read(joined, lexicon) == (read(text.encode(), lexicon)[0], ("joined",))
    assert read(joined, lexicon)[0][:2] == ("gpu_oom", "model_load")


def test_lines_stay_where_they_are() -> None:
    text = html.escape(head(config()) + training(40, []) + finished())
    repairs = damage(text.encode())
    assert b"".join(undo([text.encode()], repairs)).count(b"\n") == text.count("\n")


def test_an_entity_cannot_bring_in_what_moves_lines() -> None:
    repairs = damage(b"&lt;a&gt; &#10;&#13;&#27;[31m\n")
    assert b"".join(undo([b"&lt;a&gt; &#10;&#13;&#27;[31m\n"], repairs)) == b"<a> &#10;&#13;&#27;[31m\n"


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(sorted(FORMS)), st.lists(st.integers(1, 5000), min_size=1, max_size=5))
def test_chunks_change_nothing(form: str, sizes: list[int]) -> None:
    data = FORMS[form][1](head(config()) + training(20, [3])).encode()
    repairs = damage(data[:65536])
    chunks: list[bytes] = []
    at = 0
    while at < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[at : at + size])
        at += size
    assert b"".join(undo(chunks, repairs)) == b"".join(undo([data], repairs))


PREFIXES = (
    *(
        "2026-03-04T05:06:07.123Z ",
        "03/04/2026 05:06:07 AM ",
        "05:06:07 ",
        "05:06:07.123 | ",
        "1772600767.5 ",
        "INFO: ",
    ),
    *("[stderr] ", "[pod/train-0/main] ", "aitk-1  | ", "[rank0]: ", "> "),
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_on_every_line_changes_no_claim(prefix: str, texts: list[str], lexicon: Lexicon) -> None:
    for text in texts[::4]:
        claimed, _ = read(re.sub("(?m)^", lambda _: prefix, text).encode(), lexicon)
        assert claimed == read(text.encode(), lexicon)[0]


@pytest.mark.parametrize("key", ["log", "message", "MESSAGE", "textPayload"])
def test_a_record_a_line_changes_no_claim(key: str, texts: list[str], lexicon: Lexicon) -> None:
    for text in texts[::4]:
        records = "".join(json.dumps({key: line, "time": "t"}) + "\n" for line in text.split("\n"))
        assert read(records.encode(), lexicon)[0] == read(text.encode(), lexicon)[0]


@pytest.mark.parametrize("piece", [b"<br>", b"<br/> ", b"&lt;", b"&", b"\\n", b"`", b"| ", b"1: ", "\u2018a".encode()])
def test_a_megabyte_of_one_thing_costs_little(piece: bytes) -> None:
    """It would take hours if any expression here went back and forth over the line."""
    data = b"&lt;x&gt; \\n\\n\\n\\n\\n" + piece * (1_000_000 // len(piece)) + b"x\n"
    assert b"".join(undo([data], damage(data[:65536]))).strip()


PLAIN = b"x &lt;b&gt; \xc2\xa0word<br> and \\n more &amp; yet "


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_long_lines_are_repaired_the_same_in_any_pieces(data: st.DataObject) -> None:
    sizes = st.integers(0, 200)
    with pytest.MonkeyPatch.context() as smaller:
        smaller.setattr(pastes, "MAX_LINE", 60)
        smaller.setattr(pastes, "_NEAR", 20)
        text = b"\n".join(
            b"  " + (PLAIN * 10)[: data.draw(sizes)] for _ in range(data.draw(st.integers(0, 6)))
        ) + data.draw(st.sampled_from([b"", b"\n"]))
        repairs = (
            pastes.Repair("html", pastes._unescape_html),
            pastes.Repair("margin", lambda line: pastes._without_margin(line, b"  "), True),
        )
        whole = b"".join(undo([text], repairs))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=20)))
        pieces = [text[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert b"".join(undo(pieces, repairs)) == whole
        smaller.setattr(pastes, "MAX_LINE", 1 << 20)
        assert whole == b"".join(undo([text], repairs))


def test_a_line_of_megabytes_stays_one_line() -> None:
    text = "    " + "a &lt; b \r" * 400_000 + "\n    next\n"
    repairs = damage(("    a &lt; b\n" * 20).encode())
    assert [repair.name for repair in repairs] == ["html", "margin"]
    for size in (1 << 16, len(text)):
        found = b"".join(undo((text[at : at + size].encode() for at in range(0, len(text), size)), repairs))
        assert found == ("a < b \r" * 400_000 + "\nnext\n").encode()
