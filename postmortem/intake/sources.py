"""Open what the user gives: a file, a run folder as AI Toolkit leaves it, or a stream."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from postmortem.intake import decode, folders, jsonlines, packed, pastes
from postmortem.intake.errors import IntakeError, Unreadable
from postmortem.intake.opening import opened as reading
from postmortem.intake.opening import some
from postmortem.jobconfig.effective import ConfigText
from postmortem.model import Notice
from postmortem.text import LogText, named, printable

if TYPE_CHECKING:
    from postmortem.intake import archives
    from postmortem.model import FolderWitness, JobDatabase

CHUNK = 3 << 17
MAX_CONFIG_BYTES = 2_000_000
MAX_GROWN = 1 << 30
"""Bytes that may come to a log while it is read: who writes faster than we read would keep us for ever."""
CHANGED = "was replaced or cut short while it was read; try again"
LOG_SUFFIXES = (".log", ".txt", ".out", ".err")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://|(?i:file:/)")
_SHELL_PIPE = re.compile(r"/(?:dev|proc/(?:self|\d+))/fd/\d+")
SINGLE = "log"
"""What evidence calls the only log there is, so that a pipe and a file give the same report."""


class LogFile(msgspec.Struct, frozen=True):
    """One log: the name that evidence cites, its encoding, and how to read it (UTF-8 chunks) once."""

    name: str
    encoding: str
    chunks: Callable[..., Iterator[bytes]]
    """Called with a function, that is told of every piece how many bytes of the file it was."""
    repairs: tuple[str, ...] = ()
    """What a paste had done to the text and was undone (see intake/pastes.py)."""
    size: int | None = None
    """Bytes to read, where that is known beforehand."""
    path: Path | None = None
    """The file that it is read from, if it is one."""
    kept: bool = False
    """Whether a stream was kept, so that it can be read again."""


class Intake(msgspec.Struct, frozen=True):
    """What the user gave, opened: logs oldest first (the last is the newest) and configs, most trusted first.

    `folder` is the run's, where one was given or the log lies in one.
    """

    source: str
    logs: tuple[LogFile, ...]
    configs: tuple[ConfigText, ...] = ()
    folder: Path | None = None
    keep: Any = None
    """What must live as long as the logs are read (an unpacked archive)."""
    notices: tuple[Notice, ...] = ()
    """What of the input was left unread, and why."""
    files: tuple[Path, ...] = ()
    """The files of this machine that logs and configs are read from, or the archive that they came in."""

    @property
    def has_loss_log(self) -> bool:
        """Whether the run folder holds a loss database."""
        return self.folder is not None and os.path.isfile(os.path.join(self.folder, "loss_log.db"))  # noqa: PTH113, PTH118

    def skipped_steps(self) -> tuple[int, ...] | None:
        """What the run folder's database says of skipped steps; None when there is none, or it cannot be read."""
        if self.folder is None or not self.has_loss_log:
            return None
        from postmortem.intake import losslog

        return losslog.skipped_steps(self.folder)

    def witness(self) -> FolderWitness | None:
        """What the run folder holds of the run's results; None when there is none.

        An archive does not count: of that, only what an analysis reads is unpacked.
        """
        if self.folder is None or self.keep is not None:
            return None
        from postmortem.intake import outputs

        return outputs.witness(self.folder)

    def database(self, named: Path | None = None) -> JobDatabase | None:
        """The jobs of the UI's database: the one that the user named, else the toolkit's that the run lies in.

        Raises IntakeError when the one that was named cannot be read.
        """
        if named is None and self.folder is None:
            return None
        from postmortem.intake import jobdb

        if named is not None:
            return jobdb.read_named(named)
        found = jobdb.find(self.folder, climb=self.keep is None) if self.folder is not None else None
        return jobdb.read(found) if found is not None else None


def open_stream(
    stream: BinaryIO, source: str = "-", limits: packed.Limits | None = None, *, again: bool = False
) -> Intake:
    """A pipe: read once, front to back; an archive in it is unpacked first. To be read `again`, it is kept on disk."""
    head = _read_head(stream, source)
    if packed.is_archive(head):
        return _packed(stream, head, source, limits)
    _require_text(head, source)

    def raw() -> Iterator[bytes]:
        yield head
        while piece := stream.read(CHUNK):
            yield piece

    if again:
        from postmortem.intake.spool import Spool

        log = msgspec.structs.replace(_log(SINGLE, head, Spool(raw).chunks), kept=True)
        return Intake(source, (log,))
    return Intake(source, (_log(SINGLE, head, raw),))


def is_url(named: str) -> bool:
    """Whether `named` is ``scheme://…`` of something elsewhere, and no path."""
    return _URL.match(named) is not None


def open_input(named: str, limits: packed.Limits | None = None, *, again: bool = False) -> Intake:
    """What a user names: a path, or `scheme://…` of something elsewhere. Raises IntakeError as `open_path` does."""
    if is_url(named):
        from postmortem.intake import remote

        return remote.open_url(named, limits)
    return open_path(Path(named), limits, again=again)


