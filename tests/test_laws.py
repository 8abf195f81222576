"""What must always hold, over generated runs: the report depends on what the log says, on nothing else."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from postmortem.intake import open_path
from postmortem.knowledge.load import history as built_in_history
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis, NothingRecognised, Source, analyse
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.generate import MEMORY_KINDS, Case, draw, make, write
from tests.generate.counts import SEEDS, batch_name
from tests.truths import as_json

Report = dict[str, Any]
batches = pytest.mark.parametrize("seeds", SEEDS, ids=batch_name)

FACTS = {
    "run": ("trainer", "job_name", "arch", "family", "start_step", "last_completed_step", "total_steps", "outcome"),
    "failure": ("kind", "resource", "class", "phase", "step", "signature", "confidence", "headline"),
}


def facts(report: Report) -> Report:
    """What a report says of the run, without line numbers, sizes of the input and warnings about its form."""
    found = {f"{part}.{key}": report[part][key] for part, keys in FACTS.items() for key in keys}
    found["memory"] = report["memory"]
    found["ooms"] = [
        {key: oom[key] for key in ("step", "phase", "caught", "signature")} for oom in report["oom_events"]
    ]
    found["buckets"] = report["buckets"]
    found["values"] = {path: value["value"] for path, value in report["config"]["values"].items()}
    found["remedies"] = [(remedy["id"], remedy["changes"]) for remedy in report["remedies"]]
    found["factors"] = report["failure"]["factors"]
    return found


_KNOWN: dict[int, str] = {}


def plainly(run: Analyse, knowledge: Knowledge, case: Case) -> Report:
    """The report on a generated case's own log; kept for the laws that follow."""
    seed = case.plan.seed
    if seed not in _KNOWN:
        _KNOWN[seed] = json.dumps(as_json(run(case.log), knowledge))
    report: Report = json.loads(_KNOWN[seed])
    return report


def compare(seeds: range, knowledge: Knowledge, run: Analyse, law: Callable[[Case, Random], Iterable[Report]]) -> None:
    """Each report that `law` yields for a generated case says the same facts as the report on the case's own log."""
    for seed in seeds:
        case = make(seed)
        plain = facts(plainly(run, knowledge, case))
        for number, report in enumerate(law(case, Random(f"law {seed}"))):
            other = facts(report)
            assert other == plain, f"{case.id} variant {number}"


def chunked(data: bytes, sizes: Iterable[int]) -> Iterable[bytes]:
    """`data` in pieces of the given sizes, over and over."""
    at = 0
    wanted = list(sizes)
    index = 0
    while at < len(data):
        yield data[at : at + wanted[index % len(wanted)]]
        at += wanted[index % len(wanted)]
        index += 1


