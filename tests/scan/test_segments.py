"""Cutting bytes into segments must not depend on how the bytes arrive."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.scan import Lexicon
from postmortem.scan.segments import MAX_TEXT, Cutter, Region, Text
from tests.simulate import bar

FRAME = b"\rjob:  45%|####      | 9/20 [00:10<00:12,  1.10s/it, lr: 1.0e-04 loss: 1.486e+00]"
PIECES = st.sampled_from(
    [
        b"a",
        b"text ",
        b"\n",
        b"\r",
        b"\r\n",
        b"%",
        b"|",
        b"]",
        FRAME,
        b"\x1b[A",
        b"100%",
        b"\xff",
        b"x" * 5000,
        b"steps: 0% 0/12 [00:00<?, ?it/s]",
    ]
)


def pieces(cutter: Cutter, chunks: list[bytes]) -> list[object]:
    found: list[object] = []
    for chunk in [*chunks, None]:
        for piece in cutter.finish() if chunk is None else cutter.feed(chunk):
            found.extend(piece.segments() if isinstance(piece, Region) else [piece])
    return found


@given(st.lists(PIECES, max_size=40), st.lists(st.integers(1, 700), min_size=1, max_size=20))
def test_any_chunking_gives_the_same_segments(lexicon: Lexicon, parts: list[bytes], sizes: list[int]) -> None:
    data = b"".join(parts)
    chunks: list[bytes] = []
    at = index = 0
    while at < len(data):
        step = sizes[index % len(sizes)]
        chunks.append(data[at : at + step])
        at += step
        index += 1
    whole, cut = Cutter(lexicon.bars), Cutter(lexicon.bars)
    assert pieces(whole, [data]) == pieces(cut, chunks)
    assert (whole.lines, whole.bytes) == (cut.lines, cut.bytes)


def test_lines_count_line_feeds_only(lexicon: Lexicon) -> None:
    cutter = Cutter(lexicon.bars)
    found = pieces(cutter, [b"one\r\ntwo\rthree\n\nfour"])
    assert [(piece.raw, piece.line) for piece in found if isinstance(piece, Text)] == [
        (b"one", 1),
        (b"two", 2),
        (b"three", 2),
        (b"four", 4),
    ]
    assert cutter.lines == 4


def test_a_message_glued_behind_a_bar_is_text_of_its_own(lexicon: Lexicon) -> None:
    found = pieces(Cutter(lexicon.bars), [FRAME * 3 + b"Error running job: no\n"])
    assert [piece.raw for piece in found if isinstance(piece, Text)] == [b"Error running job: no"]
    assert len(found) == 4


def test_an_endless_line_is_read_only_in_part_and_counted(lexicon: Lexicon) -> None:
    cutter = Cutter(lexicon.bars)
    found = pieces(cutter, [b"x" * 1_000_000, b"y" * 1_000_000 + b"\nnext\n"])
    texts = [piece for piece in found if isinstance(piece, Text)]
    assert [len(piece.raw) for piece in texts] == [MAX_TEXT, 4]
    assert texts[1].line == 2
    assert texts[1].offset == 2_000_001
    assert cutter.cut_long == 1


@given(st.integers(0, 40), st.integers(0, 3000), st.integers(1, 7000))
@settings(deadline=None)
def test_returns_at_the_edge_of_a_chunk_still_cut(lexicon: Lexicon, frames: int, width: int, size: int) -> None:
    data = b"start\n" + b"".join(b"\rpart %d " % number + b"x" * width for number in range(frames)) + b"\nend\n"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert pieces(Cutter(lexicon.bars), chunks) == pieces(Cutter(lexicon.bars), [data])


def test_one_byte_at_a_time(lexicon: Lexicon) -> None:
    data = b"".join(b"\rpart %d " % number + b"x" * 900 for number in range(60)) + b"\rError running job: no\n"
    chunks = [data[at : at + 1] for at in range(len(data))]
    assert pieces(Cutter(lexicon.bars), chunks) == pieces(Cutter(lexicon.bars), [data])


def test_of_bars_that_are_torn_none_is_searched(lexicon: Lexicon) -> None:
    """What a bar ends with is in all ways the same, and told by the knowledge."""
    expression, ways, closing = lexicon.bars
    assert closing == b"]"
    whole = bar("mugs", 7, 90, 9, ", loss: 1.0").strip("\r\n")
    for end in range(len(whole) + 1):
        torn = f"{whole[:end]}\n".encode()
        assert Cutter(lexicon.bars).feed(torn) == Cutter((expression, ways, b"")).feed(torn)
