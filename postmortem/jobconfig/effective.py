"""Which settings were in force: what the run's own dump says, else the files beside it, else AI Toolkit's defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from postmortem.jobconfig.parse import MAX_PROCESSES, ConfigProblem, RawConfig, parse, parse_each
from postmortem.jobconfig.values import DEFAULT, LOG, MAX_DATASETS, others_of, values_of
from postmortem.knowledge.schema import Knowledge
from postmortem.model import ConfigDump, JobConfig, Notice, Value
from postmortem.text import LogText

MAX_DIFFERENCES = 12


class ConfigText(msgspec.Struct, frozen=True):
    """A config file as text, with the short name under which the report cites it."""

    name: str
    text: str


def effective(
    dump: ConfigDump | None, files: Sequence[ConfigText], knowledge: Knowledge, rivals: Sequence[ConfigDump] = ()
) -> JobConfig:
    """The effective settings. `files` come in order of trust; the dump in the log, when there, outranks them.

    `rivals` are the dumps of other processes of the job that may have been the one at work: a setting on which they
    differ is not known (its value is None), and a warning says so. Files that cannot be read become warnings, and so
    do settings on which the sources disagree.
    """
    warnings: list[Notice] = []
    raws: list[tuple[str, RawConfig]] = []
    if dump is not None:
        if dump.value is None:
            warnings.append(Notice("dump_damaged", dump.place.line))
        else:
            raws.append((LOG, RawConfig(dump.value, dump.lines)))
    for file in files:
        try:
            raw = parse(file.text)
        except ConfigProblem as problem:
            warnings.append(
                Notice(
                    "config_damaged",
                    None,
                    {"file": LogText(file.name), "line": problem.line, "problem": LogText(problem.problem)},
                )
            )
            continue
        warnings.extend(_duplicates(raw, file.name))
        raws.append((file.name, raw))
    if not raws:
        return JobConfig({}, (), tuple(warnings))
    source, chosen = raws[0]
    warnings.extend(_left_out(chosen))
    values = values_of(source, chosen, knowledge)
    if source == LOG and rivals:
        values, differing = _agreed(values, rivals, knowledge)
        if differing:
            warnings.append(Notice("processes_differ", rivals[0].place.line, {"settings": ", ".join(differing)}))
    for other_name, other in raws[1:]:
        warnings.extend(differences(values, values_of(other_name, other, knowledge), other_name))
    name = next((raw.job_name for _, raw in raws if raw.job_name), None)
    others = others_of(chosen.settings, values, knowledge)
    given = tuple(raw.job or raw.settings for _, raw in raws)
    return JobConfig(values, (source,), tuple(warnings), LogText(name) if name else None, others, given)


def each(file: ConfigText, knowledge: Knowledge) -> list[JobConfig]:
    """The effective settings of every process of one job config. Raises ConfigProblem when it is none."""
    found: list[JobConfig] = []
    for raw in parse_each(file.text):
        values = values_of(file.name, raw, knowledge)
        name = LogText(raw.job_name) if raw.job_name else None
        others = others_of(raw.settings, values, knowledge)
        warnings = tuple(_duplicates(raw, file.name))
        found.append(JobConfig(values, (file.name,), warnings, name, others, (raw.job or raw.settings,)))
    return found


def _left_out(raw: RawConfig) -> Iterator[Notice]:
    """What of a job is more than is looked at."""
    datasets = raw.settings.get("datasets")
    if isinstance(datasets, list) and len(datasets) > MAX_DATASETS:
        yield Notice("datasets_left_out", None, {"count": len(datasets) - MAX_DATASETS, "read": MAX_DATASETS})
    outer = raw.job.get("config")
    processes = outer.get("process") if isinstance(outer, dict) else None
    if isinstance(processes, list) and len(processes) > MAX_PROCESSES:
        yield Notice("processes_left_out", None, {"count": len(processes) - MAX_PROCESSES, "read": MAX_PROCESSES})


def _duplicates(raw: RawConfig, name: str) -> Iterator[Notice]:
    for key, line in raw.duplicates:
        yield Notice("config_duplicate_key", None, {"file": LogText(name), "line": line, "key": LogText(key)})


def differences(ran: Mapping[str, Value], other: Mapping[str, Value], name: str) -> Iterator[Notice]:
    """The settings on which what `ran` and the `other` config, called `name`, disagree; the first dozen."""
    count = 0
    for path in sorted(set(ran) | set(other)):
        mine = ran.get(path)
        theirs = other.get(path)
        if mine is None or theirs is None or mine.value == theirs.value:
            continue
        if mine.source == DEFAULT and theirs.source == DEFAULT:
            continue
        count += 1
        if count > MAX_DIFFERENCES:
            return
        yield Notice(
            "config_differs", mine.line, {"path": path, "ran": mine.value, "file": LogText(name), "other": theirs.value}
        )


def _agreed(
    values: Mapping[str, Value], rivals: Sequence[ConfigDump], knowledge: Knowledge
) -> tuple[dict[str, Value], list[str]]:
    """`values` without those that a rival gives otherwise, and the paths of what is explicit there."""
    agreed = dict(values)
    differing: set[str] = set()
    for rival in rivals:
        theirs = values_of(LOG, RawConfig(rival.value or {}, rival.lines), knowledge)
        for path in set(agreed) | set(theirs):
            mine, other = values.get(path), theirs.get(path)
            if mine is None or other is None or mine.value != other.value:
                agreed[path] = Value(None, LOG)
                if LOG in (mine.source if mine else None, other.source if other else None):
                    differing.add(path)
    return agreed, sorted(differing)[:MAX_DIFFERENCES]
