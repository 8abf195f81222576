"""Which wording of an entry claimed a line: a short hash that changes when what the entry claims changes."""

from __future__ import annotations

import hashlib

import msgspec

from postmortem.knowledge.schema import Examples, Pattern

DIGITS = 12


def fingerprint(pattern: Pattern) -> str:
    """The first digits of a hash over what decides whether and how `pattern` claims a line.

    Its examples, source, status and dates may change without another hash: they claim nothing.
    """
    told = msgspec.structs.replace(pattern, examples=Examples(()), source="", versions=None, seen=None, status="stable")
    return hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:DIGITS]
