"""Words that only name something (a path, a quotation, a bar) are no statement; the same words as a message are one."""

from __future__ import annotations

import pytest

from postmortem.model import Event
from postmortem.scan import Lexicon, scan
from postmortem.scan.recognise import Recogniser
from tests.conftest import Analyse
from tests.simulate import bar, config, head, training

OOM = "CUDA out of memory. Tried to allocate 2.00 GiB"


def roles(lexicon: Lexicon, line: str) -> list[str]:
    return [item.role for item in scan([line.encode()], lexicon).items if isinstance(item, Event)]


@pytest.mark.parametrize(
    "line",
    [
        f"Error running job: Dataset path does not exist: /data/torch.OutOfMemoryError: {OOM}",
        f"Error running job: Dataset path does not exist: C:\\sets\\{OOM}",
        f"Exception: Dataset path does not exist: /data/{OOM}",
        f"ValueError: Unknown caption '{OOM}'",
        f"ValueError: Unknown caption \u201cRuntimeError: {OOM}\u201d",
    ],
)
def test_a_path_or_a_quotation_in_an_error_of_another_kind(lexicon: Lexicon, line: str) -> None:
    assert not {"oom", "host_oom"} & set(roles(lexicon, line))


@pytest.mark.parametrize(
    "line",
    [
        f"torch.OutOfMemoryError: {OOM}",
        f"Error running job: {OOM}",
        f"Error loading /models/flux.safetensors: {OOM}",
        f'  File "/app/toolkit/util/quantize.py", line 308, in quantize_modeltorch.OutOfMemoryError: {OOM}',
        f"Failed to quantize blocks/0/attn: {OOM}",
        f"RuntimeError('{OOM}')",
        f'"info": "{OOM}"',
        f"mugs_v2 stopped: '{OOM}'",
    ],
)
def test_a_message_glued_to_other_words(lexicon: Lexicon, line: str) -> None:
    assert "oom" in roles(lexicon, line)


NAMES = (
    *("retry exit code 137", "exit code: 137", "Job process terminated with exit code 137.", "it's exit code 137"),
    *("traceback : Signal 9 (SIGKILL) received by PID 4711", "train.service: Failed with result 'oom-kill'."),
    *("Job process exited unexpectedly.", "Exited (137)", "exit code 139", f"x {OOM}", OOM, "Killed"),
    *("No space left on device", "(os error 1455)"),
)
"""What a job, a file or a prompt may be called."""


@pytest.mark.parametrize("name", NAMES)
def test_a_job_that_is_called_like_an_error(run: Analyse, name: str) -> None:
    def log(name: str, end: str = "") -> str:
        timer = f"Timer '{name} Timer':\n - 1.0000s avg - train_loop, num = 10\n"
        saved = f"Saved checkpoint to output/{name}/{name}.pt\n"
        return head(config(), name=name) + training(60, [], until=12, name=name) + timer + saved + end

    plain, named = run(log("mugs")), run(log(name))
    assert named.diagnosis.kind == plain.diagnosis.kind == "unknown"
    assert named.attempt.end.outcome == plain.attempt.end.outcome
    assert named.attempt.last_bar == plain.attempt.last_bar is not None
    assert run(log(name, "Killed\n")).attempt.end.outcome == "killed"
    failed = run(log(name, f"torch.OutOfMemoryError: {OOM}. GPU 0 has a total capacity of 23.51 GiB\n"))
    assert (failed.diagnosis.kind, failed.attempt.last_bar) == ("gpu_oom", plain.attempt.last_bar)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "line",
    [
        "prompt: {}",
        " - caption: a chest, {}",
        "caption: \u201c{}\u201d",
        'image 3 has "caption": "my {} lora"',
        "prompts: ['a', \"{}\", 'b']",
        "wandb: Syncing run {}",
        "Loading dataset `x {} y`",
    ],
)
def test_what_the_user_wrote_is_no_evidence(lexicon: Lexicon, name: str, line: str) -> None:
    assert set(roles(lexicon, line.format(name))) <= {"note"}


@pytest.mark.parametrize("name", ["exited (137) x", "Exited (137)", "my exit code 137 set"])
@pytest.mark.parametrize("path", ["D:\\data\\x {} y.jpg", "/data/x/{}.png", "config/{}.yaml", "~/sets/{} 1.webp"])
def test_the_name_of_a_file_is_no_evidence(lexicon: Lexicon, name: str, path: str) -> None:
    assert roles(lexicon, f"skipping {path.format(name)} (no caption)") == []


