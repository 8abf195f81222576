"""What a source says: calls, bars, raised messages, arch names, config keys."""

from __future__ import annotations

import ast

import pytest

from postmortem.drift.keys import UNKNOWN, config_keys
from postmortem.drift.templates import shown
from postmortem.drift.wordings import listed_archs, parse, script_strings, wordings


def said(source: str, path: str = "toolkit/a.py") -> list[tuple[str, int, str]]:
    return [(item.kind, item.line, shown(item.template)) for item in wordings(path, ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("print('Loading', name)", [("print", 1, "Loading {name}")]),
        ("self.print(f'Caching {n}')", [("print", 1, "Caching {n}")]),
        ("self.print_and_status_update('Loading VAE')", [("print", 1, "Loading VAE")]),
        ("x = 1\nprint_acc('one\\ntwo')", [("print", 2, "one"), ("print", 2, "two")]),
        ("logger.warning('Low memory')", [("log", 1, "Low memory")]),
        ("for f in tqdm(files, desc='Caching latents'): pass", [("bar", 1, "Caching latents")]),
        ("tqdm(files)", []),
        ("bar.set_description('Sampling')", [("bar", 1, "Sampling")]),
        ("raise ValueError(f'no {x} found')", [("raise", 1, "no {x} found")]),
        ("assert x, 'x is needed'", [("raise", 1, "x is needed")]),
        ("class M(Base):\n    arch = 'mageflow'", [("arch", 2, "mageflow")]),
        ("ModelArch = Literal['sd1', 'flux']", [("arch", 1, "sd1"), ("arch", 1, "flux")]),
        ("print('####')", []),
        ("print(value)", []),
    ],
)
def test_calls_and_names_are_found(source: str, result: list[tuple[str, int, str]]) -> None:
    assert said(source) == result


def test_a_variable_set_once_stands_for_its_value_and_one_set_twice_does_not() -> None:
    assert said("def f():\n    text = 'Loading ' + name\n    print(text)") == [("print", 3, "Loading {name}")]
    assert said("def f():\n    text = 'one'\n    text = 'two'\n    print(text)") == []


def test_variables_that_double_and_endless_lines_stay_cheap() -> None:
    doubling = "\n".join(f"v{n} = f'{{v{n + 1}}}{{v{n + 1}}}'" for n in range(60))
    (item,) = wordings("a.py", ast.parse(f"{doubling}\nprint(f'All {{v0}}')"))
    assert shown(item.template) == "All {v0}"
    (long,) = wordings("a.py", ast.parse("print(f'All " + "{x}" * 5000 + "')"))
    assert len(long.template) == 200


def test_a_script_part_counts_in_scripts_only() -> None:
    source = "if __name__ == '__main__':\n    print('Loading demo')"
    assert said(source, "toolkit/a.py") == []
    assert said(source, "run.py") == [("print", 2, "Loading demo")]


def test_what_is_no_python_says_why() -> None:
    assert parse("def (:") == "not Python of this interpreter (line 1)"
    assert isinstance(parse("(" * 100_000 + ")" * 100_000), str)


def test_config_keys_have_their_first_default() -> None:
    source = (
        "class TrainConfig:\n  def __init__(self, **kwargs):\n    self.a = kwargs.get('a', 1)\n"
        "    self.b = kwargs.get('b', self.a)\n    self.c = kwargs.pop('c')\n    self.d = kwargs.get('a', 2)\n"
        "    self.e = other.get('e', 3)\n"
    )
    found = [(key.owner, key.key, key.default, key.line) for key in config_keys(ast.parse(source))]
    assert found == [("TrainConfig", "a", 1, 3), ("TrainConfig", "b", UNKNOWN, 4), ("TrainConfig", "c", None, 5)]


def test_the_ui_lists_archs_without_their_tags() -> None:
    text = "const other = [\n    name: 'no',\n];\nexport const modelArchs = [\n    name: 'zimage:turbo',\n"
    assert [(item.line, shown(item.template)) for item in listed_archs("options.ts", text)] == [(5, "zimage")]


def test_strings_of_the_launcher_vary_where_they_insert() -> None:
    (item,) = script_strings("ui/cron/a.ts", "  const m = `Job process ended with ${code}.`;")
    assert (item.line, shown(item.template)) == (1, "Job process ended with {code}.")
