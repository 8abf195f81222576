"""A run up to its first step: config dump, model, network, datasets and caches, the preview before training."""

from __future__ import annotations

import json

from tests.generate import messages
from tests.generate.ends import Ends
from tests.generate.jobs import config, folder
from tests.generate.terminal import Bar
from tests.generate.truth import Truth


class Preparing(Ends):
    """What comes before the first step."""

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
