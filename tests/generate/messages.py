"""What a failing program says: allocator messages with their numbers, tracebacks with their frames."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tests.generate.families import Family

MIB = 1024.0
_CARDS = (12042.24, 16121.86, 24210.0, 24217.6, 32112.64, 81152.0)
_HINTS = {
    "new": "If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid "
    "fragmentation.  See documentation for Memory Management  "
    "(https://docs.pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    "middle": "If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)",
    "old": "If reserved but unallocated memory is large try setting max_split_size_mb to avoid fragmentation.  See "
    "documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF",
}


def _size(mib: float) -> str:
    return f"{mib / MIB:.2f} GiB" if mib >= MIB else f"{mib:.2f} MiB"


def _read(mib: float) -> float:
    """The number that a reader of `_size` can get back."""
    return round(mib / MIB, 2) * MIB if mib >= MIB else round(mib, 2)


def cuda_oom(random: Random) -> tuple[str, dict[str, float]]:
    """torch's message and the sizes (MiB) that it says."""
    wording = random.choice(sorted(_HINTS))
    total = random.choice(_CARDS)
    free = random.uniform(8, 900)
    tried = free + random.uniform(20, 4000)
    reserved = random.uniform(60, 480)
    used = total - free
    allocated = used - reserved - random.uniform(200, 500)
    memory: dict[str, float] = {
        "tried_to_allocate": _read(tried),
        "gpu_total": _read(total),
        "free": _read(free),
        "pytorch_allocated": _read(allocated),
        "reserved_unallocated": _read(reserved),
    }
    whose = ""
    if wording != "old":
        whose = f"Including non-PyTorch memory, this process has {_size(used)} memory in use. "
        memory["process_in_use"] = _read(used)
    return (
        f"CUDA out of memory. Tried to allocate {_size(tried)}. GPU 0 has a total "
        f"{'capacty' if wording == 'old' else 'capacity'} of {_size(total)} of which {_size(free)} is free. {whose}"
        f"Of the allocated memory {_size(allocated)} is allocated by PyTorch, and {_size(reserved)} is reserved by "
        f"PyTorch but unallocated. {_HINTS[wording]}"
    ), memory