@pytest.mark.parametrize("text", ["/data/my exit code 137 set", "a chest, exit code 137, oil", "x exit code 137"])
def test_a_text_of_the_config_is_no_evidence_where_it_comes_again(run: Analyse, text: str) -> None:
    settings = config(datasets__folder_path=text)
    log = head(settings) + training(60, [], until=12)
    for line in (f"now at {text}\n", f"skipped: {text}, 3 images\n"):
        assert run(log + line).attempt.end.outcome == run(log).attempt.end.outcome, line
    assert run(log + "Process finished with exit code 137\n").attempt.end.outcome == "killed"


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("Process finished with exit code 137 (interrupted by signal 9: SIGKILL)", "exit"),
        ('time="12:00" level=error msg="task exited with code 137"', "exit"),
        ("Command '['python', 'run.py']' returned non-zero exit status 137.", "exit"),
        ("Command '['python', 'run.py']' died with <Signals.SIGKILL: 9>.", "kill"),
        ("Error encoding prompt: " + OOM, "oom"),
        ("Error running job: 'exit code 137'", "exit"),
        ("Error loading D:\\data\\x.jpg: " + OOM, "oom"),
        ('"reason": "OOMKilled"', "kill"),
        ("didn't end: exit code 137, can't go on", "exit"),
    ],
)
def test_a_message_that_quotes_is_one(lexicon: Lexicon, line: str, role: str) -> None:
    assert role in roles(lexicon, line)


@pytest.mark.parametrize("name", ["137", "exit code", "CUDA out of memory", "Tried to allocate", "code 137"])
def test_a_job_called_like_a_part_of_an_error_can_have_that_error(run: Analyse, name: str) -> None:
    log = head(config(), name=name) + training(60, [], until=12, name=name)
    assert run(log + "Process finished with exit code 137\n").attempt.end.outcome == "killed"
    assert run(log + f"Error running job: {OOM}\n").diagnosis.kind == "gpu_oom"


def test_a_banner_that_a_prompt_repeats_is_a_banner_all_the_same(run: Analyse) -> None:
    settings = config(trigger_word="OOM during training step, skipping batch 1/3")
    ooms = run(head(settings) + training(60, {20})).attempt.ooms
    assert [oom.step for oom in ooms] == [20] and ooms[0].caught


def test_a_log_that_ends_inside_the_bar_of_a_job_named_like_an_error(run: Analyse) -> None:
    name = "CUDA out of memory"
    log = head(config(), name=name) + training(60, [], until=12, name=name)
    whole = run(log + bar(name, 12, 60, 24, ""))
    assert whole.diagnosis.kind == "unknown"
    last = bar(name, 13, 60, 26, "")
    for cut in range(1, len(last)):
        assert run(log.rstrip("\n") + last[:cut]).diagnosis.kind == "unknown", last[:cut]


def test_an_error_glued_to_a_torn_bar_of_such_a_job(run: Analyse) -> None:
    name = "CUDA out of memory"
    log = head(config(), name=name) + training(60, [], until=12, name=name).rstrip("\n")
    analysis = run(f"{log}\r{name}:  21%|## Error running job: {OOM}\n")
    assert (analysis.diagnosis.kind, analysis.diagnosis.outcome) == ("gpu_oom", "failed")


def test_a_line_that_repeats_is_read_once(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    once = Recogniser._read

    def counting(self: Recogniser, bare: str, *rest: object) -> object:
        read.append(bare)
        return once(self, bare, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Recogniser, "_read", counting)
    found = scan([f"torch.OutOfMemoryError: {OOM}\nKilled\n".encode() * 500], Lexicon(lexicon.knowledge))
    assert len(read) == 2
    events = [item for item in found.items if isinstance(item, Event)]
    assert [event.place.line for event in events[:4]] == [1, 2, 3, 4]


def test_a_message_pasted_behind_another_line_is_shown_from_its_own_start(run: Analyse) -> None:
    before = 'File "n:\\app\\system\\python\\lib\\site-packages\\torch\\nn\\parameter.py", line 68, in __deepcopy__'
    evidence = run(f"{before}torch.OutOfMemoryError: {OOM}\n").diagnosis.evidence
    assert [item.text.reveal()[:19] for item in evidence] == [OOM[:19]]
    kept = run(f"torch.OutOfMemoryError: {OOM}\n").diagnosis.evidence
    assert kept[0].text.reveal().startswith("torch.OutOfMemoryError: ")


@pytest.mark.parametrize(
    "end", ["torch.OutOfMemoryError: CUDA out of mem", "torch.cuda.OutOfMemoryError: ", "torch.OutOfMemoryError"]
)
def test_an_error_whose_message_is_cut_off_is_what_its_name_says(run: Analyse, end: str) -> None:
    trace = '\nTraceback (most recent call last):\n  File "/opt/ai-toolkit/run.py", line 120, in main\n    job.run()\n'
    analysis = run(head(config()) + training(400, [], until=30) + trace + end)
    assert (analysis.diagnosis.kind, analysis.diagnosis.outcome) == ("gpu_oom", "failed")
