"""Runs that end without a word: what is probable, what a code means, which check settles it."""

from __future__ import annotations

import pytest

from postmortem.diagnosis.codes import BY_CODE
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis
from tests.conftest import Analyse
from tests.simulate import config, head, training
from tests.timeline.test_attempts import SIZES

WINDOWS, LINUX, CONTAINER, WSL = "D:\\sets\\mugs", "/home/user/mugs", "/workspace/sets/mugs", "/mnt/c/sets/mugs"


def ended(run: Analyse, folder: str, last: str = "") -> Analysis:
    return run(head(config(datasets__folder_path=folder)) + training(400, [], until=30) + last)


def factors(analysis: Analysis) -> list[str]:
    return [item.id for item in analysis.diagnosis.factors]


@pytest.mark.parametrize(
    ("last", "meaning", "kind"),
    [
        ("Job process terminated with exit code 3221225477.\n", "access_violation", "unknown"),
        ("Process finished with exit code -1073740791 (0xC0000409)\n", "fail_fast", "unknown"),
        ("Job process terminated with exit code 3221225794.\n", "dll_init", "unknown"),
        ("Job process terminated with exit code 139.\n", "segfault", "unknown"),
        ("Job process terminated with signal SIGSEGV.\n", "segfault", "unknown"),
        ("Job process terminated with exit code 137.\n", "sigkill", "host_oom"),
        ("Job process terminated with signal SIGKILL.\n", "sigkill", "host_oom"),
        ("failed (exitcode: -9) local_rank: 0 (pid: 4711) of binary: /venv/bin/python\n", "sigkill", "host_oom"),
        ("Job process terminated with exit code 143.\n", "sigterm", "none"),
    ],
)
def test_codes_are_decoded_and_prove_no_more_than_they_say(run: Analyse, last: str, meaning: str, kind: str) -> None:
    found = ended(run, LINUX, last)
    assert (found.diagnosis.kind, f"exit_{meaning}") == (kind, next(w.id for w in found.warnings if "exit_" in w.id))
    assert kind == "none" or found.diagnosis.confidence != "high"


def test_a_save_that_is_over_is_not_what_the_run_died_in(run: Analyse) -> None:
    save = "\nSaving at step 30\nSaved checkpoint to /o/mugs/mugs_000000030.safetensors\n"
    assert "silent_saving" in factors(ended(run, LINUX, save))
    assert "silent_saving" not in factors(ended(run, LINUX, save + "Saved optimizer to /o/mugs/optimizer.pt\n"))


def test_every_meaning_has_its_words(knowledge: Knowledge) -> None:
    for lang in ("en", "ko"):
        assert {f"warning.exit_{meaning}" for meaning in BY_CODE.values()} <= set(knowledge.texts[lang])


@pytest.mark.parametrize(
    ("folder", "last", "checks"),
    [
        (WINDOWS, "", ("check_windows",)),
        (LINUX, "", ("check_linux",)),
        (CONTAINER, "", ("check_container",)),
        (WSL, "", ("check_wsl",)),
        (CONTAINER, "command terminated with exit code 137\n", ("check_kubernetes", "check_container")),
        ("mugs", "", ("how_it_ended",)),
        ("mugs", "Killed\n", ("kernel_log",)),
    ],
)
def test_only_the_checks_of_the_system_that_the_log_shows(
    run: Analyse, folder: str, last: str, checks: tuple[str, ...]
) -> None:
    assert tuple(item for item in ended(run, folder, last).diagnosis.missing if item != "sizes") == checks


def test_a_kernel_that_says_so_needs_no_guess(run: Analyse) -> None:
    found = ended(run, LINUX, "Out of memory: Killed process 4711 (python) total-vm:88329120kB, anon-rss:65011712kB\n")
    assert not [item for item in factors(found) if item.startswith("silent_")]
    assert not [item for item in found.diagnosis.missing if item.startswith("check_")]


def test_what_is_probable_follows_from_the_phase_and_the_settings(run: Analyse) -> None:
    plain = head(config(datasets__folder_path=LINUX))
    loading = run(plain[: plain.index("Loading VAE")])
    assert (loading.diagnosis.kind, loading.diagnosis.confidence) == ("unknown", "low")
    assert factors(loading)[0] == "silent_load"
    encoder = run(plain[: plain.index("Loading VAE")] + "Text Encoder\n")
    assert factors(encoder)[0] == "silent_text_encoder"
    kept = run(
        head(config(datasets__folder_path=LINUX, datasets__cache_latents_to_disk=False))
        + "Caching latents for /home/user/mugs\n - Keeping latents in memory\n"
    )
    assert factors(kept)[0] == "silent_caching"
    offload = run(head(config(model__layer_offloading=True)) + training(400, [], until=30))
    assert factors(offload)[0] == "silent_offload"


def test_growth_and_fragmentation_are_told_apart(run: Analyse) -> None:
    def failing(sizes: str) -> list[str]:
        settings = config(datasets__resolution=[1024])
        return factors(run(head(settings) + training(2000, [], until=900) + f"Error running job: {sizes}\n"))

    fragmented = (
        "CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 23.99 GiB of which 0.20 GiB is free. "
        "Of the allocated memory 15.00 GiB is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated."
    )
    assert "fragmented" in failing(fragmented)
    assert not {"grew", "grew_unseen"} & set(failing(fragmented))
    assert "fragmented" not in failing(SIZES)
