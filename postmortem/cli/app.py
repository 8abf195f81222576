"""The commands, one file each; this one only lists them, and loads the one that is asked for."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = (
    *("analyze", "batch", "bundle", "check", "compare", "explain", "fix", "patterns", "schema", "verify", "watch"),
)
"""Each is a module of this package: a function of that name, or a Typer app called `app`."""

_HELP = """Why an AI Toolkit training run died of memory, and what to change first.

A bare path or a pipe means `analyze`: postmortem run.log, postmortem output/my_lora/,
... 2>&1 | postmortem (or | postmortem --tee, to watch the run)"""


def _version(wanted: bool) -> None:
    if wanted:
        from postmortem.cli.main import version

        raise typer.Exit(version())


def build(wanted: str | None) -> typer.Typer:
    """The command line with the one command `wanted`, or with all of them (for the help)."""
    app = typer.Typer(
        name="postmortem",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # panels would take longer to load than a report takes to make
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit status: 0 no memory failure, 1 memory failure found, 2 bad usage, 3 unreadable or not a log.",
    )
    for name in COMMANDS if wanted is None else (wanted,):
        module = import_module(f"postmortem.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    app.callback()(_root)
    return app


def _root(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=_version, help="Print the version."),
) -> None:
    """Also here so that a single command keeps its name."""
