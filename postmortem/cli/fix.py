"""`postmortem fix`: the job config with the first fix applied, as a diff or as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from postmortem.cli import common, guard, output
from postmortem.cli.errors import USAGE, Failure
from postmortem.cli.inputs import MEMORY_KINDS, analysed, check_gpu, named_config, open_input, refuse_faulty
from postmortem.faults import VERDICT
from postmortem.text import LogText, printable

if TYPE_CHECKING:
    from postmortem.cli.fixfile import JobFile
    from postmortem.knowledge.schema import Knowledge
    from postmortem.model import ConfigChange, Suggestion
    from postmortem.patch import Patched
    from postmortem.pipeline import Analysis
    from postmortem.report.texts import Texts


def fix(
    path: str = typer.Argument("-", metavar="[PATH|-]", help="A log, a run folder, an archive, or - for stdin."),
    config: Path | None = typer.Option(None, "--config", help="The job config to edit (YAML or JSON)."),
    out: Path | None = typer.Option(None, "-o", "--output", metavar="FILE", help="Write the whole changed file there."),
    in_place: bool = typer.Option(False, "--in-place", help="Change the config file itself; a backup stays beside it."),
    as_json: bool = typer.Option(False, "--json", help="Give the job as JSON, as the UI's .job_config.json."),
    only: str | None = typer.Option(None, "--only", metavar="ID", help="Apply this fix in place of the first."),
    ladder: int | None = typer.Option(None, "--ladder", metavar="N", min=1, help="Apply the first N fixes together."),
    lang: str = common.LANG,
    gpu: float | None = typer.Option(
        None, "--gpu", metavar="GIB", min=1, max=4096, help="The card's size, if the log does not tell it."
    ),
    attempt: int | None = typer.Option(None, "--attempt", metavar="N", help="Fix what the N-th attempt died of."),
    pack: Path | None = typer.Option(None, "--patterns", metavar="DIR", help="Add a folder of patterns of your own."),
    max_expanded: int = typer.Option(4096, "--max-expanded", metavar="MIB", min=1, help="Unpack at most so much."),
    max_ratio: int = typer.Option(1000, "--max-ratio", min=1, help="Unpack at most so many times an archive's size."),
    max_entries: int = typer.Option(10_000, "--max-entries", min=1, help="Look at so many entries of an archive."),
) -> int:
    """Give the job config with the first fix applied, and nothing else changed: a diff, or a file.

    Exit status: 0 also where there is nothing to edit; 2 bad usage; 3 unreadable, or an edit that is not safe.
    """
    for chosen, names in (((out, in_place), "-o and --in-place"), ((only, ladder), "--only and --ladder")):
        if all(chosen):
            raise Failure(f"{names} exclude each other", USAGE)
    base = common.knowledge(pack)
    lang = common.language(base, lang, output.tells_in())
    check_gpu(gpu)
    from postmortem.cli import fixfile
    from postmortem.report.texts import Texts

    texts = Texts(base, lang)
    targets, hint = (("-o", out),), ", or --in-place"
    guard.refuse(targets, config, pack, *([path] if not Path(path).is_dir() else []), configs=True, hint=hint)
    opened = open_input(path, max_expanded, max_ratio, max_entries)
    guard.refuse_opened(targets, opened, folder=False, hint=hint)
    named = (config, named_config(config)) if config is not None else None
    analysis = analysed(opened, path, named[1] if named else None, base, attempt, gpu_gib=gpu)
    refuse_faulty(analysis, VERDICT, "config", "remedies")
    picked = _pick(analysis, base, texts, only, ladder)
    if not picked:
        return 0
    file = fixfile.choose(path, opened, named, analysis, json=as_json)
    if file is None:
        raise Failure(texts("fix.config_unknown"))
    if in_place and file.path is None:
        raise Failure("--in-place: there is no such file to change here; give -o FILE", USAGE)
    text, told = _patched(file, picked, analysis, base, texts)
    _deliver(file, text, out, in_place, told, texts)
    return 0


def _pick(
    analysis: Analysis, base: Knowledge, texts: Texts, only: str | None, ladder: int | None
) -> tuple[Suggestion, ...]:
    """The fixes to apply; none where there is nothing to edit, which is then said."""
    editing = [item for item in analysis.suggestions if item.changes]
    if only is not None and only not in {remedy.id for remedy in base.remedies}:
        raise Failure(f"--only {printable(only)}: no such fix (`postmortem explain` lists them)", USAGE)
    if analysis.diagnosis.kind not in MEMORY_KINDS:
        output.tell(texts("fix.no_failure"))
        return ()
    if not analysis.suggestions:
        output.tell(texts("fix.no_offer"))
        return ()
    if ladder is not None and analysis.ladder:
        by_id = {item.id: item for item in editing}
        return tuple(msgspec.structs.replace(by_id[rung.id], changes=rung.changes) for rung in analysis.ladder[:ladder])
    if ladder is not None and editing:
        return tuple(editing[:ladder])
    chosen = analysis.suggestions[0]
    if only is not None:
        found = [item for item in analysis.suggestions if item.id == only]
        if not found:
            known = ", ".join(item.id for item in editing) or texts("fix.none_known")
            raise Failure(texts("fix.not_offered", {"id": only, "known": known}), USAGE)
        chosen = found[0]
    if chosen.changes:
        return (chosen,)
    if not analysis.config.known and _edits(chosen, base):
        raise Failure(texts("fix.config_unknown"))
    output.tell(texts("fix.not_config", {"title": _title(chosen, texts), "ui": texts(f"remedy.{chosen.id}.ui")}))
    following = next((item for item in editing if item.id != chosen.id), None)
    if following is None:
        output.tell(texts("fix.no_next"))
    else:
        output.tell(texts("fix.next", {"id": following.id, "title": _title(following, texts)}))
    return ()


def _edits(chosen: Suggestion, base: Knowledge) -> bool:
    """Whether this fix is one of the config at all."""
    return any(remedy.changes for remedy in base.remedies if remedy.id == chosen.id)


def _patched(
    file: JobFile, picked: tuple[Suggestion, ...], analysis: Analysis, base: Knowledge, texts: Texts
) -> tuple[str, list[str]]:
    """The file's text with the fixes applied, and what to tell of it."""
    from postmortem.jobconfig.values import MAX_DATASETS
    from postmortem.patch import Refused, apply

    dump = analysis.attempt.dump
    ran = dump.value if dump is not None else None
    text = file.text
    told: list[str] = []
    done = 0
    try:
        if (count := _processes(analysis)) > 1:
            raise Refused("which_process", count=count)
        if ran is not None and isinstance(listed := ran.get("datasets"), list) and len(listed) > MAX_DATASETS:
            raise Refused("too_many", count=len(listed), limit=MAX_DATASETS)
        told += _doubts(file, picked, analysis, base, texts)
        for item in picked:
            result = apply(text, item.changes, base, ran)
            told += _said(item, result, texts)
            text, done = result.text, done + bool(result.done)
    except Refused as refused:
        values = {name: _value(value) for name, value in refused.values.items()}
        raise Failure(f"{file.label}: {printable(texts(f'fix.refused.{refused.reason}', values))}") from None
    if done == 1:
        told.append(texts("fix.only_this"))
    elif done:
        told.append(texts("fix.together", {"count": done}))
    else:
        told.append(texts("fix.nothing_changed", {"file": LogText(file.label)}))
    if file.copy:
        told.append(texts("fix.copy", {"file": LogText(file.label)}))
    return text, told


