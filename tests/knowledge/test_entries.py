"""Files of patterns that are not valid are refused, with the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.knowledge.load import KnowledgeError, load


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("patterns:\n- id: x\n", "missing required field"),
        ("patterns:\n- {id: x, role: oom, regex: y, source: z, examples: {match: [y]}, colour: red}\n", "colour"),
        ("paterns: []\n", "expected a list under"),
        ("patterns: [\n", "pack.yaml:"),
        ("patterns: !!python/object:os.system []\n", "pack.yaml:1"),
        ("a: 1\na: 2\n", "twice"),
    ],
)
def test_a_pack_that_is_not_valid_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "pack.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(KnowledgeError, match=says):
        load(tmp_path, cache=False)
