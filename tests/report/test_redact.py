"""Labels, and what is not touched: the machinery of redaction. What must go is in tests/redaction."""

from __future__ import annotations

import time

import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report import build, json_
from postmortem.report.document import SettingRow
from postmortem.report.redact import Redactor, redact, settings_of
from postmortem.text import LogText, Words
from tests.conftest import Analyse
from tests.simulate import config, head


def test_the_same_thing_gets_the_same_label(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    text = redactor.text("/home/anna/x and /home/bert/y and /home/Anna/z")
    assert text == "/home/<user-1>/x and /home/<user-2>/y and /home/<user-1>/z"
    assert redactor.mapping() == {"<user-1>": "anna", "<user-2>": "bert"}


def test_case_tells_keys_apart(knowledge: Knowledge) -> None:
    text = Redactor(knowledge).text("token=abcdefgh1 token=ABCDEFGH1 token=abcdefgh1")
    assert text == "token=<secret-1> token=<secret-2> token=<secret-1>"


def test_labels_are_numbered_by_first_appearance(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"sample": {"prompts": ["kiln at dusk", "kiln at dawn"]}}])
    assert redactor.text("kiln at dawn / kiln at dusk") == "<prompt-1> / <prompt-2>"


def test_slashes_do_not_tell_paths_apart(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"datasets": [{"folder_path": "E:\\sets\\kiln"}]}])
    assert redactor.text(r"E:\sets\kiln E:/sets/kiln/ e:\\sets\\kiln") == "<dataset-1> <dataset-1>/ <dataset-1>"


def test_the_longest_value_wins(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"config": {"name": "kiln_glaze_v2"}, "trigger_word": "kiln_glaze"}])
    assert redactor.text("kiln_glaze_v2 kiln_glaze kiln_glazed") == "<job-1> <trigger-1> kiln_glazed"


def test_what_overlaps_leaves_nothing_sticking_out(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"datasets": [{"folder_path": "/home/anna/kiln"}]}])
    assert redactor.text("open /home/anna/kiln/x.png") == "open <dataset-1>/<file-1>.png"


@pytest.mark.parametrize(
    "value", ["a", "512", "lora", "train", "images", "1e-4", "adamw8bit", "cat", "step", "flux", "CUDA out of memory"]
)
def test_a_usual_value_spoils_no_line(value: str, knowledge: Knowledge) -> None:
    lines = (
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB at step 512",
        "    return torch.cat(x, dim=1)",
        "create LoRA network. base dim (rank): 16, lr: 1e-4, optimizer adamw8bit",
        "Caching latents to disk:  45%|####5     | 9/20 [00:03<00:19,  1.15s/it]",
        '    "type": "lora", "arch": "flux"',
        "train.batch_size in a step of a train run, images",
    )
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"config": {"name": value}, "trigger_word": value, "datasets": [{"folder_path": value}]}])
    for line in lines:
        assert redactor.text(line) == line


@pytest.mark.parametrize("value", ["a", "512", "lora"])
def test_a_usual_name_goes_from_its_own_place(value: str, run: Analyse, knowledge: Knowledge) -> None:
    analysis = run(head(config(), value) + "Error running job: no\n")
    hidden = redact(build(analysis, knowledge), knowledge, settings_of(analysis))
    assert hidden.run.job_name == LogText("<job-1>")


def test_our_own_words_are_never_touched(knowledge: Knowledge) -> None:
    row = SettingRow(path="train.batch_size", value=4, source=LogText("log"), line=3, first_fix=True)
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"trigger_word": "previews", "config": {"name": "batch_size"}}])
    assert redactor.document(row) == row
    words = Words("Make the previews smaller in ", LogText("previews of kiln"))
    shown = redactor._walk(words, "text", None)
    assert shown == Words("Make the previews smaller in ", LogText("<trigger-1> of kiln"))


def test_a_label_stays(knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    once = redactor.text("/home/anna/x token=abcdefgh1 by anna@example.org")
    assert redactor.text(once) == once


def test_a_public_model_stays_and_a_private_one_goes(run: Analyse, knowledge: Knowledge) -> None:
    for name, stays in (
        ("black-forest-labs/FLUX.1-dev", True),
        ("acme/faces", False),
        ("/models/flux1-dev.safetensors", True),
    ):
        analysis = run(head(config(model__name_or_path=name)) + "Error running job: no\n")
        hidden = json_.render(redact(build(analysis, knowledge), knowledge, settings_of(analysis)))
        assert (f'"value": "{name}"' in hidden) is stays


def test_the_document_says_that_it_is_redacted(run: Analyse, knowledge: Knowledge) -> None:
    report = build(run(head(config()) + "Error running job: no\n"), knowledge, "ko")
    assert report.redacted is None
    hidden = redact(report, knowledge)
    assert hidden.redacted is not None
    assert hidden.redacted.says == knowledge.texts["ko"]["redacted.says"]


@pytest.mark.parametrize(
    "unit",
    ["a", "/", "\\", "a/", "a@", "a.", "1.", ":", '"', "token=", "C:\\a b", "prompt: a ", "(hf_", "x.png ", "kiln "],
)
def test_a_hostile_text_takes_no_more_than_its_length(unit: str, knowledge: Knowledge) -> None:
    redactor = Redactor(knowledge)
    redactor.learn(None, [{"sample": {"prompts": ["kiln kiln kiln kiln at dusk"]}, "trigger_word": "kiln_kiln"}])
    started = time.process_time()
    redactor.text(unit * (200_000 // len(unit)))
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("steps: 20 # for Brightwell", "steps: 20"),
        ("# for Brightwell", ""),
        ("  name: 'a # b' # for Brightwell", "  name: 'a # b'"),
        ('  name: "a \\" # b"   # for Brightwell', '  name: "a \\" # b"'),
        ("  colour: a#b", "  colour: a#b"),
        ("  note: it's # for Brightwell", "  note: it's"),
        ("  steps: 20", "  steps: 20"),
    ],
)
def test_a_config_file_loses_its_comments(line: str, shown: str, knowledge: Knowledge) -> None:
    assert Redactor(knowledge).config(f"{line}\ntrain: x") == f"{shown}\ntrain: x"


def test_a_long_line_of_a_config_is_quick(knowledge: Knowledge) -> None:
    started = time.process_time()
    for unit in ("'a", '"a', "# ", " a#", "' #", "a "):
        Redactor(knowledge).config("k: " + unit * 4000)
    assert time.process_time() - started < 8
