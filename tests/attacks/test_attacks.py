"""Every hostile input ends in a report or in one clear line, with the status that is documented, as JSON and as text."""

from __future__ import annotations

import json
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from postmortem.cli.main import run
from tests.attacks.case import Attack, Content
from tests.fuzz.checks import MAX_JSON, check_line, check_lists, validator
from tests.hostile import acting
from tests.test_fixtures import at

CLASSES = (
    *("encodings", "acting", "floods", "nesting", "numbers"),
    *("configs", "archives", "beside", "truncated"),
)
ATTACKS = {
    f"{name}: {attack.name}".encode("ascii", "backslashreplace").decode(): attack
    for name in CLASSES
    for attack in import_module(f"tests.attacks.{name}").ATTACKS
}


def written(attack: Attack, folder: Path) -> list[str]:
    """The arguments, once the files lie there."""
    for name, content in attack.files.items():
        put(folder / name, content)
    return [
        argument.replace("{}", str(folder), 1) if argument.startswith("{}") else argument
        for argument in attack.arguments
    ]


def put(path: Path, content: Content) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        content(path)


def test_there_are_enough_and_each_has_its_name() -> None:
    counts = Counter(name.partition(":")[0] for name in ATTACKS)
    assert sum(counts.values()) == sum(len(import_module(f"tests.attacks.{name}").ATTACKS) for name in CLASSES)
    assert sum(counts.values()) >= 400
    assert min(counts.values()) >= 30


@pytest.mark.parametrize("name", ATTACKS)
def test_it_ends_well(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[name]
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    home = tmp_path / "given"
    home.mkdir()
    arguments = written(attack, home)
    before = sorted(path.name for path in home.iterdir())
    for form in ("json", "terminal"):
        status = run(["analyze", *arguments, "--format", form])
        out, err = capfd.readouterr()
        assert status == attack.status, err or out[:2000]
        assert not any(secret in out + err for secret in attack.hides)
        if status in (2, 3):
            assert out == ""
            assert err.endswith("\n")
            check_line(err.removesuffix("\n"))
            assert "internal error" not in err
            assert attack.tells in err
            continue
        assert acting(err) == []
        assert acting(out) == []
        if form == "json":
            check_json(attack, out)
    assert sorted(path.name for path in home.iterdir()) == before


def check_json(attack: Attack, out: str) -> None:
    assert len(out) < MAX_JSON
    value: Any = json.loads(out)
    validator().validate(value)
    check_lists(value)
    for path, wanted in attack.says.items():
        assert at(value, path) == wanted, path
    warned = [warning["id"] for warning in value["warnings"]]
    for wanted in attack.warns:
        assert wanted in warned, warned
