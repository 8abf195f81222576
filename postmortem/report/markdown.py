"""The report as a ticket: verdict, proof, the first fix and a small table at once; the rest folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from postmortem.report import encode_ticket as encode
from postmortem.report import outlook, summary, ticket
from postmortem.report.document import ChangeItem, EvidenceItem, RemedyItem, Report
from postmortem.report.excerpt import Excerpt
from postmortem.report.texts import Texts
from postmortem.report.ticket import details
from postmortem.report.ticket.blocks import (
    Block,
    Bullets,
    Heading,
    Paragraph,
    Section,
    Title,
    Verbatim,
    joined,
    table,
    words,
)
from postmortem.report.ticket.edits import Edit, diff, scalar
from postmortem.text import LogText, Words

MAX_CHANGES = 8
MAX_PROOF = 3
_DECISIVE = (
    "oom",
    "host_oom",
    "kill",
    "crash",
    "abort",
    "slowdown",
    "exception",
    "other_error",
    "exit",
    "swallowed",
    "stop",
    "skip",
    "consequence",
    "frame",
    "bar",
    "phase",
)
"""What a line of evidence shows, the most telling first."""


def render(
    report: Report,
    texts: Texts,
    excerpt: Excerpt | None = None,
    *,
    flavor: str = "github",
    max_chars: int | None = None,
) -> str:
    """The report in the markup of `flavor` (a key of `ticket.FLAVORS`), in at most `max_chars` characters; None: what
    its tracker takes, 0: however long it is. Raises ValueError below `ticket.FLOOR`."""
    return ticket.written(sections(report, texts, excerpt), texts, flavor, max_chars)


def sections(report: Report, texts: Texts, excerpt: Excerpt | None) -> list[Section]:
    """What the ticket says, in order; the ranks say what goes first when room is short."""
    return [
        _verdict(report, texts),
        _proof(report, texts),
        _next(report, texts),
        _facts(report, texts),
        details.evidence(report, texts, excerpt),
        details.other_fixes(report, texts, fix),
        details.memory(report, texts),
        details.settings(report, texts),
        details.useless(report, texts),
        details.notes(report, texts),
        details.timeline(report, texts),
        details.limits(report, texts),
    ]


def proof(report: Report, most: int = MAX_PROOF) -> list[EvidenceItem]:
    """The few lines that prove the claim: the most telling of each kind, in the log's order."""
    first: dict[str, EvidenceItem] = {}
    for item in report.failure.evidence:
        first.setdefault(item.what, item)
    order = {what: place for place, what in enumerate(_DECISIVE)}
    chosen = sorted(first.values(), key=lambda item: order.get(item.what, len(order)))[:most]
    return [item for item in report.failure.evidence if any(item is one for one in chosen)]


def _verdict(report: Report, texts: Texts) -> Section:
    failure = report.failure
    causes = [factor.text for factor in failure.factors]
    if not causes and failure.kind == "unknown" and report.run.outcome == "incomplete":
        causes = [Words(texts("headline.more.incomplete"))]
    # the proof that follows mostly is the error itself
    told = failure.error is not None and any(
        failure.error.reveal()[:80] in item.text.reveal() for item in proof(report)
    )
    sure = f"({texts('section.confidence')}: {texts(f'word.confidence.{failure.confidence}')})"

    def form(headline: int, error: int, most: int, cause: int) -> tuple[Block, ...]:
        blocks: list[Block] = [Title(encode.cut(failure.headline, headline, error))]
        if failure.error is not None and not told:
            blocks.append(Verbatim((encode.shortened(failure.error, max(80, error)),)))
        said = [encode.cut(text, cause, error) for text in causes[:most]]
        return (*blocks, Paragraph((joined(" ", [*said, Words(sure)]),)))

    forms = (form(600, 300, 2, 600), form(400, 120, 1, 300), form(300, 60, 1, 100), form(200, 30, 0, 0))
    return Section(texts("ticket.name.verdict"), forms, (85, 110, 120))


