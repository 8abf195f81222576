"""The lines around the evidence: the right ones, from any chunking, bounded."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from postmortem.report.document import EvidenceItem
from postmortem.report.excerpt import KEEP, _passages, lines_around, lines_of
from postmortem.text import LogText


def proof(line: int, text: str, what: str = "error") -> EvidenceItem:
    return EvidenceItem(line=line, what=what, says="it says so", text=LogText(text), source=LogText("log"))


def read(
    chunks: list[bytes], items: list[EvidenceItem], before: int = 1, after: int = 1
) -> list[list[tuple[int, str]]]:
    wanted = lines_around(items, before, after, 80)
    passages = _passages(LogText("log"), items, dict(lines_of(chunks, wanted)))
    return [[(line.line, line.text.reveal()) for line in passage.lines] for passage in passages]


def test_shows_the_evidence_with_the_lines_around_it() -> None:
    log = b"one\ntwo\nthree\nfour\nfive\nsix\n"
    assert read([log], [proof(3, "three")]) == [[(2, "two"), (3, "three"), (4, "four")]]


def test_what_stands_apart_is_a_passage_of_its_own() -> None:
    log = b"".join(b"line %d\n" % number for number in range(1, 21))
    found = read([log], [proof(2, "line 2"), proof(10, "line 10"), proof(12, "line 12")])
    assert [[line for line, _ in passage] for passage in found] == [[1, 2, 3], [9, 10, 11, 12, 13]]


@given(st.integers(1, 40), st.sampled_from([b"\n", b"\r\n"]))
def test_chunks_do_not_matter(size: int, feed: bytes) -> None:
    log = b"".join(b"line %d%s" % (number, feed) for number in range(1, 30)) + b"the last, without a break"
    whole = read([log], [proof(7, "line 7"), proof(30, "the last")])
    assert (
        read([log[at : at + size] for at in range(0, len(log), size)], [proof(7, "line 7"), proof(30, "the last")])
        == whole
    )
    assert whole[-1][-1] == (30, "the last, without a break")


def test_of_a_line_with_redraws_the_piece_with_the_proof_is_shown() -> None:
    log = b"a\r" + b"job: 1/10\r" * 3000 + b"error: no memory\r\njob: 2/10\n"
    assert read([log], [proof(1, "error: no memory")])[0][0] == (1, "error: no memory")


def test_an_endless_line_is_kept_short() -> None:
    chunks = [b"start "] + [b"x" * 65536] * 50 + [b" end\n"]
    ((_, raw),) = lines_of(chunks, [1])
    assert len(raw) <= 2 * KEEP + 65536
    assert raw.startswith(b"start ") and raw.endswith(b" end")


def test_evidence_that_no_log_holds_stands_by_itself() -> None:
    assert read([], [proof(4, "from the database")]) == [[(4, "from the database")]]


def test_lines_nearest_to_the_evidence_are_kept() -> None:
    assert lines_around([proof(10, "x"), proof(50, "y")], 5, 5, 6) == [9, 10, 11, 49, 50, 51]
