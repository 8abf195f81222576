"""What a run was and how it ended, in lines: the terminal and the ticket say these things in the same words.

Lines with something of the log or the config in them are `Words`; a `str` is ours alone.
"""

from __future__ import annotations

from postmortem.report.document import Report
from postmortem.report.texts import Texts, size
from postmortem.text import LogText, Words

MAX_STEPS = 12


def trainer(report: Report, texts: Texts) -> str | None:
    """The program, with the dates between which its version lies where the log tells."""
    dated = report.run.dated
    if dated is None:
        return report.run.trainer
    if dated.from_ is None or dated.until is None:
        key = "word.dated_until" if dated.from_ is None else "word.dated_since"
    else:
        key = "word.dated_day" if dated.from_ == dated.until else "word.dated"
    return texts(key, {"since": dated.from_, "until": dated.until})


def attempt_of(report: Report, texts: Texts) -> str | None:
    """Which of several attempts the report is on."""
    if report.input.attempts < 2:
        return None
    return texts("word.attempt_of", {"attempt": report.input.attempt, "attempts": report.input.attempts})


def notes(report: Report, texts: Texts) -> list[Words]:
    """What else the reader wants to know of the run: suspects, skipped steps, where a resume had started."""
    found = list(report.skips.says) if report.skips else []
    if report.pace.total_s and report.pace.phases:
        named = [f"{texts(f'phase.{item.phase}.title')} {_clock(item.seconds)}" for item in report.pace.phases]
        found.append(Words(texts("word.took", {"whole": _clock(report.pace.total_s), "phases": ", ".join(named)})))
    steps = [event.step for event in report.oom_events if event.caught and event.phase == "training_step"]
    known = [str(step) for step in steps if step is not None]
    if known and len(steps) > 1:
        shown = ", ".join(known[:MAX_STEPS]) + (" …" if len(known) > MAX_STEPS else "")
        found.append(Words(texts("word.skipped_steps", {"steps": shown})))
    if report.run.start_step and report.run.outcome in ("failed", "killed"):
        found.append(Words(texts("word.resumed", {"step": report.run.start_step})))
    return found


def safe(report: Report, texts: Texts) -> Words | None:
    """What of a run that did not come to its end is not lost; None where nothing can be said, or need not be."""
    run = report.run
    if run.outcome not in ("failed", "killed", "incomplete", "stopped") or run.safe_source is None:
        return None
    what = "bare" if run.safe_checkpoint is None else "final" if run.safe_step is None else "step"
    key = "word.safe.nothing" if run.safe_source == "nothing" else f"word.safe.{run.safe_source}_{what}"
    return texts.words(key, {"step": run.safe_step, "name": run.safe_checkpoint})


def _clock(seconds: float) -> str:
    """``H:MM:SS``."""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def when_label(report: Report) -> str:
    """Which label the line of `when` carries."""
    return "section.died" if report.run.outcome in ("failed", "killed") else "section.ended"


def when(report: Report, texts: Texts) -> str:
    """At which step, in which phase, how it ended."""
    failure, run = report.failure, report.run
    parts: list[str] = [texts(f"word.outcome.{run.outcome}")]
    stepping = failure.phase in ("training_step", "mid_sampling", "saving", "validation")
    died = run.outcome in ("failed", "killed")
    if failure.kind == "vram_spill":
        key = "word.slow_from"
    elif died or failure.kind not in ("gpu_oom", "host_oom"):
        key = "word.step_of" if run.total_steps else "word.step"
    else:
        key = "word.first_skip"
    if failure.step is not None and stepping:
        parts.append(texts(key, {"step": failure.step, "total": run.total_steps}))
    if failure.phase != "unknown" and failure.kind != "none":
        parts.append(texts(f"phase.{failure.phase}.title"))
    if failure.resource:
        parts.append(texts(f"word.resource.{failure.resource}"))
    return " · ".join(parts)


def card(report: Report, texts: Texts) -> str | None:
    """The card's size as sold, and as torch sees it."""
    total = report.memory.gpu_total
    if total is None:
        return None
    from postmortem.vram import card_class_gib

    sold = card_class_gib(total)
    name = texts("word.card_class", {"size": sold}) + ", " if sold else ""
    return f"{name}{texts('memory.capacity')} {size(total)}"


def origin(source: LogText, line: int | None, texts: Texts) -> Words:
    """Where a setting comes from: its default, the log, or a file of that name."""
    name = source.reveal()
    shown = texts("word.default") if name == "default" else texts("word.log") if name == "log" else LogText(name[:24])
    return Words(shown, f", {texts('section.line')} {line}" if line else "")


def sources(report: Report, texts: Texts, limit: int = 80) -> list[str | LogText]:
    """Where the settings were read: in the log, or in files of those names."""
    names = [source.reveal() for source in report.config.sources[:4]]
    return [texts("word.in_log") if name == "log" else LogText(name[:limit]) for name in names]


def guides(report: Report) -> list[str]:
    """The guides that the fixes stand on, each once."""
    named = [item.guide.url for item in report.remedies if item.guide.section and item.guide.url]
    return list(dict.fromkeys(url for url in named if url))