def _proof(report: Report, texts: Texts) -> Section:
    def form(most: int, limit: int) -> tuple[Block, ...]:
        lines = [f"{item.line}: {encode.shortened(item.text, limit).reveal()}" for item in proof(report, most)]
        return (Verbatim(tuple(map(LogText, lines))),) if lines else ()

    return Section(texts("ticket.name.proof"), (form(MAX_PROOF, 160), form(2, 120), form(1, 80)), (88, 115))


def _facts(report: Report, texts: Texts) -> Section:
    run = report.run

    def form(limit: int, cell: int) -> tuple[Block, ...]:
        names: list[Words] = [Words(encode.shortened(run.job_name, limit))] if run.job_name else []
        ours = (run.family, summary.trainer(report, texts), summary.attempt_of(report, texts))
        names += [Words(name) for name in ours if name]
        sources = [Words(source) for source in summary.sources(report, texts, min(60, limit))]
        unknown = texts("word.log_does_not_say")
        rows: list[tuple[str, str | Words]] = [
            (texts("section.run"), joined(" · ", names) if names else unknown),
            (texts(summary.when_label(report)), summary.when(report, texts)),
            (texts("section.card"), summary.card(report, texts) or unknown),
            (texts("section.config"), joined(", ", sources) if sources else unknown),
        ]
        safe = summary.safe(report, texts)
        if safe:
            rows.insert(2, (texts("section.safe"), safe))
        return (table(*((label, encode.cut(words(text), cell)) for label, text in rows)),)

    return Section(texts("ticket.name.facts"), (form(80, 400), form(24, 72)), (105,))


def _next(report: Report, texts: Texts) -> Section:
    """The first fix; where there is none, what to capture next time."""
    name = texts("ticket.name.fix")
    if report.remedies:
        first = report.remedies[0]
        heading = f"{texts('section.first_fix')}: "
        full, short, least = (tuple(fix(first, report, texts, heading, part)) for part in ("full", "short", "least"))
        return Section(name, (full, short, least), (90, 112))
    if not report.capture:
        return Section(name, ((),))

    def form(most: int, limit: int) -> tuple[Block, ...]:
        items = tuple(encode.cut(Words(item.text), limit) for item in report.capture[:most])
        return (Heading(Words(texts("ticket.next"))), Bullets(items))

    return Section(name, (form(20, 600), form(2, 200), form(1, 100)), (90, 112))


def fix(item: RemedyItem, report: Report, texts: Texts, heading: str = "", part: str = "full") -> Iterator[Block]:
    """One fix; `part`: ``full``, ``short`` (without reason, place and cost) or ``least`` (and little of the edit)."""
    least = part == "least"
    yield Heading(encode.cut(Words(heading or f"{item.rank}. ", item.title), 160 if least else 600))
    if item.changes:
        yield diff(edits(item.changes, report, texts), *((3, 40) if least else (MAX_CHANGES, 120)))
    effect = outlook.effect(item, texts)
    if part == "full":
        guide = f" · {texts('section.guide')} {item.guide.section}" if item.guide.section else ""
        lines = [item.why, Words(effect or ""), Words(f"{texts('section.ui')}: {item.ui}")]
        yield Paragraph(
            (*(line for line in lines if line.reveal()), Words(f"{texts('section.cost')}: {item.cost}{guide}"))
        )
    elif effect and not least:
        yield Paragraph((Words(effect),))


def edits(changes: Sequence[ChangeItem], report: Report, texts: Texts) -> list[Edit]:
    """Changes as edits of the config that ran: what is not in it cannot be taken out of it."""
    found: list[Edit] = []
    for change in changes:
        setting = report.config.values.get(change.path)
        given = setting is None or setting.source.reveal() != "default"
        note = "" if given or change.from_ is None else texts("ticket.default", {"value": scalar(change.from_, 40)})
        found.append(Edit(change.path, change.from_ if given else None, change.to, note))
    return found
