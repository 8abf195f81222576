"""What stands in for a character that a console cannot show, so that no reader sees a page of question marks."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

STAND_INS = {
    "→": "->",
    "←": "<-",
    "▶": ">",
    "…": "...",
    "·": "-",
    "–": "-",
    "—": "-",
    "‑": "-",
    "×": "x",
    "≥": ">=",
    "²": "2",
    "§": "sec. ",
    "‘": "'",
    "’": "'",
    "“": '"',
    "”": '"',
    "¦": "|",
    "❱": ">",
    "\u00a0": " ",
    **dict.fromkeys("█▉▊▋", "#"),
    **dict.fromkeys("▌▍▎▏│┃║", "|"),
    **dict.fromkeys("─━═", "-"),
    **dict.fromkeys("└┘╯╰╭╮┌┐├┤┬┴┼", "+"),
    "▓": "=",
    "▒": "x",
    "░": ":",
}
BLOCKS = "█▓▒░"
"""What bars are drawn with: all of them or none, so that one bar is of one kind."""
_LETTERS_LOST = 0.02


def encodes(text: str, encoding: str) -> bool:
    """Whether `encoding` has all characters of `text`."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@lru_cache(maxsize=4096)
def stand_in(character: str, encoding: str) -> str:
    """`character`, or what stands for it where `encoding` lacks it; ``?`` where nothing can."""
    if encodes(character, encoding):
        return character
    found = STAND_INS.get(character)
    if found is None:
        bare = unicodedata.normalize("NFKD", character)
        found = "".join(part for part in bare if not unicodedata.combining(part))
    return found if found and encodes(found, encoding) else "?"


def shown(text: str, encoding: str) -> str:
    """`text` in characters that `encoding` has."""
    return text if encodes(text, encoding) else "".join(stand_in(character, encoding) for character in text)


def can_show(texts: str, encoding: str) -> bool:
    """Whether `encoding` has almost all letters of the language that `texts` are in."""
    if encodes(texts, encoding):
        return True
    letters = [character for character in texts if character.isalpha()]
    lost = sum(1 for character in letters if not encodes(character, encoding))
    return lost <= _LETTERS_LOST * len(letters)