def open_path(path: Path, limits: packed.Limits | None = None, *, again: bool = False) -> Intake:
    """A log file, a run folder with its logs and configs, or an archive of either.

    Raises IntakeError when there is nothing to read there.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise IntakeError(f"{_shown(path)}: {_reason(error)}") from None
    if stat.S_ISREG(mode):
        path = folders.run_of(path) or path
        mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        return _folder(path)
    if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and _SHELL_PIPE.match(str(path))):
        # any pipe but the shell's own could wait for a writer for ever
        hint = f"pipe it in (`{_cat(path)} | postmortem`)" if stat.S_ISFIFO(mode) else "give a log or a run folder"
        raise IntakeError(f"{_shown(path)}: neither a file nor a folder; {printable(hint)}")
    if stat.S_ISFIFO(mode):
        try:
            return open_stream(path.open("rb"), str(path), limits, again=again)
        except OSError as error:
            raise IntakeError(f"{_shown(path)}: {_reason(error)}") from None
    try:
        with reading(path) as file:
            head = some(file, packed.HEAD)
            if packed.is_archive(head):
                return msgspec.structs.replace(_packed(file, head, str(path), limits), files=(path,))
    except OSError as error:
        raise IntakeError(f"{_shown(path)}: {_reason(error)}") from None
    beside: tuple[Path, ...] = ()
    folder: Path | None = None
    if path.name in folders.LOG_NAMES:
        beside = folders.configs_in(path.parent)
        folder = path.parent if folders.is_run(path.parent) else None
    elif folders.OLD_LOG.fullmatch(path.name):
        beside = folders.configs_in(path.parent.parent)
    configs, notices = _configs(beside)
    return Intake(str(path), (_file(path, SINGLE),), configs, folder, notices=notices, files=(path, *beside))


def read_config(path: Path) -> ConfigText:
    """The text of a config file that the user named. Raises IntakeError when it cannot be read."""
    try:
        mode = path.stat().st_mode
        # a pipe only where the shell put it there (`--config <(command)`): any other could wait for ever
        if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and _SHELL_PIPE.match(str(path))):
            raise IntakeError(f"{_shown(path)}: not a file; give a job config (YAML or JSON)")
        with path.open("rb") if stat.S_ISFIFO(mode) else reading(path) as file:
            content = some(file, MAX_CONFIG_BYTES + 1)
    except OSError as error:
        raise IntakeError(f"{_shown(path)}: {_reason(error)}") from None
    if len(content) > MAX_CONFIG_BYTES:
        raise IntakeError(f"{_shown(path)}: larger than {MAX_CONFIG_BYTES} bytes; that is no job config")
    encoding = decode.sniff(content)
    return ConfigText(path.name, content.decode(encoding, "replace").removeprefix("\ufeff"))


def _folder(path: Path) -> Intake:
    try:
        found = folders.open_folder(path)
    except OSError as error:
        raise IntakeError(f"{_shown(path)}: {_reason(error)}") from None
    logs, unread = _logs(found)
    configs, notices = _configs(found.configs)
    for name, why in (*found.unread, *unread):
        notices = (*notices, Notice("folder_unread", None, {"file": LogText(name), "problem": LogText(why)}))
    if found.left_out:
        notices = (*notices, Notice("old_logs_left_out", None, {"count": found.left_out, "read": len(logs)}))
    if found.crowded:
        notices = (*notices, Notice("entries_left_out", None, {"read": folders.MAX_ENTRIES}))
    read = (*(file for _, file in found.logs), *found.configs)
    return Intake(str(path), logs, configs, found.path, notices=notices, files=read)


def _logs(found: folders.RunFolder) -> tuple[tuple[LogFile, ...], list[tuple[str, str]]]:
    """The logs of a run, and those that could not be read; without the newest one, which is asked about, no run."""
    logs: list[LogFile] = []
    unread: list[tuple[str, str]] = []
    for name, file in found.logs:
        try:
            logs.append(_file(file, name))
        except Unreadable as error:
            if name == found.logs[-1][0]:
                raise
            unread.append((name, error.why))
    return tuple(logs), unread


def _packed(stream: BinaryIO, head: bytes, source: str, limits: packed.Limits | None) -> Intake:
    """What an archive holds: one log, or a run folder, or one log among files that may be its config."""
    from postmortem.intake import archives

    name = printable_name(source)
    found = archives.unpack(stream, head, name, limits or packed.Limits())
    try:
        opened = _unpacked(found, name)
    except IntakeError as error:
        # the reader knows the archive, not the folder that we unpacked it into
        told = str(error).replace(str(found.folder) + os.sep, "").removeprefix(f"{name}: ")
        raise IntakeError(f"{name}: {told}") from None
    if found.weights:
        with_note = [msgspec.structs.replace(log, repairs=(*log.repairs, "archive_partial")) for log in opened.logs]
        opened = msgspec.structs.replace(opened, logs=tuple(with_note))
    if found.cut:
        logs_read = [msgspec.structs.replace(log, repairs=(*log.repairs, "archive_cut")) for log in opened.logs]
        opened = msgspec.structs.replace(opened, logs=tuple(logs_read))
    return msgspec.structs.replace(opened, source=source, keep=found, files=())


def _unpacked(found: archives.Unpacked, source: str) -> Intake:
    if found.single:
        return Intake(source, (_file(found.files[0], SINGLE),))
    runs = {file.parent for file in found.files if file.name in folders.LOG_NAMES}
    runs |= {file.parent.parent for file in found.files if folders.OLD_LOG.fullmatch(file.name)}
    if len(runs) == 1:
        return _folder(runs.pop())
    logs = [file for file in found.files if file.suffix in LOG_SUFFIXES or not file.suffix]
    if runs or len(logs) > 1:
        raise IntakeError("several logs in it; unpack it and give one run's folder or log")
    if not logs and found.nested:
        raise IntakeError(f"holds {printable_name(found.nested)}, an archive of its own; unpack the outer one first")
    if not logs:
        raise IntakeError("no log in it; give a log or a run folder")
    configs, notices = _beside(found.files)
    return Intake(source, (_file(logs[0], SINGLE),), configs, notices=notices)


def _beside(files: tuple[Path, ...]) -> tuple[tuple[ConfigText, ...], tuple[Notice, ...]]:
    """The job config that came with a log in one archive: under its usual name, or the only file that can be one."""
    named = [file for name in folders.CONFIG_NAMES for file in files if file.name == name]
    others = [file for file in files if file.suffix in (".yaml", ".yml", ".json")]
    return _configs(tuple(named or (others if len(others) == 1 else [])))


def _configs(files: tuple[Path, ...]) -> tuple[tuple[ConfigText, ...], tuple[Notice, ...]]:
    """The configs that can be read, and what is to be said of the others."""
    found: list[ConfigText] = []
    notices: list[Notice] = []
    for file in files:
        try:
            found.append(read_config(file))
        except IntakeError as error:
            why = LogText(str(error).removeprefix(f"{_shown(file)}: "))
            notices.append(Notice("config_damaged", None, {"file": LogText(file.name), "problem": why}))
    return tuple(found), tuple(notices)


def _file(path: Path, name: str) -> LogFile:
    try:
        with reading(path) as file:
            head = some(file, decode.HEAD)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise Unreadable(_shown(path), _reason(error)) from None
    _require_text(head, str(path))

    def raw() -> Iterator[bytes]:
        """The file as it was when it was opened first, and what was appended since; it may be read several times."""
        if size == len(head):
            yield head  # a small log is read once
            return
        read = 0
        with reading(path) as file:
            while piece := some(file, CHUNK if read else max(1, len(head))):
                if not read and piece != head:
                    raise OSError(errno.ESTALE, CHANGED)
                read += len(piece)
                if read > size + MAX_GROWN:
                    raise OSError(errno.EFBIG, "grows faster than it can be read; copy it first")
                yield piece
        if read < size:
            raise OSError(errno.ESTALE, CHANGED)

    return msgspec.structs.replace(_log(name, head, raw, size), path=path)


def _log(name: str, head: bytes, raw: Callable[[], Iterator[bytes]], size: int | None = None) -> LogFile:
    """A log whose bytes start with `head`: how its text is had from them shows there."""
    encoding = decode.sniff(head)
    start = b"".join(decode.to_utf8([head], encoding))
    records = jsonlines.is_json_lines(start)
    repairs = () if records else pastes.damage(start)

    def chunks(told: Callable[[int], None] | None = None) -> Iterator[bytes]:
        plain = decode.to_utf8(raw() if told is None else _counted(raw(), told), encoding)
        if records:
            return jsonlines.texts(plain)
        return pastes.undo(plain, repairs) if repairs else plain

    undone = tuple(repair.name for repair in repairs)
    repaired = (*undone, "code_page") if encoding in decode.CODE_PAGES else undone
    return LogFile(name, encoding, chunks, repaired, size)


def _counted(pieces: Iterator[bytes], told: Callable[[int], None]) -> Iterator[bytes]:
    for piece in pieces:
        told(len(piece))
        yield piece


def _read_head(stream: BinaryIO, source: str) -> bytes:
    head = b""
    try:
        while len(head) < decode.HEAD:
            piece = stream.read(decode.HEAD - len(head))
            if not piece:
                break
            head += piece
    except OSError as error:
        raise IntakeError(f"{source}: {_reason(error)}") from None
    return head


def _require_text(head: bytes, source: str) -> None:
    if not head.strip() and len(head) < decode.HEAD:
        raise IntakeError(
            f"{printable_name(source)}: empty; capture the run with `python run.py CONFIG 2>&1 | tee run.log`"
        )
    what = decode.what_binary(head)
    if what:
        raise IntakeError(f"{printable_name(source)}: {what}, not a log; give the text that the run printed")


def _cat(path: Path) -> str:
    """A command that a user may copy into a shell, whatever the file is called."""
    import shlex

    name = printable(str(path))[:300]
    return f"cat {shlex.quote(f'./{name}' if name.startswith('-') else name)}"


def printable_name(path: object) -> str:
    """A file name as one harmless line."""
    return named(os.fspath(path) if isinstance(path, Path) else str(path))


def _shown(path: Path) -> str:
    return printable_name(path)


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
