"""`postmortem patterns`: look at the knowledge base, and test it."""

from __future__ import annotations

import datetime
import enum
from pathlib import Path

import typer

from postmortem.cli import common, output

app = typer.Typer(
    help="The knowledge base: list it, test it, hold it against AI Toolkit.", no_args_is_help=True, add_completion=False
)
_PACK = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own.")


@app.command("list")
def list_(
    role: str | None = typer.Option(None, "--role", help="Only patterns of this role."),
    pack: Path | None = _PACK,
) -> int:
    """List every entry: id, role or section, what it says, status."""
    base = common.knowledge(pack)
    rows: list[str] = []
    for item in base.patterns:
        if role and item.role != role:
            continue
        says = item.sets.phase or item.sets.kind or item.sets.trainer or item.sets.event or ""
        rows.append(f"{item.id:44} {item.role:12} {says:22} {item.status}")
    if not role:
        sections = (
            *(("remedy", base.remedies), ("factor", base.factors)),
            *(("cause", base.causes), ("family", base.families)),
        )
        for section, entries in sections:
            rows += [f"{entry.id:44} {section}" for entry in entries]
        rows += [f"{setting.path:44} {'setting':12} default {setting.default!r}" for setting in base.settings]
    output.write("\n".join(rows) + "\n", None)
    return 0


@app.command("test")
def test(pack: Path | None = _PACK) -> int:
    """Run every entry's examples; fail when one stops holding, two claim one line, or texts or sources are missing."""
    from postmortem.selftest import problems

    base = common.knowledge(pack)
    found = problems(base)
    for problem in found:
        output.write(problem + "\n", None)
    count = sum(len(item.examples.match) + len(item.examples.no_match) for item in base.patterns)
    output.write(f"{len(base.patterns)} patterns, {count} examples, {len(found)} problem(s)\n", None)
    return 1 if found else 0


class DriftFormat(str, enum.Enum):
    """How to print a drift."""

    text = "text"
    json = "json"


@app.command("drift")
def drift(
    checkout: Path = typer.Argument(..., metavar="CHECKOUT", help="A checkout of AI Toolkit, at any commit."),
    date: datetime.datetime | None = typer.Option(
        None, "--date", formats=["%Y-%m-%d"], help="The checkout's commit day, if it is not the newest."
    ),
    everything: bool = typer.Option(False, "--all", help="Also what does not bear on memory, phase or step."),
    format_: DriftFormat = typer.Option(DriftFormat.text, "--format", help="Plain text, or JSON."),
    pack: Path | None = _PACK,
) -> int:
    """List what an AI Toolkit checkout says that no entry covers, the entries that it contradicts, other defaults.

    The sources are read as text, nothing of them is run. Exit status: 0 nothing differs, 1 something does,
    2 bad usage, 3 unreadable or no AI Toolkit checkout.
    """
    from postmortem.cli.errors import Failure
    from postmortem.drift import CheckoutError, compare, read
    from postmortem.drift.render import as_json, as_text
    from postmortem.text import printable

    base = common.knowledge(pack)
    try:
        sources = read(checkout)
    except CheckoutError as error:
        raise Failure(f"{printable(str(checkout))}: {error}") from None
    except OSError as error:
        raise Failure(f"{printable(str(checkout))}: {(error.strerror or type(error).__name__).lower()}") from None
    found = compare(sources, base, date=date.date() if date else None, everything=everything)
    if format_ is DriftFormat.json:
        output.write(as_json(found), None, kind="json")
    else:
        output.write(as_text(found), None)
    return 1 if found.found else 0
