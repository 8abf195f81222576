"""A `--patterns` pack of 500 more signatures, each with words of its own, as a firm's own allocator might have them."""

from __future__ import annotations

import pathlib
import random

COUNT = 500
_SUBJECTS = (
    "allocator",
    "arena",
    "pool",
    "cache",
    "planner",
    "offloader",
    "stream",
    "quantiser",
    "scheduler",
    "mapper",
)
_ENDS = ("gave up on", "could not reserve", "ran dry at", "refused", "has nothing left for")
_ROLES = ("oom", "oom", "host_oom", "other_error")
_KINDS = {"oom": "gpu_oom", "host_oom": "host_oom", "other_error": "not_memory"}
_RESOURCES = {"oom": ", resource: vram", "host_oom": ", resource: host_ram", "other_error": ""}


def write(folder: pathlib.Path, count: int = COUNT) -> pathlib.Path:
    """The pack in `folder`, with its texts in both languages."""
    source = random.Random(0)
    entries: list[str] = []
    titles: list[str] = []
    for number in range(count):
        name = "".join(source.choices("bcdfghklmnprstvz", k=3)) + source.choice("aeiou") + f"{number:03d}"
        role = source.choice(_ROLES)
        words = f"{name} {source.choice(_SUBJECTS)} {source.choice(_ENDS)}"
        anywhere = "  anywhere: true\n" if number % 5 == 0 else ""
        entries.append(
            f"- id: acme.{name}\n  role: {role}\n{anywhere}  anchors: ['{words} ']\n"
            f"  regex: '{words} (?P<what>\\w{{1,40}}): \\d[\\d.]* ?(?:bytes|[KMGT]i?B)'\n"
            f"  sets: {{kind: {_KINDS[role]}{_RESOURCES[role]}}}\n"
            "  source: 'https://example.org/acme'\n"
            f"  examples:\n    match: ['{words} block: 20.00 MiB']\n    no_match: ['{words} nothing']\n"
        )
        titles.append(f"  acme.{name}: Acme {name}\n")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "wordings.yaml").write_text("patterns:\n" + "".join(entries), encoding="utf-8")
    for language in ("en", "ko"):
        texts = folder / "text" / language
        texts.mkdir(parents=True, exist_ok=True)
        (texts / "acme.yaml").write_text("signature:\n" + "".join(titles), encoding="utf-8")
    return folder
