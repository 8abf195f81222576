"""What lies beside a log: databases, checkpoints, datasets, and files that have strange names or are no files."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from postmortem.intake import jobdb
from tests.attacks.case import DIED, FAILING, KIND, Attack, Content, files

GPU = {KIND: "gpu_oom"}
TABLE = "CREATE TABLE Job (id TEXT PRIMARY KEY, name TEXT, job_config TEXT, status TEXT, step INTEGER, total_steps INTEGER, info TEXT);"
METRICS = "CREATE TABLE metrics (step INTEGER, key TEXT, value_real REAL, value_text TEXT);"


def of(script: str, change: Callable[[bytes], bytes] = bytes) -> Callable[[Path], None]:
    """Writes the database that a script makes, with its bytes changed."""

    def write(path: Path) -> None:
        with closing(sqlite3.connect(path)) as file:
            file.executescript(script)
        path.write_bytes(change(path.read_bytes()))

    return write


def jobs(name: str, content: Content, *, warns: tuple[str, ...] = ()) -> Attack:
    """A run folder with this as the UI's database."""
    return files(f"jobs: {name}", {"log.txt": FAILING, jobdb.NAME: content}, 1, says=GPU, warns=warns)


def losses(name: str, content: Content) -> Attack:
    """A run folder with this as the log of losses."""
    return files(f"losses: {name}", {"log.txt": FAILING, "loss_log.db": content}, 1, says=GPU)


def weights(name: str, content: Content, file: str = "mugs_000000250.safetensors") -> Attack:
    """A run folder with this as its checkpoint."""
    return files(f"checkpoint: {name}", {"log.txt": FAILING, file: content}, 1, says=GPU)


def dataset(name: str, content: Content, status: int = 1, *, tells: str = "", file: str = ".aitk_size.json") -> Attack:
    """A log, and a dataset's folder with this in it."""
    given = {"run.log": FAILING, f"data/{file}": content}
    return files(f"dataset: {name}", given, status, arguments=("{}/run.log", "--dataset", "{}/data"), tells=tells)


def header(text: str | bytes, behind: bytes = b"") -> bytes:
    """A checkpoint with this header."""
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return len(raw).to_bytes(8, "little") + raw + behind


def odd(make: Callable[[Path], None]) -> Callable[[Path], None]:
    """What is no file of the usual kind."""
    return make


def names(text: str) -> Attack:
    """A log of this name."""
    return files(f"name: {text[:30]!r}", {text: DIED}, 1, arguments=(f"{{}}/{text}",), says=GPU)


