"""Checks of short jobs, with and without the log of a stable run."""

from __future__ import annotations

import json
from typing import Any

from postmortem.check import Check, build
from postmortem.check.document import JobItem
from postmortem.jobconfig import ConfigText, each
from postmortem.knowledge.load import load
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.scan import Lexicon
from tests.simulate import config, finished, head, training

BASE = load(cache=False)
LEXICON = Lexicon(BASE)


def checked(
    *processes: dict[str, Any], gpu_gib: float | None = None, log: str | None = None, lang: str = "en"
) -> Check:
    """The check of a job of these processes."""
    job = {"job": "extension", "config": {"name": "[name]", "process": list(processes)}}
    configs = each(ConfigText("job.json", json.dumps(job)), BASE)
    gpu_mib = None if gpu_gib is None else gpu_gib * 1024
    return build("job.json", configs, BASE, lang, gpu_mib=gpu_mib, log=analysed(log) if log is not None else None)


def job(gpu_gib: float | None = None, log: str | None = None, **changes: Any) -> JobItem:
    """The check of one Z-Image job; `changes` are dotted paths with ``__``."""
    return checked(config(**changes), gpu_gib=gpu_gib, log=log).jobs[0]


def analysed(text: str) -> Analysis:
    """The analysis of a log."""
    return analyse("run.log", [Source("log", "utf-8", [text.encode()])], [], LEXICON)


def stable(**changes: Any) -> str:
    """The log of a run that completed."""
    return head(config(**changes)) + training(40, []) + finished()
