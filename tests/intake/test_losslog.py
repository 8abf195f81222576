"""The loss database as a second witness for skipped steps."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from postmortem.intake.losslog import skipped_steps
from postmortem.timeline import confirm
from tests.conftest import Analyse
from tests.simulate import BANNER, bar, config, finished, head, training


def database(folder: Path, skipped: set[int], total: int) -> None:
    with closing(sqlite3.connect(folder / "loss_log.db")) as file, file:
        file.execute("CREATE TABLE metrics (step INTEGER, key TEXT, value_real REAL, value_text TEXT)")
        for step in range(1, total):
            file.execute(
                "INSERT INTO metrics VALUES (?, 'learning_rate', ?, NULL)", (step, 0.0 if step in skipped else 1e-4)
            )
            if step not in skipped:
                file.execute("INSERT INTO metrics VALUES (?, 'loss/loss', 0.5, NULL)", (step,))


def test_steps_without_a_loss_were_skipped(tmp_path: Path) -> None:
    assert skipped_steps(tmp_path) is None
    database(tmp_path, {7, 8, 30}, 40)
    assert skipped_steps(tmp_path) == (7, 8, 30)


def test_what_is_no_database_is_no_witness(tmp_path: Path) -> None:
    (tmp_path / "loss_log.db").write_bytes(b"not a database" * 100)
    assert skipped_steps(tmp_path) is None


def test_agreement_is_noted(run: Analyse) -> None:
    attempt = run(head(config()) + training(40, {7, 8}) + finished()).attempt
    assert [notice.id for notice in confirm(attempt, (7, 8)).warnings] == ["loss_log_agrees"]
    assert [notice.id for notice in confirm(attempt, (7, 9)).warnings] == ["loss_log_differs"]


def test_steps_that_the_bar_cannot_place_come_from_the_database(run: Analyse) -> None:
    thinned = bar("mugs", 30, 40, 60, ", loss: 0.1").lstrip("\r") + "\n" + BANNER.format(1) + BANNER.format(1)
    attempt = run(head(config()) + thinned).attempt
    assert not attempt.skips_confirmed
    confirmed = confirm(attempt, (12, 25))
    assert [oom.step for oom in confirmed.ooms] == [12, 25]
    assert confirmed.skips_confirmed


def test_a_view_that_never_ends_is_no_witness(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "loss_log.db")) as file, file:
        file.execute(
            "CREATE VIEW metrics AS WITH RECURSIVE n(step) AS (SELECT 1 UNION ALL SELECT step + 1 FROM n) "
            "SELECT step, 'learning_rate' AS key, 0.0 AS value_real FROM n"
        )
    assert skipped_steps(tmp_path) is None
