"""Sources are read within limits, and nothing outside of the checkout is."""

from __future__ import annotations

from pathlib import Path

import pytest

from postmortem.drift import checkout
from postmortem.drift.checkout import CheckoutError, read
from tests.drift.checkout import write


def test_sources_are_read_in_path_order(tmp_path: Path) -> None:
    write(tmp_path, jobs__a="print('Loading A')\n", **{"readme.md": "x", "ui__options.tsx": "y"})
    assert [file.path for file in read(tmp_path).files] == [
        "jobs/a.py",
        "run.py",
        "toolkit/config_modules.py",
        "ui/options.tsx",
    ]


@pytest.mark.parametrize("name", ["missing", "file", "empty"])
def test_what_is_no_checkout_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckoutError):
        read(tmp_path / name)


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.py").write_text("print('Secret wording')")
    root = write(tmp_path / "aitk")
    (root / "toolkit" / "link.py").symlink_to(secret / "key.py")
    (root / "linked").symlink_to(secret, target_is_directory=True)
    found = read(root)
    assert "Secret wording" not in "".join(file.text for file in found.files)
    assert found.passed_over == ("toolkit/link.py: a link, or no plain file",)


def test_a_file_too_large_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "MAX_FILE_BYTES", 1000)
    write(tmp_path, jobs__big="#" * 1001)
    found = read(tmp_path)
    assert found.passed_over == ("jobs/big.py: larger than 1000 bytes",)
    assert "jobs/big.py" not in [file.path for file in found.files]


def test_too_many_files_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "MAX_FILES", 2)
    write(tmp_path, jobs__a="", jobs__b="", jobs__c="")
    found = read(tmp_path)
    assert len(found.files) == 2
    assert "too many files" in found.passed_over[0]
