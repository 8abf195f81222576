"""The job file that `postmortem fix` edits: which one it is, its exact text, and how it is written back."""

from __future__ import annotations

import contextlib
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from postmortem.cli import common, output
from postmortem.cli.errors import USAGE, Failure
from postmortem.text import printable

if TYPE_CHECKING:
    from postmortem.intake import Intake
    from postmortem.pipeline import Analysis

REBUILT = "config-from-log.yaml"
UI_FILE = ".job_config.json"
MAX_BACKUPS = 1000


class JobFile(msgspec.Struct, frozen=True):
    """A job config as text. `path` is None where there is no file to write back to (an archive, a log alone)."""

    label: str
    text: str
    path: Path | None = None
    encoding: str = "utf-8"
    rebuilt: bool = False
    """Made from the dump in the log."""
    copy: bool = False
    """One that AI Toolkit keeps in a run folder and writes anew at each start."""


def choose(
    path: str, opened: Intake, named: tuple[Path, common.ConfigText] | None, analysis: Analysis, *, json: bool
) -> JobFile | None:
    """The file to edit: the one the user named, else the one beside the log, else a job made from the log's own dump.

    None where there is no config at all. With `json`, the UI's form of it.
    """
    found = _named(*named) if named is not None else _beside(path, opened, json=json)
    from postmortem.patch import from_dump, load
    from postmortem.patch.job import as_json, as_yaml, is_json

    if found is not None:
        if not json or is_json(found.text):
            return found
        return JobFile(UI_FILE, as_json(load(found.text.removeprefix("\ufeff"))), copy=found.copy)
    dump = analysis.attempt.dump
    if dump is None or dump.value is None:
        return None
    name = analysis.attempt.job_name
    job = from_dump(dump.value, name.reveal() if name is not None else None)
    if json:
        return JobFile(UI_FILE, as_json(job), rebuilt=True)
    return JobFile(REBUILT, as_yaml(job), rebuilt=True)


def _named(path: Path, config: common.ConfigText) -> JobFile:
    if not path.is_file():
        return JobFile(printable(str(path)), config.text)  # a pipe, which is read only once
    return msgspec.structs.replace(_exact(path), copy=path.name == UI_FILE)


def _beside(path: str, opened: Intake, *, json: bool) -> JobFile | None:
    """YAML before JSON, unless JSON is wanted: AI Toolkit keeps both in a run folder of the UI."""
    from postmortem.jobconfig.parse import ConfigProblem, parse

    usable: list[common.ConfigText] = []
    for config in opened.configs:
        try:
            parse(config.text)
            usable.append(config)
        except ConfigProblem:
            continue
    usable.sort(key=lambda config: config.name.endswith(".json") is not json)
    if not usable:
        return None
    base = folder(path, opened)
    if base is None:
        return JobFile(printable(usable[0].name), usable[0].text)
    return msgspec.structs.replace(_exact(base / usable[0].name), copy=True)


def folder(path: str, opened: Intake) -> Path | None:
    """The folder on disk in which the configs of `opened` lie; None for a stream or an archive."""
    if opened.keep is not None or path == "-":
        return None
    if opened.folder is not None:
        return opened.folder
    log = Path(path)
    return log.parent if log.name == "log.txt" else log.parent.parent


def _exact(path: Path) -> JobFile:
    """The file with its line breaks and byte order mark as they are. Raises Failure where they could not be kept."""
    from postmortem.intake import decode
    from postmortem.intake.sources import MAX_CONFIG_BYTES

    shown = printable(str(path))
    try:
        with path.open("rb") as stream:
            content = stream.read(MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise Failure(f"{shown}: {(error.strerror or type(error).__name__).lower()}") from None
    if len(content) > MAX_CONFIG_BYTES:
        raise Failure(f"{shown}: larger than {MAX_CONFIG_BYTES} bytes; that is no job config")
    sniffed = decode.sniff(content)
    for encoding in (sniffed, "utf-8") if sniffed.startswith(("utf-16", "utf-32")) else ("utf-8", sniffed):
        try:
            text = content.decode(encoding)
            if text.encode(encoding) == content:
                return JobFile(shown, text, path, encoding)
        except UnicodeError:
            continue
    raise Failure(f"{shown}: its text cannot be kept byte for byte; save it as UTF-8 first")


def replace(file: JobFile, text: str) -> Path:
    """Write `text` over the file and return the backup of what it held. Raises Failure, with the file as it was."""
    from postmortem import files

    assert file.path is not None
    old = file.text.encode(file.encoding)
    try:
        target = files.destination(file.path)
        if target.read_bytes() != old:
            raise Failure(f"{file.label}: changed while it was being read; try again")
        backup = _backup(target, old)
    except OSError as error:
        raise Failure(f"{file.label}: no backup: {(error.strerror or type(error).__name__).lower()}") from None
    try:
        output.write(text, target, file.encoding)
    except BaseException:
        # Ctrl-C may come behind the last step: then the backup is all that is left of the old file
        with contextlib.suppress(OSError):
            if target.read_bytes() == old:
                backup.unlink(missing_ok=True)
        raise
    return backup


def _backup(target: Path, content: bytes) -> Path:
    """A new file beside `target` with `content` and its rights; an older backup is never written over."""
    from postmortem.files import write_new

    for number in range(MAX_BACKUPS):
        backup = target.with_name(f"{target.name}.bak{number or ''}")
        try:
            write_new(content, backup, stat.S_IMODE(target.stat().st_mode))
        except FileExistsError:
            continue
        return backup
    raise Failure(f"{printable(str(target))}: {MAX_BACKUPS} backups already; remove some", USAGE)
