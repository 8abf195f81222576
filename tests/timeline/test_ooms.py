"""Each failure once, and what the traceback behind it adds: the resource of an error that names none."""

from __future__ import annotations

import pytest

from postmortem.model import End, Frame, Oom, Traceback
from postmortem.scan import Lexicon
from postmortem.text import LogText
from postmortem.timeline import ooms, steps
from tests.diagnosis.build import at, event

PLACEMENT = steps.Placement((), (), None, None, True, False, False, True)
STEP = Frame(
    at(905), LogText("/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py"), "run", LogText("loss = f(batch)"), 9
)
PINS = Frame(
    at(906), LogText("/opt/ai-toolkit/toolkit/memory_management/manager.py"), "pin", LogText("t.data.pin_memory()"), 9
)
TORCH = Frame(at(906), LogText("/x/site-packages/torch/nn/functional.py"), "silu", LogText("torch._C.silu(x)"), 9)


def failure(lexicon: Lexicon, kind: str, resource: str | None, frames: tuple[Frame, ...]) -> Oom:
    """The one failure of a log that ends with an error of `kind` behind a traceback."""
    role = "oom" if kind == "gpu_oom" else kind
    error = event(role, 910, kind=kind, resource=resource)
    trace = Traceback(at(901), frames, error)
    (found,) = ooms.collect([error, trace], None, (), PLACEMENT, End("failed", at(910), error, trace), lexicon, None)
    return found


@pytest.mark.parametrize(
    ("kind", "resource", "frames", "found"),
    [
        # the call tells what ran out
        ("gpu_oom", None, (STEP,), ("gpu_oom", "vram")),
        ("gpu_oom", None, (STEP, PINS), ("host_oom", "pinned_host")),
        # the frames between are gone
        ("gpu_oom", None, (STEP, TORCH), ("gpu_oom", None)),
        # the message itself does
        ("gpu_oom", "vram", (STEP, PINS), ("gpu_oom", "vram")),
        ("host_oom", "shm", (STEP, PINS), ("host_oom", "shm")),
        # a failure of the host is none of the card, whatever the traceback shows
        ("host_oom", None, (STEP,), ("host_oom", None)),
        ("host_oom", None, (STEP, PINS), ("host_oom", None)),
    ],
)
def test_the_resource_of_an_error_behind_a_whole_traceback(
    lexicon: Lexicon, kind: str, resource: str | None, frames: tuple[Frame, ...], found: tuple[str, str | None]
) -> None:
    one = failure(lexicon, kind, resource, frames)
    assert (one.kind, one.resource) == found
