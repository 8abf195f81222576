"""The entry point: a bare path or a pipe means `analyze`; every failure is one line and a documented status."""

from __future__ import annotations

import os
import sys

COMMANDS = ("analyze", "explain", "patterns", "schema")
"""Commands that exist; anything else in the first place is a path."""
_OWN_OPTIONS = ("--help", "-h", "--version", "--install-completion", "--show-completion")


def main() -> None:
    """Run the command line of this process and exit."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from postmortem import __version__

        sys.stdout.write(f"postmortem {__version__}\n")
        raise SystemExit(0)
    raise SystemExit(run(with_default(arguments, piped=not sys.stdin.isatty() if sys.stdin else False)))


def with_default(arguments: list[str], *, piped: bool) -> list[str]:
    """`arguments` with `analyze` put in front where the user left the command out."""
    if not arguments:
        return ["analyze", "-"] if piped else ["--help"]
    first = arguments[0]
    if first in COMMANDS or first in _OWN_OPTIONS:
        return arguments
    return ["analyze", *arguments]


def run(arguments: list[str]) -> int:
    """Run one command line and return the exit status."""
    from postmortem.cli.app import app
    from postmortem.cli.errors import Failure

    try:
        result = app(args=arguments, prog_name="postmortem", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except Failure as failure:
        sys.stderr.write(f"postmortem: {failure}\n")
        return failure.status
    except BrokenPipeError:
        # the reader has gone (| head): nothing is left to say, and closing stdout must not complain either
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        sys.stderr.write("postmortem: interrupted\n")
        return 130
    except Exception as error:  # the command line is where every error becomes one line
        return _usage_or_bug(error)


def _usage_or_bug(error: Exception) -> int:
    import click

    from postmortem.text import printable

    if isinstance(error, click.exceptions.Exit):
        return int(error.exit_code)
    if isinstance(error, click.exceptions.Abort):
        return 130
    if isinstance(error, click.ClickException):
        sys.stderr.write(f"postmortem: {printable(error.format_message())} (see `postmortem --help`)\n")
        return 2
    if os.environ.get("POSTMORTEM_DEBUG"):
        raise error
    sys.stderr.write(
        f"postmortem: internal error ({type(error).__name__}); please report it. POSTMORTEM_DEBUG=1 shows where.\n"
    )
    return 3
