"""Tickets that somebody changed, checksums and all, and that `verify` must not call the same."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from postmortem.bundle import pack, unpack
from postmortem.cli.main import run

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOG = FIXTURES / "early-step-checkpointing-off" / "log.txt"
READ = ("report.html", "report.md", "log-excerpt.txt", "config.yaml", "README.txt")
Files = dict[str, bytes]
Found = dict[str, Any]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Files]:
    """The files of an honest ticket of a log."""

    @cache
    def make(log: Path) -> Files:
        target = tmp_path_factory.mktemp("ticket") / "t.zip"
        assert run(["bundle", str(log), "-o", str(target)]) == 0
        return unpack(target.read_bytes())

    return lambda log: dict(make(log))


@pytest.fixture
def verified(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Found]:
    """What is said of files packed as a ticket, their checksums made right."""

    def check(files: Files, log: Path = LOG, change: Callable[[Any], object] = lambda manifest: None) -> Found:
        manifest = json.loads(files["manifest.json"])
        manifest["files"] = [item for item in manifest["files"] if item["name"] in files]
        for item in manifest["files"]:
            content = files[item["name"]]
            item.update(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())
        change(manifest)
        ticket = tmp_path / "forged.zip"
        ticket.write_bytes(pack({**files, "manifest.json": json.dumps(manifest).encode()}))
        capsys.readouterr()
        status = run(["verify", str(ticket), str(log), "--format", "json"])
        found: Found = json.loads(capsys.readouterr().out)
        assert status == (0 if found["verdict"] == "same" else 1)
        return found

    return check


def said(found: Found, which: str = "differs") -> dict[str, str]:
    return {item["path"]: item["why"] for item in found[which]}


def lines_changed(files: Files, change: Callable[[str], str], names: tuple[str, ...] = READ) -> int:
    """Each line of `names` changed; how many were."""
    count = 0
    for name in names:
        before = files[name].decode().split("\n")
        after = [change(line) for line in before]
        count += sum(one != other for one, other in zip(before, after, strict=True))
        files[name] = "\n".join(after).encode()
    return count


def test_how_a_ticket_is_forged(honest: Callable[[Path], Files], verified: Callable[..., Found]) -> None:
    assert verified(honest(LOG))["verdict"] == "same"


@pytest.mark.parametrize(
    ("part", "claim", "why"),
    [
        ("tool", {"version": "9.9.9"}, "other_version"),
        ("tool", {"patterns": "0" * 24}, "other_version"),
        ("beside", {"folder": True}, "needs_folder"),
        ("beside", {"loss_log": True}, "needs_loss_log"),
        ("beside", {"configs": ["c.yaml"] * 9}, "needs_config"),
        ("beside", {"datasets": ["images"]}, "needs_dataset"),
        ("beside", {"database": "aitk_db.db"}, "needs_database"),
    ],
)
def test_files_that_are_not_compared_are_not_the_same(
    part: str, claim: dict[str, Any], why: str, honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    files = honest(LOG)
    report = json.loads(files["report.json"])
    (report["tool"] if part == "tool" else report["input"]["beside"]).update(claim)
    files["report.json"] = json.dumps(report).encode()
    files["report.md"] = b"# FORGED\n"
    del files["README.txt"]
    found = verified(files, change=lambda manifest: manifest.update(tool=report["tool"]))
    assert found["verdict"] == "unproven", found["differs"]
    left = said(found, "unchecked")
    assert {name: left.get(name) for name in READ} == dict.fromkeys(READ, why)


@pytest.mark.parametrize("hide", [lambda line: "<a-1>" if line.strip() else line, lambda line: line + "<a-1>"])
def test_a_label_hides_no_line(
    hide: Callable[[str], str], honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    files = honest(LOG)
    assert lines_changed(files, hide) > 100
    found = verified(files)
    assert {path.partition(":")[0] for path in said(found)} == set(READ)


@pytest.mark.parametrize("name", READ)
def test_a_label_hides_no_word_of_ours(
    name: str, honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    files = honest(LOG)
    kind = re.search(rb"<([a-z]+)-1>", files["log-excerpt.txt"])
    assert kind is not None
    word = re.search(r"(?<=[ >])gradient_checkpointing|(?<=[ >])[a-z]{5,}(?= )", files[name].decode())
    assert word is not None
    files[name] = files[name].replace(word[0].encode(), kind[0], 1)
    found = said(verified(files))
    assert list(found.values()) == ["other_line"] and next(iter(found)).startswith(f"{name}:")


def test_nothing_stands_behind_a_cut(
    tmp_path: Path, honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    log = tmp_path / "long.log"
    log.write_bytes(LOG.read_bytes() + b"loading \xe2\x80\xa6\n" + b"x" * 3000 + b"\n")
    files = honest(log)
    assert verified(dict(files), log)["verdict"] == "same"
    script = "<a-1>" + "x" * 60 + "… <script>document.body.innerHTML=''</script>"
    assert lines_changed(files, lambda line: script if "…" in line else line, ("log-excerpt.txt",)) > 1
    found = said(verified(files, log))
    assert set(found.values()) == {"other_line"} and len(found) > 1


def test_the_policy_of_the_page_stays(honest: Callable[[Path], Files], verified: Callable[..., Found]) -> None:
    for new in ("<a-1>", "", '<meta http-equiv="Content-Security-Policy" content="<a-1>">'):
        files = honest(LOG)
        policy = lambda line, new=new: new if "Content-Security-Policy" in line else line  # noqa: E731
        assert lines_changed(files, policy, ("report.html",)) == 1
        assert set(said(verified(files)).values()) == {"other_line"}


def test_labels_tell_the_same_things_apart(
    tmp_path: Path, honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    log = tmp_path / "two.log"
    log.write_bytes(LOG.read_bytes() + b"cd /home/tamsin/x\ncd /home/oswald/x\n")
    files = honest(log)
    one, two = sorted(set(re.findall(rb"<user-\d+>", files["log-excerpt.txt"])))[:2]
    files["log-excerpt.txt"] = files["log-excerpt.txt"].replace(two, one)
    assert set(said(verified(files, log)).values()) == {"other_line"}
    # exchanged everywhere, they say the same
    swap = {one: two, two: one, one.replace(b"<", b"&lt;").replace(b">", b"&gt;"): b"&lt;" + two[1:-1] + b"&gt;"}
    swap[b"&lt;" + two[1:-1] + b"&gt;"] = b"&lt;" + one[1:-1] + b"&gt;"
    names = re.compile(b"|".join(re.escape(label) for label in swap))
    files = {name: names.sub(lambda found: swap[found[0]], content) for name, content in honest(log).items()}
    assert said(verified(files, log)) == {}


def test_no_word_is_hidden_that_the_sender_could_not_hide(
    honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    """What its input is called may hold labels, and so what the log shows in their place; nothing else may."""
    for source, word, label in (
        ("run.log", "Traceback", "<user-9>"),  # not a label of the source
        ("/home/<user-9>/run.log", "CUDA", "<user-9>"),  # a word that no redactor hides
        ("/data/<folder-9>/run.log", "torch_extension", "<folder-9>"),  # a kind that hides nothing elsewhere
    ):
        files = honest(LOG)
        report = json.loads(files["report.json"])
        report["input"]["source"] = source
        files["report.json"] = json.dumps(report).encode()
        files["log-excerpt.txt"] = re.sub(rb"\bCUDA\b|\bTraceback\b", label.encode(), files["log-excerpt.txt"])
        found = verified(files, change=lambda manifest, source=source: manifest.update(source=source))
        assert "other_line" in said(found).values(), word


def test_the_sender_numbered_his_own_name_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    home = tmp_path / "home" / "tamsin" / "runs"
    home.mkdir(parents=True)
    log = home / "run.log"
    log.write_bytes(
        LOG.read_bytes() + b"cd /home/oswald/a\ncd /home/tamsin/runs\nbye tamsin, oswald\n" + b"tamsin " * 400 + b"\n"
    )
    files = honest(log)
    assert b"tamsin" not in b"".join(files.values())
    elsewhere = tmp_path / "other.log"
    elsewhere.write_bytes(log.read_bytes())
    found = verified(files, elsewhere)
    assert (said(found), found["verdict"]) == ({}, "same")


def test_what_no_manifest_says_is_named(honest: Callable[[Path], Files], verified: Callable[..., Found]) -> None:
    def note(manifest: Any) -> None:
        manifest["note"] = "verified by the vendor"
        manifest["logs"][0]["seen_by"] = "the vendor"
        manifest["files"][0]["safe"] = True

    found = verified(honest(LOG), change=note)
    places = ("note", "logs[0].seen_by", "files[0].safe")
    assert said(found) == {f"manifest.json:{place}": "unknown_key" for place in places}
    found = verified(honest(LOG), change=lambda manifest: manifest.update(manifest_version="9", note="x"))
    assert found["verdict"] == "unproven"
    assert set(said(found, "unchecked")) == {"manifest.json:manifest_version", "manifest.json:note"}


def test_a_log_of_the_manifest_that_was_not_given_is_named(
    honest: Callable[[Path], Files], verified: Callable[..., Found]
) -> None:
    def invented(manifest: Any) -> None:
        other = {**manifest["logs"][0], "name": "x", "reported": False, "text_sha256": "f" * 64}
        manifest["logs"].append(other)

    found = verified(honest(LOG), change=invented)
    assert (found["verdict"], said(found, "unchecked")) == ("unproven", {"manifest.json:logs[1]": "log_not_given"})
    folder = FIXTURES / "folder-second-attempt-skips"
    assert verified(honest(folder), folder)["verdict"] == "same"


def test_what_the_file_of_a_log_was_is_checked(honest: Callable[[Path], Files], verified: Callable[..., Found]) -> None:
    for changed in ({"file_sha256": "0" * 64}, {"file_bytes": 1}, {"file_sha256": None}):
        found = verified(honest(LOG), change=lambda manifest, changed=changed: manifest["logs"][0].update(changed))
        assert found["verdict"] == "unproven"
        assert said(found, "unchecked") == {"manifest.json:logs[0].file_sha256": "other_file"}
    found = verified(honest(LOG), change=lambda manifest: manifest["logs"][0].update(text_bytes=1))
    assert said(found) == {"manifest.json:logs[0].text_bytes": "other_value"}


def test_no_key_hides_among_what_is_no_claim(honest: Callable[[Path], Files], verified: Callable[..., Found]) -> None:
    for path in (("tool",), ("input", "options"), ("input", "beside")):
        files = honest(LOG)
        report = at = json.loads(files["report.json"])
        for key in path:
            at = at[key]
        at["note"] = "verified by the vendor"
        files["report.json"] = json.dumps(report).encode()
        told = {"tool": report["tool"], "options": report["input"]["options"]}
        found = said(verified(files, change=lambda manifest, told=told: manifest.update(told)))
        assert found == {".".join((*path, "note")): "not_in_log"}
