"""What AI Toolkit prints while it loads a model, family by family (github.com/ostris/ai-toolkit, `load_model`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One model family: its arch, its status lines in order, and where its load code stands.

    A line is (text, phase); a line that starts with ``bar:`` is a progress bar ``bar:DESCRIPTION:TOTAL``.
    `legacy`: previews come from the old class, whose bar is called differently and wiped at the end.
    """

    arch: str
    flag: str | None
    lines: tuple[tuple[str, str], ...]
    path: str
    divisor: int
    modules: int
    legacy: bool = False
    frames: tuple[int, ...] = (1,)
    resolutions: tuple[int, ...] = (512, 768, 1024)
    label: str = ""


L, Q, T = "model_load", "quantize", "text_encoder_load"
_BLOCKS = ((" - quantizing {} transformer blocks", Q), ("bar::{}", Q), (" - quantizing extras", Q))
_WEIGHTS = ("bar:Loading weights:24", T)
_PIPE = (("Making pipe", L), ("Preparing Model", L))


def _blocks(count: int) -> tuple[tuple[str, str], ...]:
    return tuple((text.format(count), phase) for text, phase in _BLOCKS)


def _extension(arch: str, title: str, path: str, divisor: int, modules: int, blocks: int, **more: object) -> Family:
    lines = (
        (f"Loading {title} model", L),
        ("Loading transformer", L),
        ("Quantizing Transformer", Q),
        *_blocks(blocks),
        ("Text Encoder", T),
        _WEIGHTS,
        ("Quantizing Text Encoder", T),
        ("Loading VAE", L),
        *_PIPE,
        ("Model Loaded", "setup"),
    )
    return Family(arch, None, lines, f"extensions_built_in/diffusion_models/{path}", divisor, modules, **more)  # type: ignore[arg-type]


FAMILIES: dict[str, Family] = {
    "flux": Family(
        "flux",
        "is_flux",
        (
            ("Loading Flux model", L),
            ("Loading transformer", L),
            ("Quantizing transformer", Q),
            ("Loading VAE", L),
            ("Loading T5", T),
            _WEIGHTS,
            ("Quantizing T5", T),
            ("Loading CLIP", T),
            *_PIPE,
        ),
        "toolkit/stable_diffusion_model.py",
        32,
        494,
        legacy=True,
        label="FLUX.1",
    ),
    "sdxl": Family(
        "sdxl",
        "is_xl",
        (("bar:Loading pipeline components...:7", L),),
        "toolkit/stable_diffusion_model.py",
        64,
        722,
        legacy=True,
        label="SDXL",
    ),
    "zimage": _extension("zimage:turbo", "ZImage", "z_image/z_image.py", 32, 240, 30, label="Z-Image"),
    "qwen_image_edit_plus": _extension(
        "qwen_image_edit_plus", "Qwen Image", "qwen_image/qwen_image.py", 32, 840, 60, label="Qwen-Image-Edit-Plus"
    ),
    "krea2": Family(
        "krea2",
        None,
        (
            ("Loading Krea 2 model", L),
            ("Loading transformer (SingleStreamDiT)", L),
            ("  - fetching transformer weights", L),
            ("  - loading transformer state dict", L),
            ("Quantizing transformer", Q),
            *_blocks(28),
            ("Moving transformer to CPU", L),
            ("Loading Qwen3-VL text encoder from Qwen/Qwen3-VL-4B-Instruct", T),
            _WEIGHTS,
            ("Quantizing text encoder", T),
            ("Loading Qwen-Image VAE from Qwen/Qwen-Image", L),
            ("Model Loaded", "setup"),
        ),
        "extensions_built_in/diffusion_models/krea2/krea2.py",
        16,
        320,
        label="Krea 2",
    ),
    "chroma": Family(
        "chroma",
        None,
        (
            ("Using Chroma version: v48", L),
            ("Loading transformer", L),
            ("Double Blocks: 19", L),
            ("Single Blocks: 38", L),
            ("Quantizing transformer", Q),
            *_blocks(57),
            ("Loading T5", T),
            _WEIGHTS,
            ("Quantizing T5", T),
            ("Loading VAE", L),
            *_PIPE,
            ("Model Loaded", "setup"),
        ),
        "extensions_built_in/diffusion_models/chroma/chroma_model.py",
        32,
        418,
        label="Chroma",
    ),
    "wan21": Family(
        "wan21",
        None,
        (
            ("Loading Wan model", L),
            ("Loading transformer", L),
            ("Quantizing Transformer", Q),
            *_blocks(30),
            ("Loading UMT5EncoderModel", T),
            _WEIGHTS,
            ("Quantizing UMT5EncoderModel", T),
            ("Loading VAE", L),
            *_PIPE,
        ),
        "toolkit/models/wan21/wan21.py",
        16,
        400,
        frames=(33, 41, 81),
        resolutions=(480, 512, 640),
        label="Wan 2.1",
    ),
    "wan22_14b": Family(
        "wan22_14b",
        None,
        (
            ("Loading Wan model", L),
            ("Loading transformer 1", L),
            ("Quantizing Transformer 1", Q),
            *_blocks(40),
            ("Moving transformer 1 to CPU", L),
            ("Loading transformer 2", L),
            ("Quantizing Transformer 2", Q),
            *_blocks(40),
            ("Moving transformer 2 to CPU", L),
            ("Creating DualWanTransformer3DModel", L),
            ("Loading UMT5EncoderModel", T),
            _WEIGHTS,
            ("Quantizing UMT5EncoderModel", T),
            ("Loading VAE", L),
            *_PIPE,
        ),
        "extensions_built_in/diffusion_models/wan22/wan22_14b_model.py",
        16,
        800,
        frames=(33, 41, 81),
        resolutions=(480, 512, 640),
        label="Wan 2.2 14B",
    ),
    "ltx2": Family(
        "ltx2",
        None,
        (
            ("Loading LTX2 model", L),
            ("Loading transformer", L),
            ("Quantizing Transformer", Q),
            *_blocks(48),
            ("Moving transformer to CPU", L),
            ("Loading text encoder", T),
            _WEIGHTS,
            ("Quantizing Text Encoder", T),
            ("Loading VAEs and other components", L),
            *_PIPE,
            ("Model Loaded", "setup"),
        ),
        "extensions_built_in/diffusion_models/ltx2/ltx2.py",
        32,
        1344,
        frames=(49, 121),
        resolutions=(512, 768),
        label="LTX-2",
    ),
}