DAMAGED = ("db_damaged",)
ROW = (
    TABLE
    + "INSERT INTO Job VALUES ('1', 'mugs', '{}', 'error', 3, 400, 'CUDA out of memory. Tried to allocate 2.00 GiB');"
)
ATTACKS = [
    jobs("whole", of(ROW)),
    jobs("empty", b"", warns=DAMAGED),
    jobs("its first bytes", b"SQLite format 3\0", warns=DAMAGED),
    jobs("no database", b"x" * 9_000, warns=DAMAGED),
    jobs("cut in half", of(ROW, lambda raw: raw[: len(raw) // 2]), warns=DAMAGED),
    jobs("a page of 0xff", of(ROW, lambda raw: raw[:100] + b"\xff" * (len(raw) - 100)), warns=DAMAGED),
    jobs("no table", of("CREATE TABLE x (y);"), warns=DAMAGED),
    jobs("a view", of("CREATE VIEW Job AS SELECT 1 AS id, 2 AS name;"), warns=DAMAGED),
    jobs(
        "a view without an end",
        of(
            "CREATE VIEW Job AS WITH RECURSIVE r(id, name) AS (SELECT 1, 2 UNION ALL SELECT id + 1, 2 FROM r) SELECT * FROM r;"
        ),
        warns=DAMAGED,
    ),
    jobs("a table without the columns", of("CREATE TABLE Job (x, y);"), warns=DAMAGED),
    jobs(
        "a table in Greek",
        of('CREATE TABLE Job (id, name, "step" TEXT, "αβγ" TEXT); INSERT INTO Job VALUES (1, 2, 3, 4);'),
    ),
    jobs(
        "blobs for texts", of(TABLE + "INSERT INTO Job VALUES (x'ff', x'00fe', x'1b5b', x'ff', x'ff', x'ff', x'ff');")
    ),
    jobs("numbers for texts", of(TABLE + "INSERT INTO Job VALUES (1, 2.5, 3, 4, 1e300, -5, 7);")),
    jobs("NULLs", of(TABLE + "INSERT INTO Job VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL);")),
    jobs(
        "escapes",
        of(
            TABLE
            + "INSERT INTO Job VALUES ('1', 'mugs', '{}', char(27) || '[2J', 3, 400, char(27) || ']0;x' || char(7));"
        ),
    ),
    jobs(
        "a text of 20 MB",
        of(
            TABLE
            + "INSERT INTO Job VALUES ('1', 'mugs', printf('%.*c', 20000000, 'x'), 'error', 3, 400, printf('%.*c', 20000000, 'x'));"
        ),
    ),
    jobs(
        "5,000 rows",
        of(
            TABLE
            + "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 5000) INSERT INTO Job SELECT x, 'mugs', '{}', 'error', x, x, 'x' FROM r;"
        ),
    ),
    jobs(
        "a trigger", of(TABLE + "CREATE TRIGGER t AFTER INSERT ON Job BEGIN DELETE FROM Job; END;" + ROW[len(TABLE) :])
    ),
    jobs(
        "a generated column that never ends",
        of(
            "CREATE TABLE Job (id TEXT, name TEXT AS (hex(zeroblob(400000000))) VIRTUAL); INSERT INTO Job(id) VALUES (1);"
        ),
        warns=DAMAGED,
    ),
    jobs(
        "a config that is a bomb",
        of(TABLE + "INSERT INTO Job VALUES ('1', 'mugs', 'a: &a [*a]', 'error', 3, 400, '');"),
    ),
    jobs(
        "a config of 20,000 levels",
        of(
            TABLE
            + "INSERT INTO Job VALUES ('1', 'mugs', '{\"a\":' || replace(hex(zeroblob(10000)), '00', '[['), 'error', 3, 400, '');"
        ),
    ),
    jobs("a folder", odd(lambda path: path.mkdir())),
    jobs("a link to nothing", odd(lambda path: path.symlink_to("/nowhere"))),
    losses("whole", of(METRICS + "INSERT INTO metrics VALUES (1, 'learning_rate', 0.0, NULL);")),
    losses("no database", b"x" * 9_000),
    losses("cut", of(METRICS, lambda raw: raw[:700])),
    losses(
        "steps that are words",
        of(
            "CREATE TABLE metrics (step, key, value_real); INSERT INTO metrics VALUES ('x', 'learning_rate', 0.0), (x'ff', 'learning_rate', 0.0), (1e300, 'learning_rate', 0.0);"
        ),
    ),
    losses(
        "200,000 steps",
        of(
            METRICS
            + "WITH RECURSIVE r(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM r WHERE x < 200000) INSERT INTO metrics SELECT x, 'learning_rate', 0.0, NULL FROM r;"
        ),
    ),
    losses(
        "a view without an end",
        of(
            "CREATE VIEW metrics AS WITH RECURSIVE r(step, key, value_real) AS (SELECT 1, 'learning_rate', 0.0 UNION ALL SELECT step + 1, key, 0.0 FROM r) SELECT * FROM r;"
        ),
    ),
    weights("empty", b""),
    weights("three bytes", b"abc"),
    weights("a header of 2**63 bytes", b"\xff" * 7 + b"\x7f" + b"{}"),
    weights("a header that is no JSON", header("{nothing")),
    weights("a header of 20,000 levels", header('{"a":' + "[" * 20_000)),
    weights("a header that is a list", header("[]")),
    weights("tensors that are words", header('{"a": "x", "b": {"data_offsets": "x"}, "c": {"data_offsets": [1]}}')),
    weights("offsets without an end", header('{"a": {"data_offsets": [0, ' + "9" * 5_000 + "]}}")),
    weights("negative offsets", header('{"a": {"data_offsets": [-5, -1]}}')),
    weights("offsets of 1e999", header('{"a": {"data_offsets": [0, 1e999]}}')),
    weights("a step without an end", header('{"__metadata__": {"training_info": "{\\"step\\": ' + "9" * 400 + '}"}}')),
    weights("metadata that are a list", header('{"__metadata__": [1]}')),
    weights("a name with escapes", header("{}"), "mugs\x1b[2J\u202e_000000250.safetensors"),
    weights("a name of 250 letters", header("{}"), "x" * 225 + "_000000250.safetensors"),
    weights("a step of 12 nines", header("{}"), "mugs_999999999999.safetensors"),
    weights("a link out of the folder", odd(lambda path: path.symlink_to("/etc/passwd"))),
    weights("a pipe", odd(lambda path: os.mkfifo(path))),
    weights("a folder with a folder in it", odd(lambda path: (path / "a").mkdir(parents=True))),
    weights("a state of the optimiser that is none", b"PK" + b"\0" * 900, "optimizer.pt"),
    dataset("no JSON", b"nothing", 3, tells="damaged"),
    dataset("a list", b"[]", 3, tells="damaged"),
    dataset("20,000 levels", b'{"a.jpg": ' + b"[" * 20_000, 3, tells="damaged"),
    dataset(
        "sides that are none",
        b'{"/a.jpg": [0, -1, "x"], "/b.jpg": ["512", null, 1], "/c.jpg": [1e999, 1, 1], "/d.jpg": [true, true, 1]}',
    ),
    dataset("a side without an end", b'{"/a.jpg": [' + b"9" * 4_000 + b", 512, 1]}"),
    dataset("a side of more digits than Python reads", b'{"/a.jpg": [' + b"9" * 5_000 + b", 512, 1]}"),
    dataset("20,000 files", ("{" + ", ".join(f'"/{n}.jpg": [{n}, 512, "x"]' for n in range(1, 20_000)) + "}").encode()),
    dataset("names with escapes", '{"/\\u001b[2J\\ud800.jpg": [512, 768, "x"]}'),
    dataset("nothing at all", b"x", 3, file="nothing.txt"),
    dataset("a JPEG without an end", b"\xff\xd8" + b"\xff" * 9_000, file="1.jpg"),
    dataset("a JPEG of segments of nothing", b"\xff\xd8" + b"\xff\xe2\0\2" * 9_000, file="1.jpg"),
    dataset("a PNG of no size", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(20), file="1.png"),
    dataset("a WebP that breaks off", b"RIFF\0\0\0\0WEBPVP8X", file="1.webp"),
    dataset("a picture that is a link", odd(lambda path: path.symlink_to("/etc/passwd")), file="1.jpg"),
    *(
        names(text)
        for text in (
            "-x.log",
            "--help.log",
            "a b.log",
            "a\nb.log",
            "\x1b[2J.log",
            "\u202egol.exe",
            "'; rm -rf x;.log",
            "$(id).log",
            "[red]x.log",
            "<script>.log",
            "%s%n.log",
            "~.log",
            "=cmd.log",
            "x" * 240 + ".log",
            "한국어.log",
            "{}.log",
            "log.txt",
            "..log",
        )
    ),
    files("name: no such file", {}, 3, arguments=("{}/\x1b[2Jnothing.log",), tells="no such file"),
    files("name: a folder of nothing", {}, 3),
    files("name: nothing", {}, 2, arguments=("",), tells="no file name"),
    files("name: 5,000 letters", {}, 3, arguments=("x" * 5_000,)),
    files("name: a pipe", {"run.log": odd(lambda path: os.mkfifo(path))}, 3, arguments=("{}/run.log",)),
    files("name: a device", {}, 3, arguments=("/dev/null",)),
    files("name: a link to itself", {"run.log": odd(lambda path: path.symlink_to(path))}, 3, arguments=("{}/run.log",)),
    files("a log that is a folder", {"log.txt": odd(lambda path: path.mkdir())}, 3),
    files("a log that is a pipe", {"log.txt": odd(lambda path: os.mkfifo(path)), "config.yaml": "train: {}\n"}, 3),
    files("a config that is a pipe", {"log.txt": DIED, "config.yaml": odd(lambda path: os.mkfifo(path))}, 1, says=GPU),
    files("a config that is a folder", {"log.txt": DIED, "config.yaml": odd(lambda path: path.mkdir())}, 1, says=GPU),
    files("200 old logs", {"log.txt": DIED, **{f"logs/{n}_log.txt": FAILING for n in range(200)}}, 1, says=GPU),
]
