"""How a run ends badly: what the program, its shell and the kernel say of it, and what is true of it then."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.generate import messages, outcomes
from tests.generate.families import FAMILIES
from tests.generate.terminal import Bar, Terminal
from tests.generate.truth import Plan, Truth


class Dead(Exception):
    """The run is over; nothing more comes out of it."""


class Ends:
    """A run's state, and the ways in which it may die."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.family = FAMILIES[plan.family]
        self.random = Random(f"run {plan.seed}")
        self.terminal = Terminal(plan.mode)
        self.fate = outcomes.fate(plan, self.random)
        self.truth: Truth | None = None
        self.last_completed: int | None = None
        self.main: Bar | None = None
        self.output = f"{plan.root}/output/{plan.name}"

    def _die(self, message: str, place: str, exception: str, truth: Truth) -> None:
        """An uncaught exception: the error line, the result block, the traceback."""
        out = self.terminal.out
        out(f"Error running job: {message}")
        for line in ("", "=" * 40, "Result:", " - 0 completed jobs", " - 1 failure", "=" * 40):
            out(line)
        self.terminal.flush()
        closing = f"{exception}: {message}" if message else exception
        self.terminal.err(messages.traceback(self.plan.root, messages.frames(place, self.family), closing))
        if self.plan.mode == "ui" and self.plan.era == "counts_completed":
            self.terminal.err("\nJob process terminated with exit code 1.\n")
        self._end(truth)

    def _end(self, truth: Truth) -> None:
        self.truth = replace(truth, last_completed=self.last_completed)
        raise Dead

    def _gpu(self, place: str, phase: str, class_: str, step: int | None = None) -> None:
        message, sizes = messages.cuda_oom(self.random)
        resource = ("vram",)
        steps = () if phase != "training_step" else (step,) if step is not None else None
        truth = Truth(
            ("gpu_oom",), ("failed",), (class_,), (phase,), resource, None if step is None else (step,), steps, sizes
        )
        self._die(message, place, "torch.OutOfMemoryError", truth)

    def _host(
        self, message: str, place: str, exception: str, resource: str, phase: str, class_: str, step: int | None = None
    ) -> None:
        truth = Truth(
            ("host_oom",),
            ("failed",),
            (class_,),
            (phase,),
            (resource,),
            None if step is None else (step,),
            (step,) if step is not None and phase == "training_step" else (),
        )
        self._die(message, place, exception, truth)

    def _killed(self, phase: str, class_: str | None, step: tuple[int | None, ...] | None = None) -> None:
        """Somebody kills the process: stdout loses its buffer, and who reports it depends on the capture."""
        told = not self.terminal.lose()
        err = self.terminal.err
        failure = self.plan.failure
        if failure == "kernel":
            err(
                "\n[ 8123.441907] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,"
                "task_memcg=/user.slice/user-1000.slice/session-4.scope,task=python,pid=4471,uid=1000\n"
                "[ 8123.442016] Out of memory: Killed process 4471 (python) total-vm:98215544kB, anon-rss:63310888kB, "
                "file-rss:71260kB, shmem-rss:20480kB, UID:1000 pgtables:131504kB oom_score_adj:0\n"
            )
        elif self.plan.mode == "ui" and failure == "sigkill":
            err("\nJob process terminated with signal SIGKILL.\n")
        else:
            err("train.sh: line 3: 20534 Killed                  python run.py config/job.yaml\nexit code: 137\n")
        classes: tuple[str | None, ...] = (class_,) if told else (class_, "startup", "caching", None)
        self._end(Truth(("host_oom",), ("killed",), classes, (phase,) if told else None, ("host_ram",), step, ()))

    def _other(self, message: str, place: str, exception: str, step: int | None = None) -> None:
        truth = Truth(("not_memory",), ("failed",), step=None if step is None else (step,), oom_steps=())
        self._die(message, place, exception, truth)

    def _kill_here(self, phase: str, class_: str) -> None:
        """Where host failures strike before training: at the place that this seed says."""
        places = {"kernel": ("model_load", "cache_latents"), "container": ("text_encoder_load", "cache_latents")}
        wanted = places.get(self.plan.failure)
        if wanted and wanted[self.plan.seed // 7 % 2] == phase:
            self._killed(phase, class_)