def _processes(analysis: Analysis) -> int:
    """How many process configs may have been the one that ran: AI Toolkit prints all of a job before the first."""
    return 1 + len(analysis.attempt.other_dumps)


def _said(item: Suggestion, result: Patched, texts: Texts) -> list[str]:
    title = _title(item, texts)
    if not result.done:
        return [texts("fix.already", {"title": title, "changes": LogText(_listed(result.already, "{path}: {after}"))})]
    changes = LogText(_listed(result.done, "{path}: {before} → {after}"))
    return [
        texts("fix.done", {"title": title, "changes": changes}),
        texts("fix.place", {"ui": texts(f"remedy.{item.id}.ui")}),
    ]


def _listed(changes: tuple[ConfigChange, ...], form: str) -> str:
    shown = [form.format(path=c.path, before=_value(c.before), after=_value(c.after)) for c in changes[:4]]
    return "; ".join(shown + ["…"] * (len(changes) > 4))


def _doubts(
    file: JobFile, picked: tuple[Suggestion, ...], analysis: Analysis, base: Knowledge, texts: Texts
) -> list[str]:
    """What the person should know of the file before using the result."""
    from postmortem.jobconfig.effective import differences
    from postmortem.jobconfig.values import settings_of
    from postmortem.patch import choose_process, load
    from postmortem.patch.job import NAME

    attempt = analysis.attempt
    if file.rebuilt:
        nameless = [texts("fix.rebuilt_nameless", {"name": NAME})] if attempt.job_name is None else []
        return [texts("fix.rebuilt"), *nameless]
    told: list[str] = []
    shown = LogText(file.label)
    job = load(file.text.removeprefix("\ufeff"))
    ran = attempt.dump.value if attempt.dump is not None else None
    settings = settings_of(choose_process(job, ran)[1], base, "file")
    fixed = [(change.path, change.after) for item in picked for change in item.changes]
    found = [
        item
        for item in differences(analysis.config.values, settings, file.label)
        if (item.values["path"], item.values["other"]) not in fixed
    ]
    if found:
        names = [
            texts("fix.differs_item", {key: _value(item.values[key]) for key in ("path", "other", "ran")})
            for item in found
        ]
        shortened = "; ".join(names[:5] + ["…"] * (len(names) > 5))
        told.append(texts("fix.differs", {"file": shown, "names": LogText(shortened)}))
    outer = job.get("config") if isinstance(job, dict) else None
    name = outer.get("name") if isinstance(outer, dict) else None
    if isinstance(name, str) and attempt.job_name is not None and name.strip() != attempt.job_name.reveal().strip():
        told.append(texts("fix.other_job", {"file": shown, "name": LogText(name), "other": attempt.job_name}))
    return told


def _deliver(file: JobFile, text: str, out: Path | None, in_place: bool, told: list[str], texts: Texts) -> None:
    """Hand the result over, then tell what it is: a file that could not be written is not spoken of as done."""
    from postmortem.cli import fixfile

    if in_place:
        if text != file.text:
            backup = fixfile.replace(file, text)
            values = {"file": LogText(file.label), "backup": LogText(str(backup))}
            told.append(texts("fix.backup", values))
    elif out is not None:
        output.write(text, out, file.encoding)
    else:
        from postmortem.patch.diff import unified

        output.write_diff(unified(file.text, text, file.label))
    for line in told:
        output.tell(line)


def _title(item: Suggestion, texts: Texts) -> str:
    return texts(f"remedy.{item.id}.title")


def _value(value: Any) -> Any:
    from postmortem.report import encode

    return value if isinstance(value, int) and not isinstance(value, bool) else encode.value(value)[:200]
