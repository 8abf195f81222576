"""The entry point: a bare path or a pipe means `analyze`; every failure is one line and a documented status."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from postmortem.faults import Fault

from postmortem import COLLECT_EVERY

_OF_A_WRITE = (errno.ENOSPC, errno.EROFS, errno.EDQUOT, errno.EFBIG)
_UNMAPPED = "failed to map segment"
"""What the system's loader says of a library for which there is no memory."""
_COMPLETION = "_POSTMORTEM_COMPLETE"
"""What asks Typer for a shell's completion, which we have none of: it would say so with a status that we document as
a failure that was found."""
_MAX_CHAIN = 20
_TOO_LITTLE = "not enough memory on this machine for this input"
_OWN_OPTIONS = ("--help", "-h", "--version")


def main() -> None:
    """Run the command line of this process and exit."""
    gc.set_threshold(COLLECT_EVERY)
    ours = signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    try:
        from postmortem.cli.output import prepare

        prepare()
        _end_cleanly()
        _start_no_threads()
        arguments = _without_debug(sys.argv[1:])
        if arguments == ["--version"]:
            raise SystemExit(version())
        raise SystemExit(run(with_default(arguments, piped=not sys.stdin.isatty() if sys.stdin else False)))
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except MemoryError:
        _say(_TOO_LITTLE)
        raise SystemExit(3) from None
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.freeze()  # the end of the process frees everything; nothing of it needs to be looked through once more


def _start_no_threads() -> None:
    """Let numpy load without the threads of its linear algebra, which nothing here uses: they double its start.

    Told to the process and its workers, but not to what copies `os.environ`: a hook of `watch` starts trainings.
    """
    threads = "OPENBLAS_NUM_THREADS"
    if threads not in os.environ:
        os.putenv(threads, "1")


def _end_cleanly() -> None:
    """A closed terminal and `kill` end us as Ctrl-C does: by way of all that takes half-written files away.

    A stream that was closed at the start is opened to nowhere: else the next file would get its number, and what some
    library tells stderr.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)

    def ended(number: int, frame: object) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        # who starts it with nohup wants it to outlive the terminal
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, ended)


def _without_debug(arguments: list[str]) -> list[str]:
    """`arguments` without `--debug`, which every command takes: each fault of ours is then told with its places."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    asked = "--debug" in arguments[:end]
    if asked or os.environ.get("POSTMORTEM_DEBUG"):
        from postmortem import faults

        faults.listener = _told
    return [word for at, word in enumerate(arguments) if at > end or word != "--debug"] if asked else arguments


def _told(fault: Fault) -> None:
    from postmortem.faults import lines

    for line in lines(fault):
        _say(line)


def version() -> int:
    """Print the version and return the exit status."""
    from postmortem import __version__
    from postmortem.cli.errors import Failure
    from postmortem.cli.output import write

    try:
        write(f"postmortem {__version__}\n", None)
    except Failure as failure:
        _say(str(failure))
        return failure.status
    except BrokenPipeError:
        _mute(1)
    return 0


def with_default(arguments: list[str], *, piped: bool) -> list[str]:
    """`arguments` with `analyze` put in front where the user left the command out."""
    if not arguments:
        return ["analyze", "-"] if piped else ["--help"]
    from postmortem.cli.app import COMMANDS

    first = arguments[0]
    if arguments == ["patterns"]:
        return ["patterns", "--help"]
    if first in COMMANDS or first in _OWN_OPTIONS:
        return arguments
    return ["analyze", *arguments]


def run(arguments: list[str]) -> int:
    """Run one command line and return the exit status."""
    from postmortem.cli.app import COMMANDS, build
    from postmortem.cli.errors import Failure

    try:
        _refuse_empty(arguments)
        os.environ.pop(_COMPLETION, None)
        app = build(arguments[0] if arguments[0] in COMMANDS else None)
        _interruptible()
        result = app(args=arguments, prog_name="postmortem", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except Failure as failure:
        _say(_in_language(str(failure), arguments))
        return failure.status
    except BrokenPipeError:
        _mute(1)  # the reader has gone (| head): nothing is left to say
        return 0
    except OSError as error:
        from postmortem.text import printable

        where = printable(str(error.filename or "output"))
        doing = "cannot write: " if error.filename is None or error.errno in _OF_A_WRITE else ""
        _say(_in_language(f"{where}: {doing}{(error.strerror or type(error).__name__).lower()}", arguments))
        _mute(1)
        return 3
    except KeyboardInterrupt:
        _say(_in_language("interrupted", arguments))
        return 130
    except Exception as error:  # the command line is where every error becomes one line
        return _usage_or_bug(error, arguments)


def _interruptible() -> None:
    """From here on Ctrl-C goes by way of all that cleans up; until then it ends the process at once."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _refuse_empty(arguments: list[str]) -> None:
    """Raises Failure where an argument is empty: as a path it would mean the folder that one happens to be in."""
    for at, word in enumerate(arguments):
        option = word.startswith("--") and word.find("=") == len(word) - 1
        if word and not option:
            continue
        before = word[:-1] if word else arguments[at - 1] if at and arguments[at - 1].startswith("-") else ""
        from postmortem.cli.errors import USAGE, Failure
        from postmortem.text import printable

        what = f"{printable(before)[:100]}: " if before.strip("-") else ""
        raise Failure(
            f"{what}an argument is empty, so there is no file name; is a variable of the shell not set?", USAGE
        )


def _in_language(line: str, arguments: list[str]) -> str:
    """A failure's line in the language that the command line asks for, as far as stderr has its letters."""
    try:
        from postmortem.cli import told

        lang = told.asked(arguments)
        if lang == told.ENGLISH:
            return line
        from postmortem.cli.output import tells_in
        from postmortem.knowledge.load import load
        from postmortem.report.glyphs import can_show

        said = told.translated(line, load(), lang)
        return said if can_show(said, tells_in()) else line
    except Exception:  # any: the line itself is what must be said
        return line


def _say(text: str) -> None:
    """One line on stderr. The status must stand also where nobody can read the line."""
    try:
        sys.stderr.write(f"postmortem: {text}\n")
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        _mute(2)


def _mute(descriptor: int) -> None:
    """Send what is left in a stream's buffer nowhere, so that closing it at exit cannot fail."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _unloadable(error: BaseException) -> bool:
    """Whether a library could not be loaded for lack of memory; another one may have wrapped what the system said."""
    seen: list[str] = []
    inner: BaseException | None = error
    while inner is not None and len(seen) < _MAX_CHAIN:
        seen.append(str(inner))
        inner = inner.__cause__ or inner.__context__
    return isinstance(error, ImportError) and any(_UNMAPPED in text for text in seen)


def _usage_or_bug(error: Exception, arguments: list[str]) -> int:
    """Typer's own errors are usage errors; anything else is a fault of ours, and said to be one."""
    import typer

    from postmortem.text import printable

    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort):  # what Typer makes of Ctrl-C
        _say("interrupted")
        return 130
    shown = getattr(error, "format_message", None)
    if callable(shown):
        _say(f"{printable(str(shown()))} (see `postmortem --help`)")
        return 2
    from postmortem import faults

    if isinstance(error, MemoryError) or _unloadable(error):
        _say(_in_language(_TOO_LITTLE, arguments))
        return 3
    fault = faults.noted(error, arguments[0] if arguments else "main")
    told = f"internal error ({fault.error}, fault {fault.code}); please report it. --debug shows where."
    _say(_in_language(told, arguments))
    return 3
