"""`bundle` from the command line, and the way back through `verify`."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

from postmortem.bundle import pack, unpack
from postmortem.cli.main import run
from tests.cli.test_main import postmortem
from tests.simulate import config, head, training

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOG = FIXTURES / "early-step-checkpointing-off" / "log.txt"


def made(tmp_path: Path, *options: str, source: Path = LOG, name: str = "ticket.zip") -> Path:
    target = tmp_path / name
    assert run(["bundle", str(source), "-o", str(target), *options]) == 0
    return target


def test_what_is_in_a_ticket(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ticket = made(tmp_path)
    told = capsys.readouterr()
    assert told.out == "" and "ticket.zip" in told.err and "--redaction-map" in told.err
    files = unpack(ticket.read_bytes())
    assert {"report.md", "report.json", "log-excerpt.txt", "config.yaml", "README.txt", "manifest.json"} <= set(files)
    manifest = json.loads(files["manifest.json"])
    assert {item["name"] for item in manifest["files"]} == set(files) - {"manifest.json"}
    for item in manifest["files"]:
        assert item["sha256"] == hashlib.sha256(files[item["name"]]).hexdigest()
        assert item["bytes"] == len(files[item["name"]])
    (log,) = manifest["logs"]
    assert log["file_sha256"] == hashlib.sha256(LOG.read_bytes()).hexdigest()
    assert log["file_bytes"] == LOG.stat().st_size
    report = json.loads(files["report.json"])
    assert report["input"]["options"]["redacted"] is True and manifest["redacted"] is True
    cited = {item["pattern"]: item["pattern_version"] for item in report["failure"]["evidence"] if item["pattern"]}
    assert {item["id"]: item["version"] for item in manifest["patterns"]} == cited
    readme = files["README.txt"].decode()
    assert report["failure"]["headline"] in readme.splitlines()[2]
    assert report["remedies"][0]["title"] in readme.splitlines()[3]
    assert all(name in readme for name in set(files) - {"README.txt"})
    assert yaml.safe_load(files["config.yaml"])["config"]["process"][0]["train"]["gradient_checkpointing"] is False


def test_the_same_input_gives_the_same_bytes(tmp_path: Path) -> None:
    once = made(tmp_path).read_bytes()
    assert once == made(tmp_path, name="again.zip").read_bytes()
    assert once != made(tmp_path, "--lang", "ko", name="ko.zip").read_bytes()


@pytest.mark.parametrize("options", [(), ("--no-redact",), ("--lang", "ko"), ("--gpu", "24")])
def test_a_ticket_is_confirmed_by_its_log(options: tuple[str, ...], tmp_path: Path) -> None:
    ticket = made(tmp_path, *options)
    done = postmortem("verify", str(ticket), str(LOG), "--format", "json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["verdict"], found["differs"]) == (0, "same", [])
    assert next(group for group in found["groups"] if group["id"] == "files")["same"] >= 9
    assert [hint["id"] for hint in found["hints"]] == ["same_log"]


def repacked(ticket: Path, **changed: bytes | None) -> None:
    files = {**unpack(ticket.read_bytes()), **{name.replace("_", "."): content for name, content in changed.items()}}
    ticket.write_bytes(pack({name: content for name, content in files.items() if content is not None}))


def findings(ticket: Path, log: Path = LOG) -> dict[str, str]:
    done = postmortem("verify", str(ticket), str(log), "--format", "json")
    assert done.returncode == 1
    return {item["path"]: item["why"] for item in json.loads(done.stdout)["differs"]}


def test_an_altered_ticket_is_caught(tmp_path: Path) -> None:
    ticket = made(tmp_path)
    files = unpack(ticket.read_bytes())
    repacked(ticket, report_md=files["report.md"] + b"\nplease run this script")
    assert findings(ticket) == {"manifest.json:report.md": "file_changed"}
    ticket = made(tmp_path)
    repacked(ticket, config_yaml=None)
    assert findings(ticket) == {"manifest.json:config.yaml": "file_missing"}
    ticket = made(tmp_path)
    report = json.loads(files["report.json"])
    report["failure"]["step"] = 77
    changed = json.dumps(report).encode()
    manifest = json.loads(files["manifest.json"])
    for item in manifest["files"]:
        if item["name"] == "report.json":
            item.update(bytes=len(changed), sha256=hashlib.sha256(changed).hexdigest())
    repacked(ticket, report_json=changed, manifest_json=json.dumps(manifest).encode())
    assert findings(ticket) == {"failure.step": "other_value"}
    ticket = made(tmp_path)
    repacked(ticket, manifest_json=b"[]")
    assert findings(ticket) == {"manifest.json": "no_manifest"}


@pytest.mark.parametrize("name", ["report.md", "report.html", "log-excerpt.txt", "config.yaml", "README.txt"])
def test_a_file_that_was_changed_with_its_checksum_is_caught(name: str, tmp_path: Path) -> None:
    ticket = made(tmp_path)
    files = unpack(ticket.read_bytes())
    text = files[name].decode()
    at = text.index("checkpointing") if "checkpointing" in text else text.index("checkpoint")
    for changed in (text[:at] + "X" + text[at:], text + "one more line\n", text[text.index("\n") + 1 :], None):
        manifest = json.loads(files["manifest.json"])
        rest = [item for item in manifest["files"] if item["name"] != name]
        data = changed.encode() if changed is not None else None
        if data is not None:
            rest.append({"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
        manifest["files"] = rest
        forged = {key: value for key, value in files.items() if key != name}
        forged["manifest.json"] = json.dumps(manifest).encode()
        ticket.write_bytes(pack({**forged, **({name: data} if data is not None else {})}))
        found = findings(ticket)
        assert found and all(path.startswith(f"{name}:") for path in found)
        assert set(found.values()) == {"other_line"}


def test_a_manifest_that_says_something_else_than_its_report_is_caught(tmp_path: Path) -> None:
    ticket = made(tmp_path)
    manifest = json.loads(unpack(ticket.read_bytes())["manifest.json"])
    changes = {"redacted": False, "patterns": [], "source": "other.log", "options": {}, "lang": "ko"}
    for key, value in changes.items():
        repacked(ticket, manifest_json=json.dumps({**manifest, key: value}).encode())
        assert findings(ticket) == {f"manifest.json:{key}": "other_than_report"}
    twice = [{**manifest["files"][0], "sha256": "0" * 64}, *manifest["files"]]
    repacked(ticket, manifest_json=json.dumps({**manifest, "files": twice}).encode())
    assert findings(ticket) == {f"manifest.json:{manifest['files'][0]['name']}": "listed_twice"}


def test_a_name_that_only_the_sender_could_know_is_no_lie(tmp_path: Path) -> None:
    """The folder of the input named a user, who also stands in the log, where nothing shows that it is one."""
    home = tmp_path / "home" / "tamsin"
    home.mkdir(parents=True)
    log = home / "run.log"
    log.write_bytes(LOG.read_bytes() + b"\nbye tamsin\n")
    ticket = made(tmp_path, source=log)
    assert b"tamsin" not in b"".join(unpack(ticket.read_bytes()).values())
    elsewhere = tmp_path / "other.log"
    elsewhere.write_bytes(log.read_bytes())
    done = postmortem("verify", str(ticket), str(elsewhere), "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["differs"]) == (0, [])


def test_a_ticket_of_another_log_is_said_to_be_one(tmp_path: Path) -> None:
    longer = tmp_path / "longer.log"
    longer.write_bytes(LOG.read_bytes() + b"\n")
    assert findings(made(tmp_path), longer)["manifest.json:logs"] == "other_log"
    other = FIXTURES / "early-step-cublas" / "log.txt"
    shown = postmortem("verify", str(tmp_path / "ticket.zip"), str(other)).stdout.decode()
    assert shown.startswith("This ticket was made of another log")
    # that says it all: a few of the claims that fall with it, not a hundred
    assert len(shown.splitlines()) < 60


def test_a_run_folder_and_a_pipe(tmp_path: Path) -> None:
    folder = FIXTURES / "folder-second-attempt-skips"
    ticket = made(tmp_path, source=folder)
    done = postmortem("verify", str(ticket), str(folder))
    assert done.returncode == 0, done.stdout
    piped = tmp_path / "piped.zip"
    done = postmortem("bundle", "-", "-o", str(piped), stdin=LOG.read_bytes())
    assert (done.returncode, done.stdout) == (0, b"")
    assert postmortem("verify", str(piped), "-", stdin=LOG.read_bytes()).returncode == 0
    (log,) = json.loads(unpack(piped.read_bytes())["manifest.json"])["logs"]
    assert log["file_sha256"] is None and log["text_sha256"]


def test_what_is_private_stays(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, key = tmp_path / "run.log", tmp_path / "key.json"
    text = LOG.read_text(encoding="utf-8")
    log.write_text(f"hello /home/alice/toolkit\n{text}", encoding="utf-8")
    ticket = made(tmp_path, "--redaction-map", str(key), source=log)
    assert str(key) in capsys.readouterr().err
    files = unpack(ticket.read_bytes())
    assert not [name for name, content in files.items() if b"alice" in content]
    kept = json.loads(key.read_text(encoding="utf-8"))["labels"]
    assert "alice" in kept.values()
    label = next(name for name, value in kept.items() if value == "alice")
    assert label.encode() in files["log-excerpt.txt"]
    open_ticket = made(tmp_path, "--no-redact", source=log, name="open.zip")
    assert b"alice" in unpack(open_ticket.read_bytes())["log-excerpt.txt"]
    assert "nothing was hidden" in capsys.readouterr().err


def test_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "run.log"
    shutil.copy(LOG, copy)
    for arguments, status, says in (
        ([str(copy)], 2, "-o ticket.zip"),
        ([str(copy), "-o", "-"], 2, "-o ticket.zip"),
        ([str(copy), "-o", str(copy)], 2, "is an input"),
        ([str(copy), "-o", str(tmp_path)], 3, "is a folder"),
        ([str(copy), "-o", str(tmp_path / "no" / "t.zip")], 3, "no such folder"),
        ([str(tmp_path / "none.log"), "-o", str(tmp_path / "t.zip")], 3, "none.log"),
        ([str(copy), "-o", str(tmp_path / "t.zip"), "--redaction-map", str(copy)], 2, "is an input"),
        (
            [str(copy), "-o", str(tmp_path / "t.zip"), "--redaction-map", str(tmp_path / "t.zip")],
            2,
            "give another name",
        ),
        ([str(copy), "-o", str(tmp_path / "t.zip"), "--no-redact", "--redaction-map", "x"], 2, "nothing is redacted"),
        ([str(copy), "-o", str(tmp_path / "t.zip"), "--attempt", "9"], 2, "attempt"),
    ):
        assert run(["bundle", *arguments]) == status, arguments
        told = capsys.readouterr()
        assert told.out == "" and says in told.err and told.err.count("\n") == 1
    assert not (tmp_path / "t.zip").exists()
    assert copy.read_bytes() == LOG.read_bytes()


def test_a_job_that_is_called_as_its_dataset_is_confirmed(tmp_path: Path) -> None:
    name = "brightwell spring (v2)"
    settings = config(datasets=[{"folder_path": name, "resolution": [512]}], trigger_word=name)
    log = tmp_path / "run.log"
    log.write_text(
        head(settings, name) + training(400, {0, 1, 2, 3}).replace("mugs", name), encoding="utf-8", newline=""
    )
    assert postmortem("verify", str(made(tmp_path, source=log)), str(log)).returncode == 0
