"""A log behind a URL gives the report of the log; what cannot be had is told in one line."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from postmortem.intake import Intake, IntakeError, open_input, remote
from postmortem.intake.packed import Limits

FIXTURES = Path(__file__).parents[2] / "fixtures"
LOG = FIXTURES / "sampling-mid-run-flux-1600" / "log.txt"
FOLDER = FIXTURES / "folder-retry-succeeded"


def text(opened: Intake) -> bytes:
    return b"".join(opened.logs[-1].chunks())


PAGE = b"<!DOCTYPE html>\n<html><body>out of memory</body></html>"
PACKED = {
    "/packed.log": gzip.compress(LOG.read_bytes()),
    "/packed-page": gzip.compress(PAGE),
    "/bomb.log": gzip.compress(bytes(80 << 20), 9),
    "/brotli": b"\x0b\x02\x80",
}
"""What a server sends packed, though nobody asked for it."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass

    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        self.asked.append(self.headers.get("Accept-Encoding"))
        if self.path == "/denied":
            self.send_error(403)
        elif self.path == "/round":
            self.send_response(302)
            self.send_header("Location", "/round")
            self.end_headers()
        elif (body := PACKED.get(self.path)) is not None:
            self.send_response(200)
            self.send_header("Content-Encoding", "br" if self.path == "/brotli" else "gzip")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        else:
            super().do_GET()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("site")
    (root / "run.log").write_bytes(LOG.read_bytes())
    (root / "page").write_bytes(PAGE)
    with tarfile.open(root / "run.tar.gz", "w:gz") as archive:
        archive.add(FOLDER, "retry")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def memory() -> Iterator[str]:
    import fsspec

    files = fsspec.filesystem("memory")
    for file in FOLDER.rglob("*"):
        if file.is_file():
            files.pipe(f"/runs/retry/{file.relative_to(FOLDER).as_posix()}", file.read_bytes())
    files.pipe("/runs/none/model.safetensors", b"x")
    yield "memory://runs"
    files.rm("/runs", recursive=True)


def test_a_log_over_http(site: str) -> None:
    opened = open_input(f"{site}/run.log?token=secret")
    assert text(opened) == LOG.read_bytes()
    assert opened.source == f"{site}/run.log"


def test_redirections_in_a_circle_are_told_as_such(site: str) -> None:
    with pytest.raises(IntakeError, match=r"/round: it leads from one address to the next without end"):
        open_input(f"{site}/round")


def test_what_a_server_packs_is_within_the_limits_of_an_archive(site: str) -> None:
    opened = open_input(f"{site}/packed.log")
    assert text(opened) == LOG.read_bytes() and "archive_cut" not in opened.logs[0].repairs
    assert set(Quiet.asked) == {"identity"}
    with pytest.raises(IntakeError, match=r"bomb.log: unpacks to more than 1000 times its size \(--max-ratio\)"):
        open_input(f"{site}/bomb.log")
    with pytest.raises(IntakeError, match="--max-expanded"):
        open_input(f"{site}/bomb.log", Limits(expanded_mib=1))


def test_an_archive_over_http(site: str) -> None:
    opened = open_input(f"{site}/run.tar.gz")
    assert [log.name for log in opened.logs][-1] == "log.txt"
    assert text(opened) == (FOLDER / "log.txt").read_bytes()


def test_a_log_in_a_store(memory: str) -> None:
    assert text(open_input(f"{memory}/retry/log.txt")) == (FOLDER / "log.txt").read_bytes()


def test_a_run_folder_in_a_store(memory: str) -> None:
    here, there = open_input(str(FOLDER)), open_input(f"{memory}/retry")
    assert [log.name for log in there.logs] == [log.name for log in here.logs]
    assert [config.text for config in there.configs] == [config.text for config in here.configs]
    assert text(there) == text(here)


def test_a_file_url_is_a_path() -> None:
    assert text(open_input(LOG.as_uri())) == LOG.read_bytes()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("{site}/missing.log", "not found"),
        ("{site}/page", "a web page, not a log"),
        ("{site}/", "a web page, not a log"),
        ("{site}/packed-page", "a web page, not a log"),
        ("{site}/brotli", "an encoding that was not asked for (br)"),
        ("{site}/denied", "the server answers 403"),
        ("http://127.0.0.1:9/run.log", "cannot be reached"),
        ("{memory}/absent.log", "not found"),
        ("{memory}/none", "without a log"),
        ("nonsense://x/run.log", "no such kind of URL"),
        ("memory://x::memory://y", "chain"),
        ("file://elsewhere/run.log", "another machine"),
    ],
)
def test_what_cannot_be_had_is_one_line(url: str, says: str, site: str, memory: str) -> None:
    named = url.format(site=site, memory=memory)
    with pytest.raises(IntakeError) as told:
        open_input(named)
    line = str(told.value)
    assert says in line
    assert "\n" not in line and "/tmp" not in line
    assert line.startswith(named.split("::")[0])


def test_it_stops_at_the_limit(site: str, memory: str) -> None:
    import fsspec

    fsspec.filesystem("memory").pipe("/runs/large.log", b"a line\n" * 300_000)
    with pytest.raises(IntakeError, match="larger than 1 MiB"):
        open_input(f"{memory}/large.log", Limits(expanded_mib=1))


def test_a_host_that_is_silent_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(remote, "STALL_S", 0.3)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(IntakeError, match=r"no answer within|cannot be reached"):
            open_input(f"http://127.0.0.1:{silent.getsockname()[1]}/run.log")


@pytest.mark.parametrize("missing", ["fsspec", "aiohttp"])
def test_without_the_extra_it_says_so(missing: str, site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(IntakeError, match=r"pip install 'aitk-postmortem\[remote\]'"):
        open_input(f"{site}/run.log")


def test_a_path_never_loads_it() -> None:
    code = (
        "import sys; from postmortem.intake import open_input; open_input(sys.argv[1]);"
        "print(sorted({'fsspec', 'aiohttp', 'postmortem.intake.remote'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(LOG)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