# --- form -------------------------------------------------------------------------------------------
@batches
def test_how_the_input_is_cut_changes_nothing(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    for seed in seeds:
        case, random = make(seed), Random(f"cut {seed}")
        data = case.log.encode()
        whole = plainly(run, knowledge, case)
        sizes_of_cuts = [[random.randint(1, 3000) for _ in range(9)]]
        if len(data) < 3500:
            sizes_of_cuts.append([1])
        elif seed % 4 == 0:
            sizes_of_cuts.append([random.randint(1, 40)])
        for sizes in sizes_of_cuts:
            assert as_json(run(chunked(data, sizes)), knowledge) == whole, (case.id, sizes)


@batches
def test_line_ends_change_nothing(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    def law(case: Case, random: Random) -> Iterable[Report]:
        unix = case.log.replace("\r\n", "\n")
        yield as_json(run(unix if unix != case.log else unix.replace("\n", "\r\n")), knowledge)
        yield as_json(run(unix.replace("\n", "\r")), knowledge)

    compare(seeds, knowledge, run, law)


PREFIXES: tuple[Callable[[int], str], ...] = (
    lambda n: f"2026-09-02T07:{n // 60 % 60:02d}:{n % 60:02d}.{118204823 + n % 1000}Z ",
    lambda n: f"2026-09-02T07:{n // 60 % 60:02d}:{n % 60:02d}.118204823Z stdout F ",
    lambda n: "[rank0]: ",
    lambda n: "subprocess | ",
)


@batches
def test_a_uniform_prefix_changes_no_fact(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    def law(case: Case, random: Random) -> Iterable[Report]:
        lines = case.log.removesuffix("\n").split("\n")
        prefix = random.choice(PREFIXES)
        yield as_json(run("".join(f"{prefix(n)}{line}\n" for n, line in enumerate(lines))), knowledge)

    compare(seeds, knowledge, run, law)


def zipped(data: bytes) -> bytes:
    """A zip archive of one log."""
    store = io.BytesIO()
    with zipfile.ZipFile(store, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("log.txt", data)
    return store.getvalue()


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "utf16le.txt": lambda data: codecs.BOM_UTF16_LE + data.decode().encode("utf-16-le"),
    "utf16be.txt": lambda data: codecs.BOM_UTF16_BE + data.decode().encode("utf-16-be"),
    "utf8bom.txt": lambda data: codecs.BOM_UTF8 + data,
    "log.txt.gz": gzip.compress,
    "log.txt.bz2": bz2.compress,
    "log.txt.zst": zstandard.ZstdCompressor().compress,
    "log.zip": zipped,
}


def opened(path: Path, lexicon: Lexicon) -> Analysis:
    """The analysis of a file or folder, as the command line makes it."""
    given = open_path(path)
    logs = [Source(log.name, log.encoding, log.chunks(), log.repairs) for log in given.logs]
    return analyse(given.source, logs, given.configs, lexicon, versions=built_in_history())


@batches
def test_encoding_and_compression_change_no_fact(
    run: Analyse, knowledge: Knowledge, lexicon: Lexicon, tmp_path: Path, seeds: range
) -> None:
    def law(case: Case, random: Random) -> Iterable[Report]:
        name = random.choice(sorted(FORMS))
        path = tmp_path / f"{case.plan.seed}-{name}"
        path.write_bytes(FORMS[name](case.log.encode()))
        yield as_json(opened(path, lexicon), knowledge)
        path.unlink()

    compare(seeds, knowledge, run, law)


# --- other text -------------------------------------------------------------------------------------
NOISE = (
    "",
    "Every 2.0s: nvidia-smi",
    "$ python run.py config/job.yaml",
    "wandb: Currently logged in as: someone",
    "- a line about nothing, with a percent sign % and a brace",
    "The following packages will be upgraded: libc6",
    "2 files changed, 11 insertions(+)",
)


@batches
def test_unrelated_lines_before_and_after_change_no_fact(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    def law(case: Case, random: Random) -> Iterable[Report]:
        def noise() -> str:
            lines = random.choices(NOISE, k=random.randint(1, 9))
            lines.append(
                "- "
                + "".join(
                    chr(random.choice((random.randrange(32, 123), random.randrange(0xA1, 0xD7FF)))) for _ in range(20)
                )
            )
            return "".join(f"{line}\n" for line in lines)

        yield as_json(run(noise() + case.log), knowledge)
        yield as_json(run(f"{case.log}\n{noise()}"), knowledge)

    compare(seeds, knowledge, run, law)


QUOTES = (
    "CUDA out of memory",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
    "OOM during training step, skipping batch 1/3",
    "Error running job: CUDA error: out of memory",
    "Killed",
    "Job stopped",
)


@batches
def test_names_paths_and_prompts_that_quote_errors_change_nothing(
    run: Analyse, knowledge: Knowledge, seeds: range
) -> None:
    for seed in seeds:
        plan, random = draw(seed), Random(f"quote {seed}")
        quote = random.choice(QUOTES)
        prompts = [{"prompt": quote}] if plan.mode == "ui" else [quote]
        quoting = replace(
            plan,
            name=quote.replace("/", "-"),
            settings={
                "datasets__folder_path": f"/data/{quote.replace('/', '-')}",
                "datasets__trigger_word": quote,
                f"sample__{'samples' if plan.mode == 'ui' else 'prompts'}": prompts,
                "sample__neg": f"{quote}\n{quote}",
                "trigger_word": quote,
            },
        )
        plain = facts(plainly(run, knowledge, write(plan)))
        other = facts(as_json(run(write(quoting).log), knowledge))
        for key in ("run.job_name", "values"):
            plain.pop(key)
            other.pop(key)
        for found in (plain, other):
            for bucket in found["buckets"]:
                bucket.pop("dataset")
            for oom in found["ooms"]:
                oom.pop("bucket", None)
        assert other == plain, (seed, quote)


# --- less text --------------------------------------------------------------------------------------
BEFORE_TRAINING = ("model_load", "quantize", "text_encoder_load", "setup", "cache_latents", "cache_text_embeddings")
CONFIDENCE = {"low": 0, "medium": 1, "high": 2}


def created(cut: Report, whole: Report) -> list[str]:
    """The facts that a report on part of a log claims and that the report on the whole does not bear out.

    A memory failure where the whole log tells of none; a size that no OOM of the whole log has; a batch shape, a
    step of an OOM, a total or a setting that the whole log does not give; or, of a failure with the same kind,
    signature and end, another class or more confidence. What a part cannot know may be null, unknown or incomplete,
    and a fatal error that stays while the line above it goes may be placed elsewhere: phases and steps at the end
    are inferred from what is left.
    """
    found: list[str] = []
    mine, theirs = cut["failure"], whole["failure"]
    remembered = {"gpu_oom", "host_oom"} if whole["oom_events"] else set()
    if mine["kind"] in MEMORY_KINDS and mine["kind"] != theirs["kind"] and mine["kind"] not in remembered:
        found.append(f"kind {mine['kind']}, whole {theirs['kind']}")
    if mine["kind"] == theirs["kind"] and mine["signature"] == theirs["signature"]:
        for key, value in cut["memory"].items():
            if value is not None and value != whole["memory"][key]:
                found.append(f"{key} {value}, whole {whole['memory'][key]}")
        if mine["class"] not in (None, theirs["class"]) and mine["confidence"] == "high":
            found.append(f"class {mine['class']} for certain, whole {theirs['class']}")
        if CONFIDENCE[mine["confidence"]] > CONFIDENCE[theirs["confidence"]]:
            found.append(f"confidence {mine['confidence']}, whole {theirs['confidence']}")
    shapes = {bucket["bucket"] for bucket in whole["buckets"]}
    found += [f"bucket {bucket['bucket']}" for bucket in cut["buckets"] if bucket["bucket"] not in shapes]
    for key in ("total_steps", "job_name", "family"):
        if cut["run"][key] is not None and cut["run"][key] != whole["run"][key]:
            found.append(f"{key} {cut['run'][key]}, whole {whole['run'][key]}")
    return found


def cuts(log: str, random: Random) -> Iterable[str]:
    """`log` without one line, without its head, its tail, or a block in the middle."""
    lines = log.split("\n")
    at, to = sorted(random.sample(range(1, len(lines)), 2))
    yield "\n".join(lines[:at] + lines[at + 1 :])
    yield "\n".join(lines[at:])
    yield "\n".join(lines[:at])
    yield "\n".join(lines[:at] + lines[to:])


@batches
def test_less_text_creates_no_fact(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    wrong = []
    for seed in seeds:
        case = make(seed)
        whole = plainly(run, knowledge, case)
        for number, part in enumerate(cuts(case.log, Random(f"less {seed}"))):
            try:
                cut = as_json(run(part), knowledge)
            except NothingRecognised:
                continue
            wrong += [(case.id, number, what) for what in created(cut, whole)]
            before = cut["failure"]["phase"] == whole["failure"]["phase"] in BEFORE_TRAINING
            if number < 2 and before and cut["failure"]["step"] not in (None, whole["failure"]["step"]):
                wrong.append((case.id, number, "step"))
    assert not wrong


# --- several attempts -------------------------------------------------------------------------------
def verdict(report: Report, card_told: bool) -> Any:
    """What is claimed of a run; without the fixes where another source tells the card that they must fit."""
    return {key: value for key, value in facts(report).items() if key != "remedies" or not card_told}


@batches
def test_an_earlier_attempt_never_changes_the_verdict_on_a_later_one(
    run: Analyse, knowledge: Knowledge, lexicon: Lexicon, tmp_path: Path, seeds: range
) -> None:
    for seed in seeds:
        case = make(seed)
        earlier = write(replace(draw(seed + 7 * 41 + 3), name=case.plan.name, mode="ui"))
        if case.truth.phase is None or f"# Running job: {case.plan.name}" not in case.log:
            continue  # its head was lost: nothing tells where it begins
        # an earlier message may tell the size of the card, and with it which fixes are enough
        told = "gpu_total" in earlier.truth.sizes
        plain = verdict(plainly(run, knowledge, case), told)
        appended = as_json(run(f"{earlier.log}\n{case.log}"), knowledge)
        assert verdict(appended, told) == plain, (case.id, earlier.id)
        logs = [Source(f"{n}_log.txt", "utf-8", [one.log.encode()]) for n, one in enumerate((earlier, case))]
        rotated = as_json(analyse("run", logs, [], lexicon, versions=built_in_history()), knowledge)
        assert verdict(rotated, told) == plain, (case.id, earlier.id)
        if seed % 5 == 0:
            folder = tmp_path / str(seed)
            (folder / "logs").mkdir(parents=True)
            (folder / "logs" / "0_log.txt").write_bytes(earlier.log.encode())
            (folder / "log.txt").write_bytes(case.log.encode())
            assert verdict(as_json(opened(folder, lexicon), knowledge), told) == plain, (case.id, earlier.id)


@batches
def test_every_evidence_line_says_what_it_is_cited_for(run: Analyse, knowledge: Knowledge, seeds: range) -> None:
    for seed in seeds:
        case = make(seed)
        lines = case.log.split("\n")
        for item in plainly(run, knowledge, case)["failure"]["evidence"]:
            if item["what"] not in ("bar", "frame", "slowdown"):
                assert item["text"].strip() in lines[item["line"] - 1], case.id
