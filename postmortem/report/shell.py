"""What every page of ours has: colours and first rules, and a policy that lets nothing be loaded, run or sent."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files


def styled(own: str) -> str:
    """A page's whole style: what all pages share, then its own."""
    return files("postmortem.report").joinpath("base.css").read_text(encoding="utf-8") + own


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page that holds one style and one script, each known by its hash."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
