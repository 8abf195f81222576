"""Writes the log of a plan: AI Toolkit's own order, from the config dump to the end, and what is true of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.generate import messages, outcomes
from tests.generate.families import FAMILIES
from tests.generate.jobs import config, folder
from tests.generate.outcomes import Fate
from tests.generate.plans import marks
from tests.generate.terminal import Bar, Terminal
from tests.generate.truth import Case, Plan, Truth


class Dead(Exception):
    """The run is over; nothing more comes out of it."""


def write(plan: Plan) -> Case:
    """The log of `plan` and its truth."""
    run = _Run(plan)
    run.go()
    assert run.truth is not None
    return Case(plan, run.terminal.text(), run.truth)


class _Run:
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
        self.said = self.terminal.out

    def go(self) -> None:
        """All of it, until it ends or dies."""
        try:
            self._head()
            self._load()
            self._setup()
            self._data()
            self._baseline()
            self._train()
            self._finish()
        except Dead:
            pass

    # --- ends ---------------------------------------------------------------------------------------
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
        classes: tuple[str | None, ...] = (class_,) if told else ("startup", "caching", None)
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

    # --- the parts of a log -------------------------------------------------------------------------
    def _head(self) -> None:
        out, plan = self.terminal.out, self.plan
        out("Running 1 job")
        out(json.dumps(config(plan), indent=4))
        if plan.mode == "ui":
            out(f"Using SQLite database at {plan.root}/aitk_db.db")
            out('Job ID: "3f1c2d5e-77aa-4c30-9d2b-1f1f0a4b9c11"')
        for line in ("", "#" * 45, f"# Running job: {plan.name}", "#" * 45, "", "", "Running  1 process"):
            out(line)

    def _load(self) -> None:
        failure = self.plan.failure
        told = ""
        if failure == "gated":
            self.terminal.out(self.family.lines[0][0] if not self.family.lines[0][0].startswith("bar") else "")
            self._other(
                "401 Client Error.\n\nCannot access gated repo for url https://huggingface.co/org/model/resolve/main/"
                "model_index.json.\nAccess to model org/model is restricted. You must have access to it and be "
                "authenticated to access it. Please log in.",
                "model_load",
                "huggingface_hub.errors.GatedRepoError",
            )
        for index, (text, phase) in enumerate(self.family.lines):
            if text.startswith("bar:"):
                _, description, total = text.split(":")
                self._bar(description, int(total), partial=self._fails_in_bar(phase, text))
            else:
                self.terminal.out(text)
            self._load_failures(phase, last=self._is_last(index, phase))
            told = phase
        assert told

    def _fails_in_bar(self, phase: str, text: str) -> bool:
        return phase == "quantize" and text.startswith("bar::") and self.plan.failure in ("quantize", "pinned")

    def _is_last(self, index: int, phase: str) -> bool:
        """Whether this is the line of its phase at which a failure strikes."""
        lines = self.family.lines
        if phase == "quantize":
            bars = [at for at, (text, _) in enumerate(lines) if text.startswith("bar::")]
            said = [at for at, (_, what) in enumerate(lines) if what == "quantize"]
            return index == (bars or said)[0]
        if phase == "model_load":
            first = [at for at, (text, what) in enumerate(lines) if what == phase and "transformer" in text.lower()]
            return index == (first or [0])[0]
        return index == next(at for at, (_, what) in enumerate(lines) if what == phase)

    def _load_failures(self, phase: str, *, last: bool) -> None:
        failure = self.plan.failure
        if not last:
            return
        if failure == phase:
            self._gpu(phase, phase, "startup")
        if failure == "pinned" and phase == "quantize":
            self._host(messages.BARE, "pinned", "torch.AcceleratorError", "pinned_host", phase, "startup")
        wanted = "model_load" if self.family.arch == "sdxl" or self.plan.seed // 3 % 2 else "text_encoder_load"
        if failure == "cpu_alloc" and phase == wanted:
            message = messages.CPU.format(self.random.randint(10**8, 10**10))
            self._host(message, phase, "RuntimeError", "host_ram", phase, "startup")
        if failure == "memory_error" and phase == wanted:
            self._host("", phase, "MemoryError", "host_ram", phase, "startup")
        if failure == "page_file" and phase == "model_load":
            self._host(messages.PAGE_FILE, phase, "OSError", "pagefile", phase, "startup")
        if failure == "swallowed" and phase == "quantize":
            message, _ = messages.cuda_oom(self.random)
            self.terminal.out(f"Failed to quantize transformer_blocks.3.attn.to_q: {message}")
        self._kill_here(phase, "startup")

    def _bar(self, description: str, total: int, *, partial: bool = False, seconds: float = 0.11) -> None:
        bar = Bar(self.terminal, description, total)
        stop = self.random.randint(1, total - 1) if partial and total > 1 else total
        while bar.n < stop:
            bar.wait(seconds)
            bar.tick(to=min(stop, bar.n + max(1, total // 4)))
        if not partial:
            bar.close()
        else:
            self.terminal.err("\n")

    def _setup(self) -> None:
        out, plan = self.terminal.out, self.plan
        if plan.start:
            path = f"{self.output}/{plan.name}_{plan.start:09d}.safetensors"
            out(f"#### IMPORTANT RESUMING FROM {path} ####")
        out("create LoRA network. base dim (rank): 16, alpha: 16")
        out("neuron dropout: p=None, rank dropout: p=None, module dropout: p=None")
        out("create LoRA for Text Encoder: 0 modules.")
        out(f"create LoRA for U-Net: {self.family.modules} modules.")
        out("enable LoRA for U-Net")
        if plan.start:
            out(f"Loading from {path}")
            out(f"Found step {plan.start} in metadata, starting from there")
        if plan.failure == "setup":
            self._gpu("setup", "setup", "startup")
        if plan.start:
            out(f"Loading optimizer state from {self.output}/optimizer.pt")
            out("Updating optimizer LR from params")

    def _data(self) -> None:
        out, plan = self.terminal.out, self.plan
        path = folder(plan)
        what = "images" if self.family.frames == (1,) else "videos"
        if plan.failure == "dataset_missing":
            self._other(f"Dataset path does not exist: {path}", "dataset", "Exception")
        for number, table in enumerate(plan.buckets):
            files = sum(count for _, count in table)
            last = number == len(plan.buckets) - 1
            out(f"Dataset: {path}")
            out(f"  -  Preprocessing {what[:-1]} dimensions")
            self._bar("", files, seconds=0.002)
            out(f"  -  Found {files} {what}")
            out(f"Bucket sizes for {path}:")
            for label, count in table:
                out(f"{label}: {count} files")
            out(f"{len(table)} buckets made")
            out(f"Caching latents for {path}")
            out(" - Saving latents to disk")
            failing = plan.failure == "cache_latents" and last
            self._bar("Caching latents to disk", files, partial=failing, seconds=0.3)
            self._kill_here("cache_latents", "caching")
            if failing:
                self._cache_failure(path)
            if plan.text_cache:
                out(f"Caching text_embeddings for {path}")
                out(" - Saving text embeddings to disk")
                failing = plan.failure == "cache_text_embeddings" and last
                self._bar("Caching text embeddings to disk", files, partial=failing, seconds=0.2)
                if failing:
                    self._gpu("cache_text_embeddings", "cache_text_embeddings", "caching")

    def _cache_failure(self, path: str) -> None:
        message, sizes = messages.cuda_oom(self.random)
        self.terminal.out(f"Error processing image: {path}/img_08.png")
        self.terminal.out(f"Error: {message}")
        truth = Truth(("gpu_oom",), ("failed",), ("caching",), ("cache_latents",), ("vram",), None, (), sizes)
        self._die(message, "cache_latents", "torch.OutOfMemoryError", truth)

    def _baseline(self) -> None:
        if self.plan.start:
            return
        if not self.plan.baseline:
            self.terminal.out("Skipping first sample due to config setting")
            return
        self.terminal.out("Generating baseline samples before training")
        self._preview("baseline_sampling", 0)
        self.terminal.out()

    def _preview(self, phase: str, step: int) -> None:
        legacy = self.family.legacy
        title = "Generating Images" if legacy else "Generating Samples"
        bar = Bar(self.terminal, title, 2, below=legacy and phase == "mid_sampling")
        if self.plan.failure == phase:
            if self.random.random() < 0.5:
                bar.wait(8.0)
                bar.tick()
            bar.close(leave=not legacy)
            self._gpu(phase, phase, "sampling", step)
        for seconds in (8.8, 9.1):
            bar.wait(seconds)
            bar.tick()
        bar.close(leave=not legacy)

    # --- training -----------------------------------------------------------------------------------
    def _train(self) -> None:
        plan = self.plan
        self.main = bar = Bar(self.terminal, plan.name, plan.steps, start=plan.start)
        stops = set(marks(plan))
        ends = self._own_end(stops)
        counters = dict(zip(self.fate.skipped, outcomes.counters(self.fate.skipped), strict=True))
        loss = 0.4
        for step in range(plan.start, plan.steps):
            self._before(step, ends)
            bar.wait(self._seconds(step))
            if step in counters:
                self._skip(counters[step])
            else:
                self.last_completed = step
                loss = 0.7 * loss + 0.3 * self.random.uniform(0.05, 0.9)
                if plan.failure != "nan" or step < plan.start + 9:
                    bar.say(f"lr: 1.0e-04 loss: {loss:.3e}")
                else:
                    self.terminal.out("loss is nan")
                    bar.say("lr: 1.0e-04 loss: nan")
            self._after(step, stops)
            bar.tick(to=step + 1 if plan.era == "counts_completed" else step)

    def _seconds(self, step: int) -> float:
        plan = self.plan
        slow = plan.failure == "spill" and step >= plan.start + 12
        return plan.seconds * self.random.uniform(0.9, 1.1) * (60 if slow else 1)

    def _own_end(self, stops: set[int]) -> int | None:
        """The step in the middle of which a failure of another kind strikes."""
        plan = self.plan
        if plan.failure in (
            "shm",
            "worker",
            "stopped_ui",
            "ctrl_c",
            "silent",
            "sigkill",
            "assertion",
            "illegal_access",
        ):
            free = [step for step in range(plan.start + 1, plan.steps) if step - 1 not in stops]
            return self.random.choice(free)
        return plan.start + 22 if plan.failure == "spill" else None

    def _before(self, step: int, ends: int | None) -> None:
        """What happens in `step` instead of a result."""
        plan, failure = self.plan, self.plan.failure
        if failure == "exp_avg" and step == 1:
            self._die(
                "'exp_avg'" if plan.seed % 2 else "'state1'",
                "optimizer",
                "KeyError",
                Truth(("gpu_oom",), ("failed",), ("early_step",), ("training_step",), ("vram",), (1,), (0,)),
            )
        if step == self.fate.fatal:
            self._fatal(step)
        if step != ends:
            return
        class_ = outcomes.host_class(plan, step)
        if failure == "shm":
            self._host(messages.SHM, "loader", "RuntimeError", "shm", "training_step", class_, step)
        if failure == "worker":
            self._host(messages.WORKER, "loader", "RuntimeError", "host_ram", "training_step", class_, step)
        if failure == "sigkill":
            self._killed("training_step", class_, (step,))
        if failure == "assertion":
            self._other("Sequence length must be divisible by the block size", "forward", "AssertionError", step)
        if failure == "illegal_access":
            self._other(
                "CUDA error: an illegal memory access was encountered", "backward", "torch.AcceleratorError", step
            )
        self._quiet_ends()

    def _quiet_ends(self) -> None:
        out, failure = self.terminal.out, self.plan.failure
        if failure == "stopped_ui":
            for line in ("", "*" * 52, "    Stop signal received; terminating process.      ", "*" * 52):
                out(line)
        if failure == "ctrl_c":
            for line in ("", "=" * 40, "Job stopped", "=" * 40):
                out(line)
        if failure in ("stopped_ui", "ctrl_c"):
            self.terminal.status = 0
            self._end(Truth(("none",), ("stopped",), oom_steps=()))
        self.terminal.cut()
        if failure == "silent":
            self._end(Truth(("unknown",), ("incomplete",), phase=("training_step",), oom_steps=()))
        self._end(Truth(("vram_spill",), ("incomplete",), phase=("training_step",), oom_steps=()))

    def _fatal(self, step: int) -> None:
        plan = self.plan
        classes = outcomes.classes(plan, self.fate)
        ooms = self.fate.oom_steps
        truth = Truth(("gpu_oom",), ("failed",), classes, ("training_step",), ("vram",), (step,), ooms)
        if plan.failure == "cublas":
            self._die(messages.CUBLAS, "forward", "RuntimeError", truth)
        if plan.failure == "bare":
            truth = Truth(("gpu_oom",), ("failed",), classes, ("training_step",), ("vram", None), (step,), ooms)
            self._die(messages.BARE, "backward", "torch.AcceleratorError", truth)
        if plan.era == "uncaught":
            message, sizes = messages.cuda_oom(self.random)
            truth = Truth(("gpu_oom",), ("failed",), classes, ("training_step",), ("vram",), (step,), ooms, sizes)
            self._die(message, self.random.choice(("forward", "backward")), "torch.OutOfMemoryError", truth)
        if plan.seed % 3 == 0:
            self.terminal.out("Error in LoRAModule lora_down")
        self._die(messages.ABORT, "abort", "RuntimeError", truth)

    def _skip(self, count: int) -> None:
        out = self.terminal.out
        if self.plan.seed % 3 == 0:
            out("Error in LoRAModule lora_down")
        for line in ("", "#" * 48, f"# OOM during training step, skipping batch {count}/3 #", "#" * 48, ""):
            out(line)

    def _after(self, step: int, stops: set[int]) -> None:
        """Save, preview and timers inside `step`."""
        plan, out, bar = self.plan, self.terminal.out, self.main
        assert bar is not None
        if step in stops:
            bar.pause()
            out(f"\nSaving at step {step}")
            if plan.failure == "saving":
                self._gpu("saving", "saving", "saving", step)
            if plan.failure == "disk_full":
                self._other(
                    "Error while serializing: I/O error: No space left on device (os error 28)",
                    "disk",
                    "safetensors_rust.SafetensorError",
                    step,
                )
            self._saved(f"{plan.name}_{step:09d}.safetensors")
            if plan.failure != "after_save":
                self._preview("mid_sampling", step)
        lags = plan.era != "counts_completed"
        if lags and step != plan.start and (plan.ui_log or step % 100 == 0):
            bar.pause()  # around the logger, in each step where the UI wants its graph
        if plan.timers and step != plan.start and step % 10 == 0:
            if lags:
                bar.pause()
            out()
            out(f"Timer '{plan.name} Timer':")
            out(f" - {plan.seconds:.4f}s avg - train_loop, num = 10")
            out()

    def _saved(self, name: str) -> None:
        self.terminal.out(f"Saved checkpoint to {self.output}/{name}")
        self.terminal.out(f"Saved optimizer to {self.output}/optimizer.pt")

    def _finish(self) -> None:
        assert self.main is not None
        self.main.close()
        self.terminal.out()
        self._saved(f"{self.plan.name}.safetensors")
        if self.plan.failure != "after_save":
            self._preview("final", self.plan.steps)
        self.terminal.out()
        self.terminal.out()
        self.terminal.status = 0
        self._end(_completed(self.plan, self.fate))


def _completed(plan: Plan, done: Fate) -> Truth:
    if plan.failure == "swallowed":
        return Truth(("gpu_oom",), ("completed",), ("startup", None), ("quantize",), oom_steps=())
    if not done.skipped:
        return Truth(("none",), ("completed",), oom_steps=())
    return Truth(
        ("gpu_oom",),
        ("completed_with_skips",),
        outcomes.classes(plan, done),
        ("training_step",),
        ("vram",),
        (done.skipped[0],),
        done.skipped,
    )


Writer = Callable[[Plan], Case]