ABORT = "OOM during training step 3 times in a row, aborting training"
BARE = (
    "CUDA error: out of memory\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be "
    "incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
CUBLAS = "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
SHM = (
    "DataLoader worker (pid 912) is killed by signal: Bus error. It is possible that dataloader's workers are out of "
    "shared memory. Please try to raise your shared memory limit."
)
WORKER = "DataLoader worker (pid 21573) is killed by signal: Killed. "
CPU = (
    "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate "
    "{} bytes. Error code 12 (Cannot allocate memory)"
)
PAGE_FILE = "The paging file is too small for this operation to complete. (os error 1455)"

_TORCH = "venv/lib/python3.11/site-packages/torch"
_RUN = "jobs/process/BaseSDTrainProcess.py"
_MOVE = (
    (f"{_TORCH}/nn/modules/module.py", 1371, "to", "return self._apply(convert)"),
    (f"{_TORCH}/nn/modules/module.py", 930, "_apply", "module._apply(fn)"),
    (f"{_TORCH}/nn/modules/module.py", 957, "_apply", "param_applied = fn(param)"),
    (f"{_TORCH}/nn/modules/module.py", 1357, "convert", "return t.to("),
)
_CALL = (
    (f"{_TORCH}/nn/modules/module.py", 1783, "_wrapped_call_impl", "return self._call_impl(*args, **kwargs)"),
    (f"{_TORCH}/nn/modules/module.py", 1794, "_call_impl", "return forward_call(*args, **kwargs)"),
    (f"{_TORCH}/nn/modules/linear.py", 134, "forward", "return F.linear(input, self.weight, self.bias)"),
)
_DATA = (
    (
        _RUN,
        2252,
        "run",
        "self.data_loader = get_dataloader_from_datasets(self.datasets, self.train_config.batch_size, self.sd)",
    ),
    (
        "toolkit/data_loader.py",
        709,
        "get_dataloader_from_datasets",
        "dataset = AiToolkitDataset(config, batch_size=dataset_batch_size, sd=sd)",
    ),
    ("toolkit/data_loader.py", 600, "__init__", "self.setup_epoch()"),
)
_STEP = (
    (_RUN, 2625, "run", "loss_dict = self.hook_train_loop(batch_list)"),
    (
        "extensions_built_in/sd_trainer/SDTrainer.py",
        2263,
        "hook_train_loop",
        "loss = self.train_single_accumulation(batch)",
    ),
)
Frames = tuple[tuple[str, int, str, str], ...]


def frames(place: str, family: Family) -> Frames:
    """The frames below `process.run()` of a failure in `place`, outermost first."""
    load = (_RUN, 1806, "run", "self.sd.load_model()")
    table: dict[str, Frames] = {
        "model_load": (
            load,
            (family.path, 314, "load_model", "pipe.transformer = pipe.transformer.to(self.device_torch)"),
            *_MOVE,
        ),
        "quantize": (
            load,
            (family.path, 306, "load_model", "quantize_model(self, transformer)"),
            (
                "toolkit/util/quantize.py",
                301,
                "quantize_model",
                "block.to(base_model.device_torch, dtype=base_model.torch_dtype, non_blocking=True)",
            ),
            *_MOVE,
        ),
        "pinned": (
            load,
            (family.path, 306, "load_model", "quantize_model(self, transformer)"),
            ("toolkit/util/quantize.py", 308, "quantize_model", 'block.to("cpu", non_blocking=True)'),
            *_MOVE,
        ),
        "text_encoder_load": (
            load,
            (family.path, 330, "load_model", "text_encoder.to(self.device_torch, dtype=dtype)"),
            *_MOVE,
        ),
        "setup": (
            (_RUN, 1983, "run", "self.network.force_to(self.device_torch, dtype=torch.float32)"),
            ("toolkit/network_mixins.py", 856, "force_to", "self.to(device, dtype)"),
            *_MOVE,
        ),
        "cache_latents": (
            *_DATA,
            ("toolkit/data_loader.py", 610, "setup_epoch", "self.cache_latents_all_latents()"),
            (
                "toolkit/dataloader_mixins.py",
                1966,
                "cache_latents_all_latents",
                "self._cache_one_latent(file_item, latent_path, cached_state_dict, needs_encode, to_disk, to_memory)",
            ),
            (
                "toolkit/dataloader_mixins.py",
                2039,
                "_cache_one_latent",
                "latent = self.sd.encode_images(imgs).squeeze(0)",
            ),
            *_CALL,
        ),
        "cache_text_embeddings": (
            *_DATA,
            ("toolkit/data_loader.py", 614, "setup_epoch", "self.cache_text_embeddings()"),
            (
                "toolkit/dataloader_mixins.py",
                2402,
                "cache_text_embeddings",
                "prompt_embeds: PromptEmbeds = self.sd.encode_prompt(caption)",
            ),
            *_CALL,
        ),
        "dataset": (
            *_DATA[:2],
            (
                "toolkit/data_loader.py",
                480,
                "__init__",
                'raise Exception(f"Dataset path does not exist: {self.dataset_path}")',
            ),
        ),
        "baseline_sampling": ((_RUN, 2481, "run", "self.sample(self.step_num)"), *_sample(family)),
        "mid_sampling": ((_RUN, 2732, "run", "self.sample(self.step_num)"), *_sample(family)),
        "saving": (
            (_RUN, 2716, "run", "self.save(self.step_num)"),
            (_RUN, 550, "save", "self.network.save_weights("),
            (
                "toolkit/network_mixins.py",
                647,
                "save_weights",
                "save_dict = self.get_state_dict(extra_state_dict=extra_state_dict, dtype=dtype)",
            ),
            ("toolkit/network_mixins.py", 595, "get_state_dict", "v = v.detach().clone()"),
        ),
        "disk": (
            (_RUN, 2716, "run", "self.save(self.step_num)"),
            (_RUN, 550, "save", "self.network.save_weights("),
            ("toolkit/network_mixins.py", 664, "save_weights", "save_file(save_dict, file, metadata)"),
        ),
        "forward": (
            *_STEP,
            (
                "extensions_built_in/sd_trainer/SDTrainer.py",
                2152,
                "train_single_accumulation",
                "noise_pred = self.predict_noise(",
            ),
            *_CALL,
        ),
        "backward": (
            *_STEP,
            (
                "extensions_built_in/sd_trainer/SDTrainer.py",
                2214,
                "train_single_accumulation",
                "self.accelerator.backward(loss)",
            ),
            (f"{_TORCH}/_tensor.py", 648, "backward", "torch.autograd.backward("),
        ),
        "optimizer": (
            _STEP[0],
            ("extensions_built_in/sd_trainer/SDTrainer.py", 2286, "hook_train_loop", "self.optimizer.step()"),
            (f"{_TORCH}/optim/adam.py", 238, "step", "has_complex = self._init_group("),
        ),
        "loader": (
            (_RUN, 2585, "run", "batch = next(dataloader_iterator)"),
            (f"{_TORCH}/utils/data/dataloader.py", 732, "__next__", "data = self._next_data()"),
            (f"{_TORCH}/utils/data/_utils/signal_handling.py", 73, "handler", "_error_if_any_worker_fails()"),
        ),
        "abort": ((_RUN, 2636, "run", f'raise RuntimeError("{ABORT}")'),),
        "timer": (
            (_RUN, 2780, "run", "self.timer.print()"),
            ("toolkit/timer.py", 61, "print", "avg = sum(timing) / len(timing)"),
        ),
    }
    return table[place]


def _sample(family: Family) -> Frames:
    if family.legacy:
        return (
            (_RUN, 378, "sample", "self.sd.generate_images(gen_img_config_list, sampler=sample_config.sampler)"),
            ("toolkit/stable_diffusion_model.py", 1617, "generate_images", "img = pipeline("),
            *_CALL,
        )
    return (
        (_RUN, 378, "sample", "self.sd.generate_images(gen_img_config_list, sampler=sample_config.sampler)"),
        ("toolkit/models/base_model.py", 702, "generate_images", "img = self.generate_single_image("),
        (family.path, 365, "generate_single_image", "img = pipeline("),
        *_CALL,
    )


def traceback(root: str, below: Sequence[tuple[str, int, str, str]], closing: str, *, windows: bool = False) -> str:
    """A Python traceback from `run.py` down to `below`, and its last lines."""
    head = (
        ("run.py", 147, "<module>", "main()"),
        ("run.py", 132, "main", "raise e"),
        ("run.py", 120, "main", "job.run()"),
        ("jobs/ExtensionJob.py", 22, "run", "process.run()"),
    )
    lines = ["Traceback (most recent call last):"]
    for path, line, function, code in (*head, *below):
        full = f"{root}/{path}"
        lines.append(f'  File "{full}", line {line}, in {function}\n    {code}')
    return "\n".join([*lines, closing]) + "\n"
