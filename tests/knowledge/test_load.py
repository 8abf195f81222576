"""Which folders of patterns are read at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.knowledge import kept
from postmortem.knowledge import load as loading
from postmortem.knowledge.load import KnowledgeError


def test_a_pack_of_too_many_files_or_bytes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str, most: int) -> str:
        with monkeypatch.context() as less:
            less.setattr(loading, name, most) if name != "MAX_ENTRIES" else less.setattr(kept, name, most)
            with pytest.raises(KnowledgeError) as raised:
                loading._listed(tmp_path)
        return str(raised.value).removeprefix(f"{tmp_path}: ")

    for number in range(4):
        (tmp_path / f"{number}.yaml").write_text("patterns: []\n")
    assert len(loading._listed(tmp_path)) == 4
    assert refused("MAX_FILES", 3) == "more than 3 files or 16000000 bytes; give a folder of patterns"
    assert refused("MAX_TOTAL", 51) == "more than 500 files or 51 bytes; give a folder of patterns"
    assert refused("MAX_ENTRIES", 3) == "more than 3 files and folders; give a folder of patterns"
