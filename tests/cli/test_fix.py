"""`postmortem fix` as a shell sees it: the diff, the files, the statuses, what people read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from postmortem.cli.main import run
from postmortem.patch.job import as_json, as_yaml, from_dump
from tests.simulate import config, finished, head, training
from tests.timeline.test_attempts import SIZES

Shell = Callable[..., tuple[int, str, str]]
SETTINGS = config(train__gradient_checkpointing=False, train__batch_size=4)
FAILING = head(SETTINGS) + training(400, {0, 1, 2, 3})
FILE = "# mine: 항구\n" + as_yaml(from_dump(SETTINGS, "mugs")).replace(
    "gradient_checkpointing: false", "gradient_checkpointing: false  # fast"
)
FIXED = FILE.replace("gradient_checkpointing: false", "gradient_checkpointing: true")


@pytest.fixture
def shell(capfdbinary: pytest.CaptureFixture[bytes]) -> Shell:
    """Runs `postmortem fix …` and gives status, stdout and stderr."""

    def call(*arguments: object) -> tuple[int, str, str]:
        status = run(["fix", *map(str, arguments)])
        out, err = capfdbinary.readouterr()
        return status, out.decode(), err.decode()

    return call


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run folder as AI Toolkit's UI leaves it."""
    made = tmp_path / "mugs"
    made.mkdir()
    (made / "log.txt").write_text(FAILING, encoding="utf-8", newline="")
    (made / "config.yaml").write_text(FILE, encoding="utf-8", newline="")
    (made / ".job_config.json").write_text(as_json(from_dump(SETTINGS, "mugs")), encoding="utf-8", newline="")
    return made


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="")
    return path


def test_the_diff_is_the_one_line(folder: Path, shell: Shell) -> None:
    status, out, err = shell(folder)
    assert status == 0
    changed = [line for line in out.splitlines()[2:] if line[0] in "+-"]
    assert changed == [
        "-      gradient_checkpointing: false  # fast",
        "+      gradient_checkpointing: true  # fast",
    ]
    assert "train.gradient_checkpointing: false → true" in err
    assert "Show Advanced" in err
    assert "anew at each start" in err
    assert "Change nothing else" in err
    assert all(line.startswith("postmortem: ") for line in err.splitlines())


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@pytest.mark.parametrize("text", [FILE, FILE.removesuffix("\n"), FILE.replace("\n", "\r\n")])
def test_patch_takes_the_diff(folder: Path, shell: Shell, text: str) -> None:
    path = write(folder / "config.yaml", text)
    _, out, _ = shell(folder)
    subprocess.run(["patch", "--binary", "-p0", str(path)], input=out.encode(), check=True, capture_output=True)
    assert path.read_bytes() == text.replace("checkpointing: false", "checkpointing: true").encode()


def test_in_place_keeps_every_byte_else_and_every_backup(folder: Path, shell: Shell) -> None:
    path = folder / "config.yaml"
    path.chmod(0o640)
    for number in ("", "1"):
        path.write_bytes(b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode())
        assert shell(folder, "--in-place")[:2] == (0, "")
        assert path.read_bytes() == b"\xef\xbb\xbf" + FIXED.replace("\n", "\r\n").encode()
        backup = folder / f"config.yaml.bak{number}"
        assert backup.read_bytes() == b"\xef\xbb\xbf" + FILE.replace("\n", "\r\n").encode()
        assert backup.stat().st_mode & 0o777 == path.stat().st_mode & 0o777 == 0o640
    status, out, err = shell(folder, "--in-place")
    assert (status, out) == (0, "")
    assert "already so" in err
    assert "differs" not in err
    assert not (folder / "config.yaml.bak2").exists()


def test_in_place_follows_a_link(folder: Path, tmp_path: Path, shell: Shell) -> None:
    real = write(tmp_path / "real.yaml", FILE)
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    assert shell(folder / "log.txt", "--config", link, "--in-place")[0] == 0
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == FIXED
    assert (tmp_path / "real.yaml.bak").read_text(encoding="utf-8") == FILE


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp949"])
def test_an_encoding_stays(folder: Path, shell: Shell, encoding: str) -> None:
    path = folder / "config.yaml"
    text, fixed = (words.replace("항구", "항구에 있는 배와 바다") for words in (FILE, FIXED))
    path.write_bytes(text.encode(encoding))
    assert shell(folder, "--in-place")[0] == 0
    assert path.read_bytes() == fixed.encode(encoding)


