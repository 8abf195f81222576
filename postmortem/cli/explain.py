"""`postmortem explain ID`: one class, kind, phase, remedy, pattern, topic or factor out of the knowledge base."""

from __future__ import annotations

import difflib
from pathlib import Path

import typer

from postmortem.cli import common, output
from postmortem.cli.errors import USAGE, Failure
from postmortem.knowledge.log_schema import Pattern
from postmortem.knowledge.schema import Knowledge, Remedy
from postmortem.report.texts import Texts
from postmortem.text import printable

WIDTH = 78


def explain(
    ident: str = typer.Argument(
        "", metavar="ID", help="A failure class, kind, phase, remedy, topic or pattern; none lists them."
    ),
    lang: str = common.LANG,
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
) -> int:
    """Explain one failure class, remedy, topic or pattern."""
    base = common.knowledge(pack)
    lang = common.language(base, lang, output.encoding())

    texts = Texts(base, lang)
    if not ident:
        output.write(_list(base, texts), None)
        return 0
    found = (
        _class(base, ident, texts)
        or _remedy(base, ident, texts)
        or _pattern(base, ident, texts)
        or _factor(base, ident, texts)
    )
    if found is None:
        known = [*_idents(base), *(item.id for item in base.patterns)]
        near = difflib.get_close_matches(ident, known, n=1, cutoff=0.75)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise Failure(f"explain {printable(ident)}: no such entry{hint} (`postmortem explain` lists them)", USAGE)
    output.write(found, None)
    return 0


def _idents(base: Knowledge) -> list[str]:
    return [
        *dict.fromkeys(item.id for item in base.classes),
        *(item.id for item in base.remedies),
        *(f.id for f in base.factors),
    ]


def _list(base: Knowledge, texts: Texts) -> str:

    lines: list[str] = []
    for what in ("class", "kind", "phase", "topic"):
        lines.append(texts(f"section.explain_{what}"))
        for item in base.classes:
            if item.what == what:
                lines.append(f"  {item.id:38} {texts(f'{what}.{item.id}.title', default='')}")
    lines.append(texts("section.explain_remedy"))
    lines += [f"  {item.id:38} {texts(f'remedy.{item.id}.title', default='')}" for item in base.remedies]
    return "\n".join(lines) + "\n"


def _class(base: Knowledge, ident: str, texts: Texts) -> str | None:

    parts: list[str] = []
    for what in ("class", "kind", "topic", "phase"):
        if texts.has(f"{what}.{ident}.explain"):
            title = texts(f"{what}.{ident}.title")
            source = next((item.source for item in base.classes if item.id == ident), "")
            parts.append(
                _page(title, [texts(f"{what}.{ident}.explain")], source and f"{texts('section.source')}: {source}")
            )
    return "\n".join(parts) or None


def _remedy(base: Knowledge, ident: str, texts: Texts) -> str | None:

    item: Remedy | None = next((remedy for remedy in base.remedies if remedy.id == ident), None)
    if item is None:
        return None
    body = [texts(f"remedy.{ident}.explain")]
    changes = ", ".join(dict.fromkeys(change.path for change in item.changes))
    if changes:
        body.append(f"{texts('section.change')}: {changes}")
    body.append(f"{texts('section.ui')}: {texts(f'remedy.{ident}.ui')}")
    body.append(f"{texts('section.cost')}: {texts(f'remedy.{ident}.cost')}")
    if item.requires:
        body.append(f"{texts('section.requires')}: {' · '.join(item.requires)}")
    whys = list(dict.fromkeys(rule.why for rule in item.offer))
    body += [f"- {texts(f'remedy.{ident}.why.{why}')}" for why in whys]
    # where the guide stands behind it, its section says so in any language
    stands_on = f"{texts('section.guide')} {item.guide}" if item.guide else item.source
    return _page(texts(f"remedy.{ident}.title"), body, stands_on + (f" · {item.url}" if item.url else ""))


def _pattern(base: Knowledge, ident: str, texts: Texts) -> str | None:

    item: Pattern | None = next((pattern for pattern in base.patterns if pattern.id == ident), None)
    if item is None:
        return None
    seen = item.seen and f"AI Toolkit {item.seen.since} – {item.seen.until or '…'}"
    body = [" · ".join(part for part in (item.role, item.status, seen, item.versions) if part)]
    facts = item.sets
    said = [
        f"{name} = {getattr(facts, name)}"
        for name in ("kind", "resource", "phase", "event", "reason", "trainer")
        if getattr(facts, name)
    ]
    if said:
        body.append(", ".join(said))
    body.append(f"{texts('section.expression')}: {item.regex}")
    body += [f"{texts('section.matches')}: {example}" for example in item.examples.match]
    body += [f"{texts('section.does_not_match')}: {example}" for example in item.examples.no_match]
    return _page(texts(f"signature.{ident}", default=ident), body, item.source)


def _factor(base: Knowledge, ident: str, texts: Texts) -> str | None:

    item = next((factor for factor in base.factors if factor.id == ident), None)
    if item is None:
        return None
    return _page(ident, [texts(f"factor.{ident}"), " · ".join(item.when)], item.source)


def _page(title: str, body: list[str], foot: str) -> str:
    """A page of plain paragraphs, wrapped by what the characters take on a terminal (Korean ones take two cells)."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    out = StringIO()
    console = Console(file=out, width=WIDTH, color_system=None, markup=False, highlight=False, emoji=False)
    head = Text(title)
    lines = ["", *body, *([foot] if foot else [])]
    console.print(head)
    console.print(Text("=" * min(WIDTH, head.cell_len)))
    for paragraph in lines[1:]:
        console.print()
        console.print(Text(printable(paragraph)))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
