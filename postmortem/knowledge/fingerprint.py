"""Which wording of an entry claimed a line: a short hash that changes when what the entry claims changes."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec

from postmortem.knowledge.log_schema import Examples, Pattern

DIGITS = 12


def fingerprint(pattern: Pattern) -> str:
    """The first digits of a hash over what decides whether and how `pattern` claims a line.

    Its examples, source, status and dates may change without another hash: they claim nothing.
    """
    told = msgspec.structs.replace(pattern, examples=Examples(()), source="", versions=None, seen=None, status="stable")
    return str(_sha256(msgspec.json.encode(told)).hexdigest()[:DIGITS])


def _sha256(content: bytes) -> Any:
    """By the module that hashlib takes it from, where Python has it: with hashlib, OpenSSL is loaded."""
    for name in ("_sha2", "_sha256"):
        with suppress(ImportError):
            return import_module(name).sha256(content)
    import hashlib

    return hashlib.sha256(content)
