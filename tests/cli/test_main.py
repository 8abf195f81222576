"""The command line as a shell sees it: statuses, streams, files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from postmortem.cli.app import COMMANDS
from postmortem.cli.main import with_default
from tests.intake.test_jobdb import database
from tests.simulate import config, finished, head, training

FAILING = head(config()) + training(400, {0, 1, 2, 3})
FINE = head(config()) + training(40, []) + finished()


def postmortem(*arguments: str, stdin: bytes | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "postmortem", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        env={**os.environ, **environment},
        timeout=60,
        check=False,
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(FAILING, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("arguments", "piped", "result"),
    [
        (["run.log"], False, ["analyze", "run.log"]),
        ([], True, ["analyze", "-"]),
        ([], False, ["--help"]),
        (["--format", "json"], True, ["analyze", "--format", "json"]),
        (["explain", "early_step"], True, ["explain", "early_step"]),
        (["--help"], True, ["--help"]),
    ],
)
def test_analyze_is_what_a_bare_path_or_a_pipe_means(arguments: list[str], piped: bool, result: list[str]) -> None:
    assert with_default(arguments, piped=piped) == result


def test_file_and_pipe_give_the_same_report(log: Path) -> None:
    by_path = postmortem(str(log), "--format", "json")
    by_pipe = postmortem("--format", "json", stdin=log.read_bytes())
    assert by_path.returncode == by_pipe.returncode == 1
    one, other = json.loads(by_path.stdout), json.loads(by_pipe.stdout)
    assert one["input"].pop("source") == str(log)
    assert other["input"].pop("source") == "-"
    assert one == other
    assert by_path.stderr == by_pipe.stderr == b""


def test_status_0_when_nothing_failed_and_with_exit_zero(log: Path) -> None:
    assert postmortem("-", "--format", "json", stdin=FINE.encode()).returncode == 0
    assert postmortem(str(log), "--exit-zero").returncode == 0


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", b"empty"),
        (b"   \n\n", b"empty"),
        (bytes(range(256)) * 40, b"binary"),
        (b"PK\x03\x04" + b"x" * 100, b"unpacked"),
        (b"dear diary, nothing happened today\n" * 5, b"no line in it"),
    ],
)
def test_what_is_no_log_is_one_line_and_status_3(tmp_path: Path, content: bytes, says: bytes) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(content)
    for done in (postmortem(str(path)), postmortem("-", stdin=content)):
        assert done.returncode == 3
        assert done.stdout == b""
        assert done.stderr.count(b"\n") == 1
        assert says in done.stderr


def test_missing_paths_and_empty_folders(tmp_path: Path) -> None:
    for target in (tmp_path / "none.log", tmp_path):
        done = postmortem(str(target))
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (3, b"", 1)


def test_a_config_that_the_user_names_must_be_one(log: Path, tmp_path: Path) -> None:
    bad = tmp_path / "job.yaml"
    bad.write_text("job: [extension\n  config: {", encoding="utf-8")
    done = postmortem(str(log), "--config", str(bad))
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"job.yaml" in done.stderr


def test_a_damaged_config_beside_a_good_log_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(FAILING, encoding="utf-8", newline="")
    (tmp_path / "config.yaml").write_text("job: [extension\n", encoding="utf-8")
    done = postmortem(str(tmp_path), "--format", "json")
    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert "config_damaged" in [item["id"] for item in report["warnings"]]
    assert report["config"]["sources"] == ["log"]


def test_the_uis_database_may_be_named(log: Path, tmp_path: Path) -> None:
    path = database(tmp_path / "elsewhere" / "jobs.db", {"name": "mugs", "status": "completed"})
    for arguments, stdin in (([str(log)], None), ([], log.read_bytes())):
        done = postmortem(*arguments, "--db", str(path), "--format", "json", stdin=stdin)
        assert done.returncode == 1
        assert "db_status_differs" in [item["id"] for item in json.loads(done.stdout)["warnings"]]


def test_a_database_that_the_user_names_must_be_one(log: Path, tmp_path: Path) -> None:
    for path in (log, tmp_path, tmp_path / "none.db"):
        done = postmortem(str(log), "--db", str(path))
        assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (3, b"", 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "pdf"],
        ["--attempt", "9"],
        ["--lang", "xx"],
        ["--no-such-option"],
        ["--attempt", "zwei"],
        ["--patterns", "/none"],
        ["--flavor", "jira"],
        ["--max-chars", "2000"],
        ["--format", "json", "--flavor", "plain"],
        ["--format", "markdown", "--flavor", "html"],
        ["--format", "markdown", "--max-chars", "1199"],
        ["--format", "markdown", "--max-chars", "-1"],
    ],
)
def test_bad_usage_is_status_2_and_one_line(log: Path, arguments: list[str]) -> None:
    done = postmortem(str(log), *arguments)
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (2, b"", 1)


def test_output_is_written_whole_or_not_at_all(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    done = postmortem(str(log), "--format", "markdown", "-o", str(target))
    assert (done.returncode, done.stdout) == (1, b"")
    assert target.read_text(encoding="utf-8").startswith("### GPU out of memory")
    assert postmortem(str(log), "-o", str(tmp_path / "none" / "x")).returncode == 3
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["report.md", "run.log"]


@pytest.mark.parametrize(
    ("flavor", "start"), [("github", "### "), ("discord", "### "), ("jira", "h3. "), ("plain", "GPU out")]
)
def test_a_ticket_in_each_flavor(log: Path, flavor: str, start: str) -> None:
    done = postmortem(str(log), "--format", "markdown", "--flavor", flavor, "--max-chars", "2000")
    assert done.returncode == 1
    assert done.stdout.decode().startswith(start)
    assert len(done.stdout.decode()) <= 2000


def test_no_colour_unless_asked_and_never_an_escape_from_the_log(tmp_path: Path) -> None:
    path = tmp_path / "evil.log"
    evil = "\x1b]8;;http://x\x07link\x1b[2J\u202e[red]"
    path.write_text(FAILING.replace("mugs", f"mugs{evil}"), encoding="utf-8", newline="")
    assert b"\x1b" not in postmortem(str(path)).stdout
    forced = postmortem(str(path), FORCE_COLOR="1", NO_COLOR="").stdout.decode()
    assert "\x1b[" in forced
    for bad in ("\x1b]", "\x1b[2J", "\u202e", "http://x"):
        assert bad not in forced
    assert b"\x1b" not in postmortem(str(path), FORCE_COLOR="1", NO_COLOR="1").stdout


def test_nothing_heavy_is_imported_for_json(log: Path) -> None:
    code = (
        "import sys; sys.argv = ['postmortem', sys.argv[1], '--format', 'json']\n"
        "from postmortem.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print([name for name in ('pandas', 'numpy', 'rich', 'yaml') if name in sys.modules], file=sys.stderr)"
    )
    subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, check=True, timeout=60)
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, check=True, timeout=60)
    assert done.stderr.decode().strip() == "[]"


def test_a_closed_pipe_is_no_error(log: Path) -> None:
    shell = f"{sys.executable} -m postmortem {log} | head -n 1"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60, check=False)
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX")
def test_a_pipe_that_was_closed_before_the_version_is_no_error() -> None:
    shell = f"( sleep 0.5; exec {sys.executable} -m postmortem --version ) | true"
    done = subprocess.run(["bash", "-c", shell], capture_output=True, timeout=60, check=False)
    assert done.stderr == b""


def test_what_asks_for_a_completion_is_not_answered_by_a_status_of_ours(log: Path) -> None:
    done = postmortem(str(log), "--exit-zero", _POSTMORTEM_COMPLETE="bash_source")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout


def test_a_library_for_which_there_is_no_memory_is_no_fault_of_ours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from postmortem.cli import app, main

    def build(wanted: str | None) -> None:
        try:
            raise ImportError("libopenblas.so: failed to map segment from shared object")
        except ImportError as error:
            raise ImportError("Unable to import required dependency numpy.") from error

    monkeypatch.setattr(app, "build", build)
    assert main.run(["analyze", "x"]) == 3
    assert capsys.readouterr().err == "postmortem: not enough memory on this machine for this input\n"


@pytest.mark.parametrize("format_", ["markdown", "html"])
def test_of_a_report_that_cannot_be_written_one_line_is_said(log: Path, tmp_path: Path, format_: str) -> None:
    target = tmp_path / "none" / "report"
    done = postmortem(str(log), "--format", format_, "-o", str(target), "--redaction-map", str(tmp_path / "key.json"))
    assert (done.returncode, done.stdout) == (3, b"")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="a file of Linux' own")
@pytest.mark.parametrize("how", ["{}", "analyze {log} --config {}", "check {}", "verify {} {log}", "{log} --db {}"])
def test_a_file_that_has_nothing_to_read_yet_is_not_waited_for(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """As /proc/kmsg, which root alone may open: a file by its looks, and what opens waits."""
    from postmortem.cli.main import run, with_default
    from postmortem.intake import opening

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    held = os.open(pipe, os.O_RDWR)
    looks = tmp_path / "looks.log"
    looks.write_bytes(b"")

    def opens(path: str, flags: int) -> int:
        assert flags & os.O_NONBLOCK
        return os.open(pipe if Path(path) == looks else path, flags)

    monkeypatch.setattr(opening, "_without_waiting", lambda path, flags: opens(path, flags | os.O_NONBLOCK))
    try:
        words = how.replace("{}", str(looks)).replace("{log}", str(log)).split()
        assert run(with_default(words, piped=False)) == 3
    finally:
        os.close(held)
    assert "has nothing to read yet" in capsys.readouterr().err


def test_explain_schema_and_patterns() -> None:
    explained = postmortem("explain", "bucket_spike")
    assert (explained.returncode, explained.stderr) == (0, b"")
    assert b"bucket" in explained.stdout
    near = postmortem("explain", "early_stp")
    assert near.returncode == 2
    assert b"did you mean early_step" in near.stderr
    schema = json.loads(postmortem("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    listed = postmortem("patterns", "list").stdout.decode()
    assert "torch.cuda_oom" in listed
    assert postmortem("--version").stdout.decode().startswith("postmortem ")


def test_korean_from_end_to_end(log: Path) -> None:
    done = postmortem(str(log), "--lang", "ko", PYTHONIOENCODING="utf-8")
    assert "메모리" in done.stdout.decode()


def test_a_pack_of_ones_own_patterns(log: Path, tmp_path: Path) -> None:
    pack = tmp_path / "pack"
    pack.mkdir()
    (pack / "mine.yaml").write_text(
        "patterns:\n- id: mine.lost\n  role: other_error\n  anchors: ['the cat sat on it']\n  regex: 'the cat sat on it'\n"
        "  sets: {kind: not_memory}\n  source: us\n  examples: {match: ['the cat sat on it']}\n",
        encoding="utf-8",
    )
    text = head(config()) + "Error running job: the cat sat on it\n"
    done = postmortem("-", "--format", "json", "--patterns", str(pack), stdin=text.encode())
    assert json.loads(done.stdout)["failure"]["signature"] == "mine.lost"


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that can close stdout")
@pytest.mark.parametrize("arguments", ["--version", "explain early_step"])
def test_a_closed_stdout_is_one_line(arguments: str) -> None:
    done = subprocess.run(
        f"{sys.executable} -m postmortem {arguments} >&-", shell=True, capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert done.stderr.decode().count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that can close streams")
@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("nope 2>&-", 3),
        ("nope 2>/dev/full", 3),
        ("LOG --bogus 2>&-", 2),
        ("LOG >&- 2>&-", 3),
        ("- <&-", 3),
        ("'' </dev/null", 2),
        ("--help >/dev/full", 3),
        ("LOG -o loop", 3),
        ("LOG -o /dev/stdout | grep -q explain", 0),
    ],
)
def test_the_status_stands_whatever_the_streams(log: Path, tmp_path: Path, line: str, status: int) -> None:
    (tmp_path / "loop").symlink_to("loop")
    done = subprocess.run(
        f"{sys.executable} -m postmortem {line.replace('LOG', str(log))}",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.returncode == status
    assert b"internal error" not in done.stderr


def test_a_dataset_gives_the_buckets_that_the_log_lacks(log: Path, tmp_path: Path) -> None:
    mugs = tmp_path / "mugs"
    mugs.mkdir()
    (mugs / ".aitk_size.json").write_text('{"__version__": "0.1.2", "/a.png": [2000, 2000, "s"]}')
    report = json.loads(postmortem(str(log), "--dataset", str(mugs), "--format", "json").stdout)
    rows = [(row["bucket"], row["resolution"], row["source"]) for row in report["buckets"]]
    assert rows == [("512x512", 512, "dataset"), ("768x768", 768, "dataset"), ("1024x1024", 1024, "dataset")]
    assert "buckets_rebuilt" in {item["id"] for item in report["warnings"]}
    missing = postmortem(str(log), "--dataset", str(tmp_path / "none"))
    assert (missing.returncode, missing.stdout) == (3, b"")
    assert b"give the folder of a dataset" in missing.stderr


@pytest.mark.parametrize("command", ["analyze", "compare"])
def test_no_report_is_written_over_what_was_read(tmp_path: Path, command: str) -> None:
    run_folder = tmp_path / "run"
    run_folder.mkdir()
    log = run_folder / "log.txt"
    log.write_text("Running 1 job\nRunning  1 process\n", encoding="utf-8")
    before = log.read_bytes()
    for given, out in ((log, log), (run_folder, log)):
        done = subprocess.run(
            [sys.executable, "-m", "postmortem", command, str(given), "-o", str(out)], capture_output=True, text=True
        )
        assert done.returncode == 2
        assert "is an input" in done.stderr and done.stderr.count("\n") == 1
        assert log.read_bytes() == before


def test_no_report_is_written_over_what_else_was_read(log: Path, tmp_path: Path) -> None:
    """Standard input that is a file, a dataset's images, patterns, a job's config, what lies beside a log."""
    for name in ("sets/a.png", "pack/own.yaml", "run.log", "config.yaml", "job.yaml", "aitk_db.db"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(log.read_bytes() if name == "run.log" else b"{}" * 9)
    (tmp_path / "pack" / "own.yaml").write_text("kept_words: []\n", encoding="utf-8")
    run_log = str(tmp_path / "run.log")
    for given, out in (
        (["analyze", "-"], "run.log"),
        (["analyze", "-", "--tee"], "run.log"),
        (["bundle", "-"], "run.log"),
        (["analyze", run_log, "--dataset", str(tmp_path / "sets")], "sets/a.png"),
        (["analyze", run_log, "--patterns", str(tmp_path / "pack")], "pack/own.yaml"),
        (["analyze", run_log], "config.yaml"),
        (["analyze", run_log], "aitk_db.db"),
        (["check", str(tmp_path / "job.yaml")], "job.yaml"),
        (["check", str(tmp_path / "job.yaml"), "--log", run_log], "run.log"),
    ):
        before = (tmp_path / out).read_bytes()
        with (tmp_path / "run.log").open("rb") as stdin:
            done = subprocess.run(
                [sys.executable, "-m", "postmortem", *given, "-o", str(tmp_path / out)],
                stdin=stdin,
                capture_output=True,
            )
        assert (done.returncode, done.stdout) == (2, b""), given
        assert b"is an input" in done.stderr, given
        assert (tmp_path / out).read_bytes() == before, given


def test_the_size_of_a_card_is_a_number(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    log.write_text("Running 1 job\n", encoding="utf-8")
    for command in ("analyze", "fix"):
        done = subprocess.run(
            [sys.executable, "-m", "postmortem", command, str(log), "--gpu", "nan"], capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")


def test_a_page_hides_names_unless_told_not_to(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(log.read_text(encoding="utf-8").replace("/data/mugs", "/home/jane_doe/mugs"), encoding="utf-8")
    page = postmortem(str(path), "--format", "html").stdout.decode()
    assert page.startswith("<!doctype html>") and page.endswith("</html>\n")
    assert "jane_doe" not in page
    assert "jane_doe" in postmortem(str(path), "--format", "html", "--no-redact").stdout.decode()
    refused = postmortem("compare", str(path), str(path), "--format", "html")
    assert (refused.returncode, refused.stdout) == (2, b"")


def test_templates_are_loaded_for_pages_only(log: Path) -> None:
    code = (
        "import sys; sys.argv = ['postmortem', sys.argv[1], '--format', 'markdown']\n"
        "from postmortem.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('jinja2' in sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, check=True, timeout=60)
    assert done.stderr.decode().splitlines()[-1] == "False"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_lists_what_the_command_says_of_itself(name: str) -> None:
    module = import_module(f"postmortem.cli.{name}")
    if hasattr(module, "app"):
        assert isinstance(module.app, typer.Typer)
    else:
        assert callable(getattr(module, name))
    assert len(COMMANDS[name]) <= 60


def test_threads_of_linear_algebra_are_left_out_of_workers_but_not_out_of_what_a_hook_starts() -> None:
    asks = [sys.executable, "-c", "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"]
    code = f"""
import os, subprocess
from postmortem.cli.main import _start_no_threads
_start_no_threads()
subprocess.run({asks!r}, check=True)
subprocess.run({asks!r}, check=True, env={{**os.environ}})
"""

    def told(**more: str) -> list[str]:
        bare = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
        run = subprocess.run(
            [sys.executable, "-c", code], env={**bare, **more}, capture_output=True, text=True, check=True
        )
        return run.stdout.split()

    assert told() == ["1", "None"]
    assert told(OPENBLAS_NUM_THREADS="6") == ["6", "6"]
