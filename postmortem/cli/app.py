"""The commands, one file each; this one only lists them."""

from __future__ import annotations

import typer

from postmortem.cli import analyze, explain, patterns, schema

app = typer.Typer(
    name="postmortem",
    help="Why an AI Toolkit training run died of memory, and what to change first.\n\n"
    "A bare path or a pipe means `analyze`: postmortem run.log · postmortem output/my_lora/ · … 2>&1 | postmortem",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit status: 0 no memory failure · 1 a memory failure was found · 2 bad usage · 3 unreadable or not a log.",
)
app.command("analyze")(analyze.analyze)
app.command("explain")(explain.explain)
app.command("schema")(schema.schema)
app.add_typer(patterns.app, name="patterns")


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")) -> None:
    if version:
        from postmortem import __version__

        typer.echo(f"postmortem {__version__}")
        raise typer.Exit(0)