def test_output_is_the_whole_file_and_never_an_input(folder: Path, tmp_path: Path, shell: Shell) -> None:
    target = tmp_path / "new.yaml"
    assert shell(folder, "-o", target)[:2] == (0, "")
    assert target.read_text(encoding="utf-8") == FIXED
    alias = tmp_path / "alias.yaml"
    alias.symlink_to(folder / "config.yaml")
    for name in (folder / "config.yaml", folder / "log.txt", folder / ".job_config.json", alias):
        status, out, err = shell(folder, "-o", name)
        assert (status, out) == (2, "")
        assert "is an input" in err
    assert (folder / "config.yaml").read_text(encoding="utf-8") == FILE
    assert sorted(entry.name for entry in folder.iterdir()) == [".job_config.json", "config.yaml", "log.txt"]


def test_json_is_the_form_of_the_ui(folder: Path, tmp_path: Path, shell: Shell) -> None:
    target = tmp_path / "new.json"
    wanted = as_json(from_dump(config(train__gradient_checkpointing=True, train__batch_size=4), "mugs"))
    _, _, err = shell(folder, "--json", "-o", target)
    assert target.read_text(encoding="utf-8") == wanted
    assert "anew at each start" in err
    (folder / ".job_config.json").unlink()
    shell(folder, "--json", "-o", target)
    assert target.read_text(encoding="utf-8") == wanted
    status, _, err = shell(folder, "--json", "--in-place")
    assert status == 2
    assert "--in-place" in err


def test_a_log_alone_gives_a_whole_job(tmp_path: Path, shell: Shell) -> None:
    log = write(tmp_path / "run.log", FAILING)
    target = tmp_path / "new.yaml"
    status, out, err = shell(log, "-o", target)
    assert (status, out) == (0, "")
    from postmortem.patch import load

    wanted = from_dump(config(train__gradient_checkpointing=True, train__batch_size=4), "mugs")
    assert load(target.read_text(encoding="utf-8")) == wanted
    assert "made from the config in the log" in err
    _, out, _ = shell(log)
    assert [line for line in out.splitlines()[2:] if line[0] in "+-"] == [
        "-      gradient_checkpointing: false",
        "+      gradient_checkpointing: true",
    ]
    assert shell(log, "--in-place")[0] == 2


def test_half_a_character_in_a_log_is_an_escape_in_the_job(tmp_path: Path, shell: Shell) -> None:
    log = write(tmp_path / "run.log", FAILING.replace('"batch_size": 4', '"batch_size": 4, "odd": "\\ud800 항구"'))
    target = tmp_path / "new.json"
    status, _, err = shell(log, "--json", "-o", target)
    assert (status, "internal" in err) == (0, False)
    (process,) = json.loads(target.read_text(encoding="utf-8"))["config"]["process"]
    assert process["train"]["odd"] == "\ud800 항구"


def test_a_job_whose_name_the_log_lacks_says_so(tmp_path: Path, shell: Shell) -> None:
    dump = json.dumps(SETTINGS, indent=4)
    log = write(tmp_path / "run.log", f"Running 1 job\n{dump}\nLoading ZImage model\nError running job: {SIZES}\n")
    status, _, err = shell(log)
    assert status == 0
    assert "config.name" in err
    target = tmp_path / "new.yaml"
    shell(log, "-o", target)
    assert "  name: unnamed\n" in target.read_text(encoding="utf-8")


