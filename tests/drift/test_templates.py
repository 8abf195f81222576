"""Expressions become templates, and templates the lines that they may print."""

from __future__ import annotations

import ast

import pytest

from postmortem.drift.templates import MAX_FILLINGS, Hole, fillings, lines, says_something, shown, templates


def texts(source: str) -> list[str]:
    return [shown(found) for found in templates(ast.parse(source, mode="eval").body)]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("'Model Loaded'", ["Model Loaded"]),
        ("f'Saving at step {self.step_num}'", ["Saving at step {step_num}"]),
        ("f\"{n} completed job{'' if n == 1 else 's'}\"", ["{n} completed job", "{n} completed jobs"]),
        ("'Saved to ' + path", ["Saved to {path}"]),
        ("'Found %d images in %s' % (n, path)", ["Found {…} images in {…}"]),
        ("'Found {} of {name:>4}'.format(n, name=x)", ["Found {…} of {name}"]),
        ("'#' * 3", ["###"]),
        ("'#' * 10 ** 9", ["###"]),
        ("'#' * 999999999", ["#" * 200]),
        ("a + b", ["{a b}"]),
        ("'done' if x else 'not done'", ["done", "not done"]),
    ],
)
def test_what_is_fixed_stays_and_what_varies_is_a_hole(source: str, result: list[str]) -> None:
    assert texts(source) == result


def test_a_template_is_cut_at_its_line_breaks() -> None:
    assert [shown(line) for line in lines(("\nLoading ", Hole("name"), "\n####\n"))] == [
        "",
        "Loading {name}",
        "####",
        "",
    ]


def test_decoration_and_bare_values_say_nothing() -> None:
    assert not says_something(("#### ", Hole("name"), " ####"))
    assert says_something(("Loading ", Hole("name")))


def test_holes_are_filled_by_their_format_and_by_their_name() -> None:
    first = next(fillings((Hole("loss", ".3e"), " of ", Hole("file_path"), " at ", Hole("num_steps"))))
    assert first == "1.234e-02 of /data/sets/a.safetensors at 12"


def test_fillings_are_bounded_and_differ() -> None:
    found = list(fillings(tuple(Hole("x") for _ in range(30))))
    assert len(found) == len(set(found)) <= MAX_FILLINGS
