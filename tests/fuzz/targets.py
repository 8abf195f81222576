"""What is fuzzed: functions of bytes that raise where a promise is broken. `make fuzz` runs them under atheris.

Each is an ordinary function, so that a finding is a test: `TARGETS["scan"](path.read_bytes())`.
"""

from __future__ import annotations

import contextlib
import io
import tarfile
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from postmortem.check.build import build as check_build
from postmortem.check.json_ import render as check_json
from postmortem.intake import IntakeError, archives, dataset, jobdb, losslog, outputs, packed
from postmortem.jobconfig import ConfigText, effective
from postmortem.jobconfig.effective import each
from postmortem.jobconfig.parse import ConfigProblem
from postmortem.knowledge import kept, load
from postmortem.model import ConfigChange
from postmortem.patch import Refused, apply
from postmortem.report import build
from postmortem.scan import Lexicon, scan
from postmortem.text import printable
from tests.fuzz import checks
from tests.hostile import acting, lexicon

Target = Callable[[bytes], None]


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A folder that goes when it is done with."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
        yield Path(made)


def intake(data: bytes) -> None:
    """Bytes as they lie on disk or come through a pipe: refused in a line, or read alike in any pieces."""
    one = checks.opened(data, again=bool(data) and data[0] % 2 == 1)
    if one is None:
        return
    assert len(one.logs) == 1 or one.keep is not None
    for log in one.logs:
        text = b"".join(log.chunks())
        assert len(text) <= 4 * len(data) + 100 or one.keep is not None
        if one.keep is None:
            scan([text], lexicon(), "log")


def reading(data: bytes) -> None:
    """The whole way from bytes to a report."""
    checks.check_input(data)


def scanning(data: bytes) -> None:
    """Text to events, bars and a report, in one piece and in many."""
    if not data:
        return
    checks.check_chunks(data, (1 + data[0] % 40, 1 + data[-1] * 7))
    checks.check_log(data, whole=data[0] % 8 == 0)


CHANGES = (
    ConfigChange("train.batch_size", 4, 2),
    ConfigChange("train.gradient_checkpointing", False, True),
    ConfigChange("datasets[0].resolution", [512, 768, 1024], [512, 768]),
    ConfigChange("model.low_vram", False, True),
)


def jobconfig(data: bytes) -> None:
    """A job config: what was in force, what `check` says of it, what `fix` makes of it."""
    text = data.decode("utf-8", "replace")
    knowledge = lexicon().knowledge
    found = effective(None, [ConfigText("config.yaml", text)], knowledge)
    for notice in found.warnings:
        assert len(str(notice.line)) < 20
    try:
        jobs = each(ConfigText("config.yaml", text), knowledge)
    except ConfigProblem as problem:
        checks.check_line(problem.problem)
        assert not found.values
        return
    shown = check_json(check_build("config.yaml", jobs, knowledge, gpu_mib=24576.0))
    assert acting(shown) == []
    configs = [ConfigText("config.yaml", text)]
    analysis = checks.analysed(b"Running 1 job\nCUDA out of memory. Tried to allocate 2.00 GiB\n", configs)
    assert analysis is not None
    checks.check_report(build(analysis, knowledge), whole=False)
    with contextlib.suppress(Refused):
        done = apply(text, CHANGES[data[-1] % len(CHANGES) :][:1], knowledge)
        assert done.done or done.text == text


LOG = (Path(__file__).parents[2] / "fixtures" / "early-step-checkpointing-off" / "log.txt").read_bytes()


def pack(data: bytes) -> None:
    """A pack of patterns: refused in one line, or it reads a log and breaks no promise."""
    file = kept.File("pack.yaml", "pack.yaml", len(data), "", 0.0)
    try:
        own = load._compile([file], [data], "pack")
    except load.KnowledgeError as refusal:
        checks.check_line(printable(str(refusal)))
        return
    base = lexicon().knowledge
    patterns = {entry.id: entry for entry in (*base.patterns, *own.patterns)}
    with_pack = Lexicon(msgspec.structs.replace(base, patterns=tuple(patterns.values())))
    checks.check_scan(scan([LOG], with_pack, "log"))
    checks.check_scan(scan([data + b"\n" + LOG[-2000:]], with_pack, "log"))


