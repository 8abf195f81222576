"""`postmortem watch`: follow a training folder and write a report beside each run that fails, once."""

from __future__ import annotations

import enum
import math
import re
import shlex
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from postmortem.cli import common, forms, output, redaction
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import named, printable

if TYPE_CHECKING:
    from postmortem.fleet.watch.events import Event
    from postmortem.fleet.watch.judge import Judged
    from postmortem.fleet.watch.keeper import Rendered
    from postmortem.knowledge.schema import Knowledge
    from postmortem.report.texts import Texts

FORMS = ((".md", common.Format.markdown), (".html", common.Format.html))
"""The reports that are written beside a run."""


class LineFormat(str, enum.Enum):
    """How to print events."""

    text = "text"
    jsonl = "jsonl"


def watch(
    folder: Path = typer.Argument(
        ..., metavar="DIR", help="A training folder, with runs at any depth; may appear later."
    ),
    run: str | None = typer.Option(
        None, "--run", metavar="COMMAND", help="Run this for each failure, without a shell; {report}, {run}, {class}, …"
    ),
    run_timeout: float = typer.Option(60.0, "--run-timeout", metavar="S", min=0.1, help="End it after so long."),
    once: bool = typer.Option(False, "--once", help="One pass, then exit: for cron."),
    interval: float = typer.Option(2.0, "--interval", metavar="S", min=0.05, max=3600, help="Look every so often."),
    quiet: float = typer.Option(
        30.0, "--quiet", metavar="MIN", min=0, help="A log that just stops counts as a failure after so many minutes."
    ),
    since: str | None = typer.Option(
        None, "--since", metavar="WHEN", help="Only runs whose log changed since then: 2026-11-30, or 7d, 12h."
    ),
    include: list[str] = typer.Option([], "--include", metavar="GLOB", help="Only runs whose path or name matches."),
    exclude: list[str] = typer.Option([], "--exclude", metavar="GLOB", help="No runs whose path or name matches."),
    db: Path | None = typer.Option(
        None, "--db", metavar="FILE", help="The UI's database (aitk_db.db), if it is not in the toolkit's folder."
    ),
    format: LineFormat = typer.Option(LineFormat.text, "--format", help="Events on stdout as lines, or as JSON Lines."),
    redact: bool = typer.Option(True, "--redact/--no-redact", help=redaction.HELP),
    lang: str = common.LANG,
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
) -> int:
    """Follow a training folder, and write postmortem.md beside each run that fails, once. Ctrl-C ends it."""
    base = common.knowledge(pack)
    lang = common.language_of(base, lang, None)
    command = _command(run)
    if any(math.isnan(number) for number in (interval, quiet, run_timeout)):
        raise Failure("--interval, --quiet and --run-timeout take numbers", USAGE)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", str(folder)) and not folder.exists():
        raise Failure(f"{printable(str(folder))}: a URL; watch follows a folder of this machine", USAGE)
    if folder.exists() and not folder.is_dir():
        raise Failure(f"{printable(str(folder))}: is a file; give the folder that holds the runs", USAGE)
    if once and not folder.is_dir():
        raise Failure(f"{printable(str(folder))}: no such folder")
    if db is not None and not db.is_file():
        raise Failure(f"{printable(str(db))}: not a file; give the UI's aitk_db.db")
    since_s = common.since(since)
    with Stop() as stop:
        from postmortem.fleet.watch.hook import Hooks
        from postmortem.fleet.watch.memory import Memory
        from postmortem.fleet.watch.state import Pace
        from postmortem.fleet.watch.watcher import Setup, Watcher, World
        from postmortem.knowledge.kept import home
        from postmortem.report.texts import Texts
        from postmortem.scan import Lexicon

        memory = Memory(home(), folder, base.version, _write)
        if not memory.alone():
            raise Failure(f"{printable(str(folder))}: another `postmortem watch` follows it")
        texts = Texts(base, lang)
        tell = _tell(texts)
        setup = Setup(
            root=folder,
            pace=Pace(interval, quiet * 60),
            lang=lang,
            database=db,
            include=include,
            exclude=exclude,
            since=since_s,
            suffixes=[suffix for suffix, _ in FORMS],
        )
        world = World(
            now=time.monotonic,
            wall=time.time,
            sleep=stop.sleep,
            stopped=lambda: stop.asked,
            emit=_emit(format, texts),
            tell=tell,
            write=_write,
            render=_renderer(base, redact=redact),
        )
        hooks = Hooks(command, run_timeout, lambda what, path: tell(what, path, ""))
        Watcher(setup, world, Lexicon(base), memory, hooks).run(once=once)
    return 0


