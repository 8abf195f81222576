"""Checkpoints by their headers, previews by their names."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from postmortem.intake import outputs
from postmortem.model import Checkpoint, FolderWitness


def weights(path: Path, *, values: int = 16, step: int | None = None, cut: int = 0, more: int = 0) -> Path:
    """A safetensors file of one tensor, `cut` bytes short or with `more` bytes behind it."""
    header: dict[str, object] = {"w": {"dtype": "F32", "shape": [values], "data_offsets": [0, 4 * values]}}
    if step is not None:
        header["__metadata__"] = {"training_info": json.dumps({"step": step, "epoch": 1})}
    head = json.dumps(header).encode()
    whole = len(head).to_bytes(8, "little") + head + bytes(4 * values + more)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(whole[: len(whole) - cut])
    return path


def look(folder: Path) -> FolderWitness:
    found = outputs.witness(folder)
    assert found is not None
    return found


def told(folder: Path) -> list[tuple[str, int | None, str]]:
    return [(item.name.reveal(), item.step, item.state) for item in look(folder).checkpoints]


def test_checkpoints_come_by_step_with_the_final_one_last(tmp_path: Path) -> None:
    for name in ("mugs_000001000", "mugs_000000250", "mugs"):
        weights(tmp_path / f"{name}.safetensors")
    assert told(tmp_path) == [
        ("mugs_000000250.safetensors", 250, "whole"),
        ("mugs_000001000.safetensors", 1000, "whole"),
        ("mugs.safetensors", None, "whole"),
    ]
    assert [item.final for item in look(tmp_path).checkpoints] == [False, False, True]
    assert {item.job.reveal() for item in look(tmp_path).checkpoints} == {"mugs"}


def test_the_final_ones_step_is_in_its_header(tmp_path: Path) -> None:
    weights(tmp_path / "mugs.safetensors", step=3000)
    assert told(tmp_path) == [("mugs.safetensors", 3000, "whole")]


@pytest.mark.parametrize(
    ("content", "state"),
    [
        (b"", "empty"),
        (b"\x08", "torn"),
        (b"\xff" * 8 + b"{}", "torn"),
        (b"\x02\0\0\0\0\0\0\0{}", "whole"),
        (b"\x02\0\0\0\0\0\0\0[]", "torn"),
        (b"\x02\0\0\0\0\0\0\0\xff\xff", "torn"),
        (b"\x14\0\0\0\0\0\0\0" + b'{"w":{"x":[[[[[[1]]]]' + b"0" * 10, "torn"),
    ],
)
def test_damage_is_seen_in_the_header(tmp_path: Path, content: bytes, state: str) -> None:
    (tmp_path / "mugs_000000250.safetensors").write_bytes(content)
    assert told(tmp_path) == [("mugs_000000250.safetensors", 250, state)]


@pytest.mark.parametrize(("cut", "more"), [(1, 0), (64, 0), (70, 0), (0, 1)])
def test_a_size_that_the_header_does_not_tell_is_torn(tmp_path: Path, cut: int, more: int) -> None:
    weights(tmp_path / "mugs_000000250.safetensors", cut=cut, more=more)
    assert told(tmp_path)[0][2] == "torn"


def test_a_header_of_deep_nesting_is_torn(tmp_path: Path) -> None:
    head = b'{"w":' + b"[" * 200_000
    (tmp_path / "mugs_000000250.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
    assert told(tmp_path)[0][2] == "torn"


def test_a_header_too_large_to_read_is_not_judged(tmp_path: Path) -> None:
    path = tmp_path / "mugs_000000250.safetensors"
    with path.open("wb") as file:
        file.write((outputs.MAX_HEADER + 1).to_bytes(8, "little"))
        file.truncate(outputs.MAX_HEADER + 100)
    assert told(tmp_path)[0][2] == "unchecked"


def test_a_size_of_endless_digits_is_torn_at_once(tmp_path: Path) -> None:
    head = b'{"w":{"data_offsets":[0,' + b"9" * 3_000_000 + b"]}}"
    (tmp_path / "mugs_000000250.safetensors").write_bytes(len(head).to_bytes(8, "little") + head)
    assert told(tmp_path)[0][2] == "torn"


def test_all_headers_together_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (250, 500):
        weights(tmp_path / f"mugs_{step:09d}.safetensors")
    monkeypatch.setattr(outputs, "MAX_HEADERS", 100)
    assert [state for _, _, state in told(tmp_path)] == ["unchecked", "whole"]


def test_one_in_two_files_is_as_good_as_the_worse(tmp_path: Path) -> None:
    weights(tmp_path / "mugs_000000250_high_noise.safetensors")
    weights(tmp_path / "mugs_000000250_low_noise.safetensors", cut=3)
    assert told(tmp_path) == [("mugs_000000250_high_noise.safetensors", 250, "torn")]


def test_a_folder_of_weights_is_a_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "mugs_000000500"
    part = weights(folder / "transformer" / "diffusion_pytorch_model.safetensors")
    assert told(tmp_path) == []  # without AI Toolkit's note it is some other folder
    (folder / "aitk_meta.yaml").write_text("name: mugs")
    assert told(tmp_path) == [("mugs_000000500", 500, "whole")]
    weights(part, cut=1)
    assert told(tmp_path) == [("mugs_000000500", 500, "torn")]
    part.unlink()
    assert told(tmp_path) == [("mugs_000000500", 500, "torn")]


def test_links_out_of_the_folder_are_no_checkpoints(tmp_path: Path) -> None:
    other = weights(tmp_path / "other" / "w.safetensors")
    run = tmp_path / "mugs"
    run.mkdir()
    (run / "mugs_000000250.safetensors").symlink_to(other)
    (run / "samples").symlink_to(tmp_path / "other")
    (run / "optimizer.pt").symlink_to(other)
    assert look(run) == FolderWitness(look(run).name)


def test_the_optimiser_is_whole_when_its_archive_has_an_end(tmp_path: Path) -> None:
    assert look(tmp_path).optimizer is None
    path = tmp_path / "optimizer.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("optimizer/data.pkl", b"x" * 1000)
    assert look(tmp_path).optimizer == "whole"
    path.write_bytes(path.read_bytes()[:500])
    assert look(tmp_path).optimizer == "torn"
    path.write_bytes(b"")
    assert look(tmp_path).optimizer == "empty"


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp", "mp4", "wav"])
def test_the_last_preview_and_its_finished_images(tmp_path: Path, suffix: str) -> None:
    samples = tmp_path / "samples"
    (samples / ".thumbs").mkdir(parents=True)
    for stamp, step, index, size in (
        (1000, 0, 0, 9),
        (2000, 0, 1, 9),
        (3000, 250, 0, 9),
        (4000, 250, 1, 9),
        (5000, 250, 2, 0),
    ):
        (samples / f"{stamp}__{step:09d}_{index}.{suffix}").write_bytes(b"x" * size)
    (samples / f"9999__000000500_0.{suffix}.tmp").write_bytes(b"x")
    found = look(tmp_path)
    assert (found.preview_step, found.preview_images) == (250, 2)


def test_an_earlier_preview_of_the_same_step_is_not_counted(tmp_path: Path) -> None:
    samples = tmp_path / "samples"
    samples.mkdir()
    for stamp, index in ((1000, 0), (2000, 1), (3000, 2), (9000, 0)):
        (samples / f"{stamp}__000000250_{index}.jpg").write_bytes(b"x")
    assert look(tmp_path).preview_images == 1


def test_of_a_folder_too_full_nothing_is_called_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_ENTRIES", 50)
    (tmp_path / "samples").mkdir()
    for index in range(60):
        (tmp_path / "samples" / f"{index}__000000250_{index}.jpg").write_bytes(b"x")
    found = look(tmp_path)
    assert (found.preview_step, found.whole) == (None, False)


def test_only_the_latest_headers_are_read(tmp_path: Path) -> None:
    for step in range(outputs.MAX_CHECKED + 3):
        weights(tmp_path / f"mugs_{step:09d}.safetensors")
    states = [item.state for item in look(tmp_path).checkpoints]
    assert states == ["unchecked"] * 3 + ["whole"] * outputs.MAX_CHECKED


def test_a_folder_that_cannot_be_listed_is_no_witness(tmp_path: Path) -> None:
    assert outputs.witness(tmp_path / "none") is None


def test_the_witness_is_the_same_in_whatever_order_files_were_made(tmp_path: Path) -> None:
    names = ["mugs_000000250.safetensors", "mugs_000000500.safetensors", "mugs.safetensors"]
    found: list[tuple[Checkpoint, ...]] = []
    for index, order in enumerate((names, names[::-1])):
        for name in order:
            weights(tmp_path / str(index) / name)
        found.append(look(tmp_path / str(index)).checkpoints)
    assert found[0] == found[1]


def test_many_other_weights_do_not_hide_the_runs_own(tmp_path: Path) -> None:
    run = tmp_path / "mugs"
    weights(run / "mugs_000000250.safetensors")
    for index in range(60):
        weights(run / f"other_{index}.safetensors")
        weights(run / f"cups_{index + 900:09d}.safetensors")
    assert [state for name, _, state in told(run) if name.startswith("mugs")] == ["whole"]