def archive(data: bytes) -> None:
    """Anything as an archive: the first byte says as which; nothing comes out beside or beyond the limits."""
    if len(data) < 2:
        return
    made = _made(data[1:], data[0])
    if not packed.is_archive(made[: packed.HEAD]):
        return
    try:
        found = archives.unpack(io.BytesIO(made[packed.HEAD :]), made[: packed.HEAD], "x", checks.SMALL)
    except IntakeError as refusal:
        checks.check_line(str(refusal))
        return
    root = found.folder.resolve()
    total = 0
    for path in root.rglob("*"):
        assert not path.is_symlink(), path
        assert path.resolve().is_relative_to(root), path
        assert path.is_dir() or path.is_file(), path
        total += path.stat().st_size if path.is_file() else 0
    assert total <= checks.SMALL.expanded_mib << 20
    assert len(found.files) <= checks.SMALL.entries
    found.home.remove()
    assert not root.exists()
    checks.opened(made)


def _made(data: bytes, how: int) -> bytes:
    """`data` itself, or an archive with entries of its making, of which a byte may be wrong."""
    if how % 4 == 0:
        return data
    out = io.BytesIO()
    parts = [data[at : at + 24] for at in range(0, min(len(data), 24 * 12), 24)]
    if how % 4 == 1:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
            for part in parts:
                name = part[:10].decode("latin-1").replace("\0", "") + "log.txt"[part[-1] % 8 :] or "x"
                info = zipfile.ZipInfo(name)
                info.external_attr = (part[-1] << 24 | 0o644 << 16) & 0xFFFFFFFF
                info.compress_type = zipfile.ZIP_DEFLATED
                with contextlib.suppress(ValueError, UnicodeError), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a name may come twice
                    file.writestr(info, part)
    else:
        with tarfile.open(fileobj=out, mode="w" if how % 4 == 2 else "w:gz") as tar:
            for part in parts:
                member = tarfile.TarInfo(part[:10].decode("latin-1").replace("\0", "") + "/log.txt"[part[-1] % 9 :])
                member.type = bytes([48 + part[-1] % 8])
                member.linkname = part[5:15].decode("latin-1").replace("\0", "")
                member.size = len(part) if member.isreg() else 0
                with contextlib.suppress(ValueError, UnicodeError, tarfile.TarError):
                    tar.addfile(member, io.BytesIO(part))
    made = bytearray(out.getvalue())
    if how & 64 and made:
        made[int.from_bytes(data[:3], "big") % len(made)] ^= data[-1]
    return bytes(made[: len(made) - (data[-1] if how & 128 else 0)])


def databases(data: bytes) -> None:
    """A file that may be one of the two databases."""
    with folder() as place:
        path = place / jobdb.NAME
        path.write_bytes(data)
        found = jobdb.read(path)
        assert len(found.rows) <= jobdb.MAX_ROWS
        for row in found.rows:
            assert acting(row.status) == []
            assert len(row.info) <= jobdb.MAX_INFO
        (place / losslog.NAME).write_bytes(data)
        steps = losslog.skipped_steps(place)
        assert steps is None or len(steps) <= losslog.MAX_STEPS


def beside(data: bytes) -> None:
    """What lies beside a log: checkpoints' headers, a dataset's sizes, pictures' headers."""
    with folder() as place:
        (place / "x_000000250.safetensors").write_bytes(data)
        (place / "optimizer.pt").write_bytes(data)
        found = outputs.witness(place)
        assert found is not None
        assert len(found.checkpoints) == 1
        images = place / "images"
        images.mkdir()
        (images / "1.jpg").write_bytes(data)
        (images / "2.webp").write_bytes(data)
        (images / "3.png").write_bytes(data)
        for _ in range(2):
            try:
                sizes = dataset.read(images)
            except IntakeError as refusal:
                checks.check_line(str(refusal))
                continue
            finally:
                (images / dataset.NAME).write_bytes(data)
            assert all(0 < side <= dataset.MAX_SIDE for row in sizes.sizes for side in row[:2])


TARGETS: dict[str, Target] = {
    "intake": intake,
    "reading": reading,
    "scan": scanning,
    "jobconfig": jobconfig,
    "patterns": pack,
    "archives": archive,
    "databases": databases,
    "beside": beside,
}