class Stop:
    """Ctrl-C and SIGTERM ask for the end; what is being written is finished first. A second Ctrl-C does not wait."""

    SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")

    def __init__(self) -> None:
        self.asked = False
        self._asleep = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        for name in self.SIGNALS:
            number = getattr(signal, name, None)
            # who starts it with nohup wants it to outlive the terminal
            if number is not None and not (name == "SIGHUP" and signal.getsignal(number) is signal.SIG_IGN):
                self._before[number] = signal.signal(number, self._on)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on(self, number: int, frame: object) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
        if self._asleep:
            self._asleep = False  # a second signal may come while the first is answered
            raise _Woken

    def sleep(self, seconds: float) -> None:
        """Sleep until the time is over or the end was asked for."""
        try:
            self._asleep = True
            if not self.asked:
                time.sleep(seconds)
            self._asleep = False
        except _Woken:
            self._asleep = False


class _Woken(Exception):
    """Leaves a sleep."""


def _command(text: str | None) -> list[str]:
    if text is None:
        return []
    import shutil

    try:
        command = shlex.split(text)
    except ValueError as error:
        raise Failure(f"--run: {str(error).lower()}", USAGE) from None
    if not command or (shutil.which(command[0]) is None and "{" not in command[0]):
        shown = printable(command[0])[:200] if command else ""
        raise Failure(f"--run {shown}: no such program (it is run without a shell)", USAGE)
    return command


def _write(text: str, path: Path) -> None:
    from postmortem.fleet.watch.files import NotWritten

    try:
        output.write(text, path)
    except Failure as failure:
        raise NotWritten(str(failure).removeprefix(f"{printable(str(path))}: ")) from None


def _renderer(base: Knowledge, *, redact: bool) -> Callable[[Judged], Rendered]:
    def render(judged: Judged) -> Rendered:
        from postmortem.fleet.watch.keeper import Rendered

        report = judged.report
        excerpt = forms.excerpt_of(report, judged.opened)
        if redact:
            redactor = redaction.redactor(base, [report, excerpt], [judged.analysis])
            report = redactor.document(report)
            excerpt = redactor.excerpt(excerpt)
        return Rendered(
            report,
            {suffix: forms.rendered(report, excerpt, base, form, to_file=True) for suffix, form in FORMS},
        )

    return render


def _tell(texts: Texts) -> Callable[[str, str, str], None]:
    def tell(what: str, path: str, why: str) -> None:
        output.tell(f"{named(path)}: {texts(f'watch.tell.{what}', {'why': texts.problem(why)})}")

    return tell


def _emit(format: LineFormat, texts: Texts) -> Callable[[Event], None]:
    """One line an event. A stdout that cannot be written is no reason to stop; a reader that has gone is."""

    def emit(event: Event) -> None:
        try:
            output.write(_line(event, format, texts), None)
        except Failure:
            return

    return emit


def _line(event: Event, format: LineFormat, texts: Texts) -> str:
    if format is LineFormat.jsonl:
        import msgspec

        return msgspec.json.encode(event).decode() + "\n"
    ended = texts(f"word.outcome.{event.outcome}")
    parts = [texts(f"watch.event.{event.event}", {"attempt": event.attempt, "ended": ended})]
    if event.headline is not None:
        parts.append(event.headline)
    line = f"{event.run}: {' · '.join(parts)}"
    return printable(line + "".join(f" → {path}" for path in event.reports[:1])) + "\n"
