"""libyaml's parser, and PyYAML's own where it is missing: one result of either."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from postmortem.knowledge import yaml_loader
from postmortem.knowledge.yaml_loader import YamlProblem, load
from tests.attacks.configs import ATTACKS

ROOT = Path(__file__).parent.parent.parent
LARGE = 20_000
FILES = sorted([*(ROOT / "patterns").rglob("*.yaml"), *(ROOT / "fixtures").rglob("*.yaml")])
NASTY = {
    attack.name: text
    for attack in ATTACKS
    for name, text in attack.files.items()
    # only PyYAML's own takes half of a surrogate pair
    if name.endswith(".yaml") and isinstance(text, str) and len(text) < LARGE and "\\ud800" not in text
}
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | st.dates()
VALUES = st.recursive(
    LEAVES, lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4)
)

needs_libyaml = pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML was built without libyaml")


def by_both(text: str) -> tuple[Any, Any]:
    """What `load` gives with either parser (as text, in which a NaN is equal to itself); None where it refuses."""
    found: list[str | None] = []
    for base in (yaml.CSafeLoader, yaml.SafeLoader):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(yaml_loader, "_Base", base)
            try:
                found.append(repr(load(text)))
            except YamlProblem:
                found.append(None)
    return found[0], found[1]


@needs_libyaml
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_of_every_file_of_ours(file: Path) -> None:
    fast, plain = by_both(file.read_text("utf-8"))
    assert fast is not None
    assert fast == plain


@needs_libyaml
@pytest.mark.parametrize("name", NASTY)
def test_of_what_nobody_means(name: str) -> None:
    fast, plain = by_both(NASTY[name])
    assert fast == plain


@needs_libyaml
@given(VALUES, st.sampled_from([True, False, None]))
def test_of_any_values(value: Any, flow: bool | None) -> None:
    fast, plain = by_both(yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True))
    assert fast == plain


@pytest.mark.parametrize("base", ["SafeLoader", "CSafeLoader"])
@pytest.mark.parametrize("text", ["train: {steps: 3\0}\n", "a: \x07\n", "a: \ufffe\n"])
def test_characters_that_no_text_has_are_a_problem_of_the_text(
    monkeypatch: pytest.MonkeyPatch, base: str, text: str
) -> None:
    monkeypatch.setattr(yaml_loader, "_Base", getattr(yaml, base, yaml.SafeLoader))
    with pytest.raises(YamlProblem):
        load(text)
