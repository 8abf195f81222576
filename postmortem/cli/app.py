"""The commands, one file each; this one only lists them, and loads the one that is asked for."""

from __future__ import annotations

from importlib import import_module

import typer

COMMANDS = {
    "analyze": "Say why a run died, and what to change first.",
    "batch": "Say which of many runs died of what; which fix saves most.",
    "bundle": "Make a ticket of a run: one zip without your names.",
    "check": "Say before a run whether it fits, and what is risky in it.",
    "compare": "Say what changed between attempts, and what that proves.",
    "explain": "Explain one failure class, remedy, topic or pattern.",
    "fix": "Give the job config with the first fix applied.",
    "patterns": "The knowledge base: list it, test it, find what it lacks.",
    "schema": "Print the JSON Schema of a command's JSON.",
    "verify": "Say whether a log says what a report or ticket claims.",
    "watch": "Follow a training folder; write a report for each failure.",
}
"""Each is a module of this package: a function of that name, or a Typer app called `app`; in a few words, so that the
help need not load them all."""

_HELP = """Why an AI Toolkit training run died of memory, and what to change first.

A bare path or a pipe means `analyze`: postmortem run.log, postmortem output/my_lora/,
... 2>&1 | postmortem (or | postmortem --tee, to watch the run)"""


def _version(wanted: bool) -> None:
    if wanted:
        from postmortem.cli.main import version

        raise typer.Exit(version())


def build(wanted: str | None) -> typer.Typer:
    """The command line with the one command `wanted`, or a list of all of them (for the help)."""
    app = typer.Typer(
        name="postmortem",
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # panels would take longer to load than a report takes to make
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit status: 0 no memory failure, 1 memory failure found, 2 bad usage, 3 unreadable or not a log. "
        "--debug, with any command: where a fault of postmortem itself happened.",
    )
    app.callback()(_root)
    if wanted is None:
        for name, short in COMMANDS.items():
            app.command(name, help=short)(_listed)
        return app
    module = import_module(f"postmortem.cli.{wanted}")
    if hasattr(module, "app"):
        app.add_typer(module.app, name=wanted)
    else:
        app.command(wanted)(getattr(module, wanted))
    return app


def _listed() -> None:
    """Stands in for a command in the help: none is run from there."""


def _root(
    version: bool = typer.Option(False, "--version", is_eager=True, callback=_version, help="Print the version."),
) -> None:
    """Also here so that a single command keeps its name."""
