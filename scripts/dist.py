"""Build the wheel and the sdist twice, from two copies of what git knows, and hold them against each other and against
what they must hold: `python scripts/dist.py OUT`. Where something is wrong it says what, and exits with 1."""

from __future__ import annotations

import email.parser
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
SDIST = {
    "postmortem", "patterns", "fixtures", "tests", "docs", "scripts", "README.md", "CHANGELOG.md", "Makefile",
    "pyproject.toml", "PKG-INFO", ".gitignore",
}  # fmt: skip
SHORT = 80
"""Characters of a path that are sure to fit below a Windows user's site-packages (260 in all)."""
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))}


def tracked() -> list[str]:
    """The files that git knows, as they stand."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return sorted(name for name in os.fsdecode(listed).split("\0") if name and (ROOT / name).is_file())


def built(home: Path, names: list[str], mode: int) -> list[Path]:
    """The wheel and the sdist of a checkout of its own, whose files were written now, with rights of its own."""
    checkout = home / "checkout"
    for name in names:
        target = checkout / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(mode | (ROOT / name).stat().st_mode & 0o111)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": committed()}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(home / "dist"), str(checkout)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sorted((home / "dist").iterdir())


def committed() -> str:
    """When the last change was committed, in seconds: the same for everybody who builds it."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    shown = ["git", "log", "-1", "--format=%ct"]
    return told or subprocess.run(shown, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()


def wheel_faults(path: Path, names: list[str]) -> list[str]:
    """What is wrong with the wheel: each file of the package and of the patterns must be there, and nothing else."""
    with zipfile.ZipFile(path) as archive:
        held = archive.namelist()
        info = next(name for name in held if name.endswith(".dist-info/METADATA")).rpartition("/")[0]
        metadata = email.parser.BytesParser().parsebytes(archive.read(f"{info}/METADATA"))
        entries = archive.read(f"{info}/entry_points.txt").decode()
        mistaken = [
            name for name in held if archive.read(name) == b"" and not name.endswith(("__init__.py", "py.typed"))
        ]
    wanted = {name for name in names if name.startswith("postmortem/")}
    wanted |= {
        f"postmortem/_patterns/{name.removeprefix('patterns/')}" for name in names if name.startswith("patterns/")
    }
    code = {name for name in held if not name.startswith(info)}
    faults = [f"wheel: lacks {name}" for name in sorted(wanted - code)]
    faults += [f"wheel: stray {name}" for name in sorted(code - wanted)]
    faults += [f"wheel: empty {name}" for name in mistaken]
    for name in code:
        if len(name) > SHORT or any(part.split(".")[0].lower() in RESERVED for part in PurePosixPath(name).parts):
            faults.append(f"wheel: no name for every system: {name}")
    if len({name.lower() for name in held}) != len(held):
        faults.append("wheel: names that differ in case alone")
    for language in ("en", "ko"):
        if not any(name.startswith(f"postmortem/_patterns/text/{language}/") for name in code):
            faults.append(f"wheel: no texts in {language}")
    said = {"Name": "aitk-postmortem", "Requires-Python": ">=3.10", "Description-Content-Type": "text/markdown"}
    faults += [f"wheel: {key} is {metadata[key]}" for key, value in said.items() if metadata[key] != value]
    if (
        f"-{metadata['Version']}-py3-none-any.whl" not in path.name
        or "postmortem = postmortem.__main__:main" not in entries
    ):
        faults.append("wheel: version, tag or command")
    return faults


def sdist_faults(path: Path, names: list[str]) -> list[str]:
    """What is wrong with the sdist: plain files of the folders meant, all that git knows of them, and nothing else."""
    with tarfile.open(path) as archive:
        members = archive.getmembers()
    inner = {name.partition("/")[2] for name in (member.name for member in members)}
    known = {name for name in names if name.split("/")[0] in SDIST}
    faults = [f"sdist: lacks {name}" for name in sorted(known - inner - {".gitignore"})]
    faults += [f"sdist: stray {name}" for name in sorted(inner - known - {"PKG-INFO"})]
    faults += [f"sdist: no plain file: {member.name}" for member in members if not member.isreg()]
    faults += [f"sdist: of somebody: {member.name}" for member in members if member.uid or member.gid or member.uname]
    return faults


def run_faults(wheel: Path, home: Path) -> list[str]:
    """What is wrong with an installation from the wheel, used outside the checkout."""
    subprocess.run([sys.executable, "-m", "venv", str(home / "venv")], check=True)
    scripts = home / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pip = [str(scripts / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", str(wheel)]
    subprocess.run(pip, check=True)
    log = ROOT / "fixtures" / "early-step-checkpointing-off" / "log.txt"
    away = home / "away"
    away.mkdir()
    shutil.copyfile(log, away / "run.log")
    # every warning an error, but for the program's own start: whose fault it would be is pip's
    environment = {**os.environ, "PYTHONWARNINGS": "error", "POSTMORTEM_NO_CACHE": "1"}
    environment.pop("PYTHONPATH", None)
    faults = []
    asked = {
        ("--version",): (0, "postmortem "),
        ("run.log",): (1, "Gradient checkpointing is off"),
        ("run.log", "--lang", "ko"): (1, ""),
        ("run.log", "--format", "html", "--no-redact"): (1, "<!doctype html>"),
        ("patterns", "test"): (0, ""),
        ("explain", "early_step"): (0, ""),
    }
    for arguments, (status, says) in asked.items():
        done = subprocess.run(
            [scripts / "postmortem", *arguments], cwd=away, env=environment, capture_output=True, encoding="utf-8"
        )
        if done.returncode != status or says.lower() not in done.stdout.lower() or done.stderr:
            faults.append(f"installed: {' '.join(arguments)}: {done.returncode} {done.stderr.strip()[-300:]}")
    return faults


def main() -> None:
    """Build, compare, look inside, install, run; what was built goes to the folder named."""
    out = Path(sys.argv[1]).resolve()
    names = tracked()
    with tempfile.TemporaryDirectory(prefix="dist-") as held:
        one, two = Path(held, "one"), Path(held, "another-place")
        first, second = built(one, names, 0o644), built(two, names, 0o640)
        faults = [f"{a.name}: two builds differ" for a, b in zip(first, second) if a.read_bytes() != b.read_bytes()]
        sdist, wheel = sorted(first, key=lambda path: path.suffix)
        faults += wheel_faults(wheel, names) + sdist_faults(sdist, names) + run_faults(wheel, Path(held))
        out.mkdir(parents=True, exist_ok=True)
        for path in first:
            shutil.copy(path, out)
            print(f"{path.name}: {path.stat().st_size >> 10} KiB")
    print(*faults or ["twice the same bytes, the right files, and it runs"], sep="\n")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