def test_only_and_ladder(folder: Path, shell: Shell) -> None:
    def changed(*arguments: object) -> list[str]:
        return [line for line in shell(folder, *arguments)[1].splitlines()[2:] if line[0] == "+"]

    assert changed("--only", "reduce_batch_size") == ["+      batch_size: 2"]
    ladder = changed("--ladder", 3)
    assert sorted(ladder) == [
        "+      batch_size: 2",
        "+      gradient_accumulation: 2",
        "+      gradient_checkpointing: true  # fast",
    ]
    assert "3 fixes at once" in shell(folder, "--ladder", 3)[2]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "nonsense"], "no such fix"),
        (["--only", "disable_ema"], "not offered for this run"),
        (["--only", "reduce_batch_size", "--ladder", "2"], "exclude each other"),
        (["-o", "x", "--in-place"], "exclude each other"),
        (["--ladder", "0"], "ladder"),
        (["--lang", "xx"], "no such language"),
    ],
)
def test_bad_usage_is_status_2(folder: Path, shell: Shell, arguments: list[str], says: str) -> None:
    status, out, err = shell(folder, *arguments)
    assert (status, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_no_memory_failure_is_no_diff(tmp_path: Path, shell: Shell) -> None:
    log = write(tmp_path / "run.log", head(config()) + training(40, []) + finished())
    status, out, err = shell(log)
    assert (status, out, err.count("\n")) == (0, "", 1)
    assert "no memory failure" in err


def test_a_fix_outside_the_config_offers_the_next_one(tmp_path: Path, shell: Shell) -> None:
    crowded = SIZES.replace("Including", "Process 4410 has 20.00 GiB memory in use. Including").replace(
        "30.68 GiB", "10.68 GiB"
    )
    log = write(tmp_path / "run.log", head(config(model__low_vram=False)) + f"Error running job: {crowded}\n")
    status, out, err = shell(log)
    assert (status, out) == (0, "")
    assert "nvidia-smi" in err
    assert "--only enable_low_vram" in err
    assert "+      low_vram: true" in shell(log, "--only", "enable_low_vram")[1]


def test_without_any_config_one_line_says_how_to_give_it(tmp_path: Path, shell: Shell) -> None:
    log = write(tmp_path / "run.log", "Generating baseline samples before training\n" + f"Error running job: {SIZES}\n")
    status, out, err = shell(log)
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "--config FILE" in err
    given = write(tmp_path / "job.yaml", FILE)
    status, _, err = shell(log, "--config", given)
    assert status == 0
    assert "anew" not in err


def test_a_file_that_changed_since_is_edited_and_said_to_differ(folder: Path, shell: Shell) -> None:
    write(folder / "config.yaml", FILE.replace("steps: 400", "steps: 500").replace("batch_size: 4", "batch_size: 16"))
    _, out, err = shell(folder, "--only", "reduce_batch_size")
    assert "+      batch_size: 2" in out
    assert "differs from what ran" in err
    assert "train.batch_size: 16, ran with 4" in err


def test_the_file_of_another_job_is_pointed_out(folder: Path, shell: Shell) -> None:
    write(folder / "config.yaml", FILE.replace("name: mugs", "name: plates"))
    assert "is of the job plates, the log of mugs" in shell(folder)[2]


def test_what_cannot_be_edited_is_one_line_and_status_3(folder: Path, shell: Shell) -> None:
    process: dict[str, Any] = {**SETTINGS, "datasets": [{"folder_path": "/elsewhere"}]}
    two = {"job": "extension", "config": {"name": "mugs", "process": [process, process]}}
    path = write(folder / "config.yaml", as_yaml(two))
    before = path.read_bytes()
    status, out, err = shell(folder, "--in-place")
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "2 processes" in err
    assert path.read_bytes() == before


def test_of_two_processes_in_the_log_none_is_guessed(tmp_path: Path, shell: Shell) -> None:
    first = json.dumps({**config(train__batch_size=8), "type": "custom_job"}, indent=4)
    log = write(tmp_path / "run.log", FAILING.replace("Running 1 job\n", f"Running 1 job\n{first}\n"))
    status, out, err = shell(log)
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "2 processes" in err
    again = write(tmp_path / "appended.log", FAILING + FAILING)
    assert shell(again)[0] == 0


def test_korean(folder: Path, shell: Shell) -> None:
    _, _, err = shell(folder, "--lang", "ko")
    assert "다른 설정은 바꾸지 마세요" in err
    assert "Change" not in err


def test_an_archive_gives_a_diff_but_is_not_changed(folder: Path, tmp_path: Path, shell: Shell) -> None:
    archive = tmp_path / "mugs.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for entry in sorted(folder.iterdir()):
            packed.write(entry, f"mugs/{entry.name}")
    status, out, _ = shell(archive)
    assert status == 0
    assert "+      gradient_checkpointing: true  # fast" in out
    assert out.startswith("--- config.yaml\n")
    assert shell(archive, "--in-place")[0] == 2


def test_nothing_in_a_config_acts_on_a_terminal(tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    evil = {**SETTINGS, "train": {**SETTINGS["train"], "note": "\x9b31m\u202eabc"}}
    log = write(tmp_path / "run.log", FAILING)
    given = write(tmp_path / "job.json", as_json(from_dump(evil, "mugs")))
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "postmortem", "fix", str(log), "--config", str(given)],
        stdout=theirs,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    os.close(theirs)
    shown = b""
    try:
        while piece := os.read(ours, 65536):
            shown += piece
    except OSError:
        pass
    os.close(ours)
    text = shown.decode()
    assert done.returncode == 0
    assert '"gradient_checkpointing": true' in text
    assert '"note": "abc"' in text
    assert not set(text) & {"\x9b", "\x1b", "\u202e"}


def test_a_job_with_more_datasets_than_are_known_is_not_half_fixed(tmp_path: Path, shell: Shell) -> None:
    many = {**SETTINGS, "datasets": [{"folder_path": f"/d/{n}", "resolution": [512, 1024]} for n in range(201)]}
    log = write(tmp_path / "run.log", head(many) + training(400, {0, 1, 2, 3}))
    status, out, err = shell(log)
    assert (status, out) == (3, "")
    assert "201 datasets" in err
