"""What of a run is safe: by its folder, else by the log's word."""

from __future__ import annotations

from typing import Any

import pytest

from postmortem.model import Attempt, Checkpoint, FolderWitness, JobConfig, Kept, Value
from postmortem.text import LogText
from postmortem.timeline import kept
from tests.conftest import Analyse
from tests.simulate import config, finished, head, training


def checkpoint(step: int | None, state: str = "whole", job: str = "mugs", final: bool = False) -> Checkpoint:
    number = f"_{step:09d}" if step is not None and not final else ""
    return Checkpoint(LogText(job), LogText(f"{job}{number}.safetensors"), step, final or step is None, state)


def folder(*checkpoints: Checkpoint, **more: Any) -> FolderWitness:
    return FolderWitness(LogText("a copy"), checkpoints, **{"optimizer": "whole", **more})


def saved(step: int) -> str:
    return f"\nSaving at step {step}\nSaved checkpoint to /x/output/mugs/mugs_{step:09d}.safetensors\n"


@pytest.fixture(scope="session")
def failed(run: Analyse) -> Attempt:
    """Aborts at step 23 of 400, with a save at 20."""
    return run(
        head(config(save__save_every=20))
        + training(400, set(), until=20)
        + saved(20)
        + training(400, {20, 21, 22, 23}, start=20)
    ).attempt


@pytest.fixture(scope="session")
def early(run: Analyse) -> Attempt:
    """Aborts at step 8, before any save."""
    return run(head(config()) + training(400, {5, 6, 7, 8})).attempt


def judge(
    attempt: Attempt, witness: FolderWitness | None, phase: str = "training_step", **settings: Any
) -> tuple[Kept, list[str]]:
    values = {path.replace("__", "."): Value(value, "log") for path, value in settings.items()}
    found, notices = kept(attempt, witness, JobConfig(values, ("log",)), phase)
    return found, [notice.id for notice in notices]


def test_without_a_folder_the_log_has_the_word(failed: Attempt, early: Attempt) -> None:
    assert judge(failed, None) == (Kept(20, LogText("mugs_000000020.safetensors"), "log"), [])
    assert judge(early, None) == (Kept(), [])


def test_the_latest_whole_checkpoint_is_safe(failed: Attempt) -> None:
    found, notices = judge(failed, folder(checkpoint(10), checkpoint(20)))
    assert (found.step, found.source, notices) == (20, "folder", [])
    assert found.checkpoint == LogText("mugs_000000020.safetensors")


@pytest.mark.parametrize("state", ["torn", "empty"])
def test_a_damaged_checkpoint_is_never_safe(failed: Attempt, state: str) -> None:
    found, notices = judge(failed, folder(checkpoint(10), checkpoint(20, state)))
    assert (found.step, notices) == (10, [f"checkpoint_{state}"])
    found, notices = judge(failed, folder(checkpoint(20, state)))
    assert (found, notices) == (Kept(), [f"checkpoint_{state}"])


def test_what_was_not_looked_at_is_not_called_safe(failed: Attempt) -> None:
    assert judge(failed, folder(checkpoint(20, "unchecked")))[0] == Kept()


def test_a_folder_without_what_the_log_tells_of_is_no_proof_of_loss(failed: Attempt) -> None:
    assert judge(failed, folder(optimizer=None), save__save_every=20) == (Kept(), ["checkpoint_missing"])


def test_a_completed_run_without_its_weights_is_no_matter(run: Analyse) -> None:
    done = run(head(config()) + training(400, set()) + finished()).attempt
    assert judge(done, folder(optimizer=None)) == (Kept(), [])


def test_nothing_saved_is_said_only_where_it_is_sure(early: Attempt, failed: Attempt) -> None:
    bare = folder(optimizer=None)
    assert judge(early, bare, save__save_every=250) == (Kept(source="nothing"), [])
    assert judge(early, bare) == (Kept(), [])  # how often it saves is not known
    assert judge(early, bare, save__save_every=5) == (Kept(), [])  # it must have saved: the folder is a copy
    assert judge(early, folder(), save__save_every=250) == (Kept(), [])  # an optimiser's state comes with a save
    full = folder(optimizer=None, whole=False)
    assert judge(early, full, save__save_every=250) == (Kept(), ["folder_too_full"])


def test_a_resume_that_died_has_what_it_resumed_from(run: Analyse) -> None:
    start = "#### IMPORTANT RESUMING FROM /x/output/mugs/mugs_000000250.safetensors ####\n"
    start += "Found step 250 in metadata, starting from there\n"
    attempt = run(head(config()) + start + training(400, {255, 256, 257, 258}, start=250)).attempt
    assert judge(attempt, None)[0] == Kept(250, LogText("mugs_000000250.safetensors"), "log")
    assert judge(attempt, folder(optimizer=None), save__save_every=1000)[0] == Kept()


def test_other_weights_in_the_folder_count_for_nothing(failed: Attempt) -> None:
    other = [checkpoint(900, job="cups"), checkpoint(900, "torn", job="cups"), checkpoint(None, job="vae")]
    assert judge(failed, folder(checkpoint(20), *other)) == judge(failed, folder(checkpoint(20)))


def test_an_adapter_beside_the_job_is_its_checkpoint(failed: Attempt) -> None:
    assert judge(failed, folder(checkpoint(20, job="mugs_LoRA")))[0].step == 20


def test_the_final_one_counts_when_the_run_came_to_its_end(run: Analyse, failed: Attempt) -> None:
    done = run(head(config()) + training(400, set()) + finished()).attempt
    final = checkpoint(None)
    assert judge(done, folder(checkpoint(250), final))[0] == Kept(None, LogText("mugs.safetensors"), "folder")
    # of an earlier run that came to its end at an unknown step: the numbered one says more
    assert judge(failed, folder(checkpoint(20), final))[0].step == 20
    assert judge(failed, folder(checkpoint(10), checkpoint(20, final=True)))[0].step == 20


def test_a_checkpoint_beyond_the_log_is_noted(failed: Attempt) -> None:
    found, notices = judge(failed, folder(checkpoint(20), checkpoint(300)))
    assert (found.step, notices) == (300, ["checkpoint_ahead"])


@pytest.mark.parametrize(
    ("state", "notice"), [(None, "optimizer_missing"), ("torn", "optimizer_torn"), ("empty", "optimizer_torn")]
)
def test_a_checkpoint_without_its_optimiser_is_noted(failed: Attempt, state: str | None, notice: str) -> None:
    assert judge(failed, folder(checkpoint(20), optimizer=state))[1] == [notice]


def test_a_preview_that_was_not_finished_is_noted(failed: Attempt) -> None:
    witness = folder(checkpoint(20), preview_step=20, preview_images=1)
    prompts = [{"prompt": "a"}, {"prompt": "b"}]
    assert judge(failed, witness, "mid_sampling", sample__samples=prompts)[1] == ["preview_unfinished"]
    assert judge(failed, witness, "mid_sampling", sample__samples=prompts[:1])[1] == []
    assert judge(failed, witness, "mid_sampling")[1] == []
    assert judge(failed, witness, "training_step", sample__samples=prompts)[1] == []
