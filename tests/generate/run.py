"""Writes the log of a plan: AI Toolkit's own order, from the config dump to the end, and what is true of it."""

from __future__ import annotations

from tests.generate import messages, outcomes
from tests.generate.ends import Dead
from tests.generate.outcomes import Fate
from tests.generate.plans import marks
from tests.generate.preparing import Preparing
from tests.generate.terminal import Bar
from tests.generate.truth import Case, Plan, Truth


def write(plan: Plan) -> Case:
    """The log of `plan` and its truth."""
    run = _Run(plan)
    run.go()
    assert run.truth is not None
    return Case(plan, run.terminal.text(), run.truth)


class _Run(Preparing):
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
        if plan.failure == "spike_cut":
            first = min(self.fate.skipped, default=plan.start)
            return self.random.choice(range(min(first + 2, plan.steps - 1), plan.steps))
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
        self._quiet_ends(step)

    def _quiet_ends(self, step: int) -> None:
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
        lost = self.terminal.cut()
        if failure == "spike_cut":
            self._end(_cut_short(self.plan, tuple(k for k in self.fate.skipped if k < step), lost=lost))
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


def _cut_short(plan: Plan, skipped: tuple[int, ...], *, lost: bool) -> Truth:
    """The truth of a log that just ends, perhaps with banners that never came out of the buffer."""
    if not skipped:
        return Truth(("unknown",), ("incomplete",), phase=("training_step",), oom_steps=())
    classes = outcomes.classes(plan, Fate(skipped))
    if lost:
        return Truth(("gpu_oom", "unknown"), ("incomplete",), (*classes, None), ("training_step",))
    return Truth(("gpu_oom",), ("incomplete",), classes, ("training_step",), ("vram",), (skipped[0],), skipped)


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
