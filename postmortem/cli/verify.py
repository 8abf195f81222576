"""`postmortem verify`: a report and its log → whether the log says what the report claims."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from postmortem.cli import common, guard, inputs, options, output, ticket
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

if TYPE_CHECKING:
    from postmortem.knowledge.schema import Knowledge
    from postmortem.pipeline import Analysis
    from postmortem.report import Report
    from postmortem.verify import Claims, Given
    from postmortem.verify.document import Finding


class VerifyFormat(str, enum.Enum):
    """How to print a verification."""

    terminal = "terminal"
    json = "json"


def verify(
    report: str = typer.Argument(..., metavar="REPORT", help="report.json, or the ticket (zip) that holds it."),
    path: str = typer.Argument(..., metavar="LOG", help="The log, run folder, archive, URL, or -, that it is about."),
    config: Path | None = options.CONFIG,
    db: Path | None = options.DATABASE,
    dataset: list[Path] | None = options.DATASET,
    format: VerifyFormat = typer.Option(VerifyFormat.terminal, "--format", help="How to print the result."),
    out: Path | None = options.OUTPUT,
    lang: str = options.LANG,
    pack: Path | None = options.PATTERNS,
    max_expanded: int = options.EXPANDED,
    max_ratio: int = options.RATIO,
    max_entries: int = options.ENTRIES,
) -> int:
    """Re-derive every claim of a report from its log. Status 0: all the same; 1: something differs or is unproven."""
    base = common.knowledge(pack)
    lang = common.language_of(base, lang, None)
    targets = (("-o", out),)
    guard.refuse(targets, report, path, config, db, pack, *(dataset or ()))
    if report == "-":
        raise Failure("REPORT: give a file; only the log may come from standard input", USAGE)
    claims, files = _read(report)
    given = options.Given(
        config=config,
        db=db,
        datasets=tuple(dataset or ()),
        expanded_mib=max_expanded,
        ratio=max_ratio,
        entries=max_entries,
    )
    from postmortem.verify import build

    found = build(claims, _derive(claims, files, path, given, base, targets), base, lang)
    if format is VerifyFormat.json:
        from postmortem.verify import json_

        text = json_.render(found)
    else:
        from postmortem.report.texts import Texts
        from postmortem.verify import terminal

        colour = output.colour_stdout() and out is None
        width = 80 if out else output.columns()
        text = terminal.render(found, Texts(base, lang), width=width, colour=colour)
    output.write(text, out)
    return 0 if found.verdict == "same" else 1


def _read(name: str) -> tuple[Claims, dict[str, bytes]]:
    """The claims of a report, and the files of the ticket that it came in. Raises Failure."""
    from postmortem.bundle.archive import BadBundle, unpack
    from postmortem.intake import decode, opening
    from postmortem.verify import BadReport, read
    from postmortem.verify.sent import MAX_BYTES

    shown = printable(name)[:300]
    try:
        path = Path(name)
        if path.is_dir():
            raise Failure(f"{shown}: is a folder; give the report.json or the ticket (zip) in it")
        if not path.is_file() and not name.startswith(("/dev/fd/", "/proc/self/fd/")):
            raise Failure(f"{shown}: no such file; give a report.json or a ticket (zip)")
        with opening.opened(path) if path.is_file() else path.open("rb") as file:
            data = opening.some(file, 4 * MAX_BYTES + 1)
        files = unpack(data) if data.startswith(b"PK\x03\x04") else {}
        text = files.get("report.json", data)
        # PowerShell's `>` writes UTF-16
        decoded = b"".join(decode.to_utf8([text], decode.sniff(text[: decode.HEAD])))
        return read(decoded), files
    except (BadReport, BadBundle) as error:
        raise Failure(f"{shown}: {error}") from None
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None
    except ValueError:
        raise Failure(f"{shown}: no such file; give a report.json or a ticket (zip)") from None


def _derive(
    claims: Claims,
    files: dict[str, bytes],
    path: str,
    given: options.Given,
    base: Knowledge,
    targets: Sequence[guard.Target],
) -> Given:
    """What the log gives, read with the options that the report was made with."""
    from postmortem.cli import again
    from postmortem.scan import Lexicon
    from postmortem.verify import Given, spans, tickets
    from postmortem.verify import files as lines
    from postmortem.verify.compare import Labels

    settled: list[Finding] = []
    attempt, gpu_gib, redacted = _asked(claims, settled)
    given = options.Given(
        **{name: getattr(given, name) for name in given.__struct_fields__ if name not in ("attempt", "gpu_gib")},
        attempt=attempt,
        gpu_gib=gpu_gib,
    )
    opened, analysis = inputs.read_again(path, given, base, claims.value["input"].get("beside"), targets)
    inputs.refuse_faulty(analysis)  # else what is missing here would be called a lie there
    if analysis.asked_attempt != attempt:
        settled.append(tickets.finding("input.options.attempt", "impossible", attempt, len(analysis.attempts)))
    bare = _again(claims, analysis, base, redacted=redacted)
    why = _not_comparable(claims, bare, base) if files else None
    remade = again.make(claims, files if why is None else {}, bare, opened, analysis, base)
    logs = {log.name: log for log in opened.logs}
    only = opened.logs[0] if len(opened.logs) == 1 else None

    def read(name: str) -> Iterable[bytes]:
        log = logs.get(name, only)
        return log.chunks() if log is not None else ()

    looked_up = list(spans.check(spans.cited(claims.value), read, Lexicon(base), remade.hide))
    if not files:
        return Given(remade.values, looked_up, settled)
    held = ticket.logs_of(opened, analysis.scanned.source, remade.redactor)
    checked = tickets.check(files, claims.value, held, next((log.text_sha256 for log in held if log.reported), ""))
    left, labels = list(checked.left), Labels()
    if why is not None:
        left += [tickets.finding(name, why, None, None) for name in ticket.READ]
    elif "same_log" in checked.hints:
        # of a file that its own checksum gives away, the lines need not be told as well
        known = {one.path.reveal().partition(":")[2] for one in checked.wrong}
        told = {name: text for name, text in remade.files.items() if name not in known}
        wrong = lines.check(files, told, labels)
        settled += [tickets.finding(f"{one.name}:{one.line}", "other_line", one.sent, one.made) for one in wrong]
    settled = [*checked.wrong, *settled]
    return Given(remade.values, looked_up, settled, checked.good, tuple(checked.hints), left, labels)


def _again(claims: Claims, analysis: Analysis, base: Knowledge, *, redacted: bool) -> Report:
    """The report made again, in the language of the one that was sent."""
    from postmortem.report import build

    options_told = claims.value["input"].get("options")
    ticket = isinstance(options_told, dict) and options_told.get("ticket") is True
    lang = claims.lang if claims.lang in base.texts else "en"
    return build(analysis, base, lang, redacted=redacted, ticket=ticket)


def _not_comparable(claims: Claims, bare: Report, base: Knowledge) -> str | None:
    """Why a ticket's files cannot be made again: another version made them, or with what is not here; None if they can.

    Both are only what the report says of itself, so that what was not compared for it is not proven.
    """
    import msgspec

    from postmortem import __version__
    from postmortem.verify import needs

    same = claims.same_schema and claims.tool_version == __version__ and claims.patterns == base.version
    beside = claims.value["input"].get("beside")
    if not same or not isinstance(beside, dict):
        return "other_version"
    return next((f"needs_{name}" for name in needs.missing(beside, msgspec.structs.asdict(bare.input.beside))), None)


def _asked(claims: Claims, settled: list[Finding]) -> tuple[int | None, float | None, bool]:
    """The options that the report says it was made with; what `analyze` would not have taken is a finding."""
    from postmortem.verify import tickets
    from postmortem.verify.spans import has_label

    told = claims.value["input"].get("options")
    if not isinstance(told, dict):
        return None, None, has_label(claims.value)
    attempt, gpu, redacted = told.get("attempt"), told.get("gpu_gib"), told.get("redacted")
    if attempt is not None and (not isinstance(attempt, int) or isinstance(attempt, bool) or attempt < 1):
        settled.append(tickets.finding("input.options.attempt", "impossible", attempt, None))
        attempt = None
    if gpu is not None and (not isinstance(gpu, (int, float)) or isinstance(gpu, bool) or not 1 <= gpu <= 4096):
        settled.append(tickets.finding("input.options.gpu_gib", "impossible", gpu, None))
        gpu = None
    return attempt, gpu, redacted if isinstance(redacted, bool) else has_label(claims.value)
