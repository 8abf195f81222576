"""What two or more attempts prove about each other, and that every format says it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import jsonschema
import msgspec
import pytest
from markdown_it import MarkdownIt
from rich.cells import cell_len

from postmortem.compare import Comparison, build, json_, markdown, terminal
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis, Source, analyse_each
from postmortem.report.encode_ticket import length
from postmortem.report.encode_ticket import markdown as in_markdown
from postmortem.report.redact import redact
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from postmortem.text import LogText, Words
from tests.report.tickets import ACTING, HARMLESS, balanced, dressed, parsed, shape, spoken
from tests.report.tickets import HOSTILE as HOSTILE_TEXTS
from tests.simulate import buckets, config, finished, head, training

ABORTS = {0, 1, 2, 3}


def log(skipped: Any = (), *, total: int = 40, until: int | None = None, name: str = "mugs", **changes: Any) -> str:
    """One attempt that trains and skips or aborts; without `until` it ends well."""
    steps = training(total, skipped, until=until, name=name)
    end = "" if until is not None or set(skipped) >= ABORTS else finished(name)
    return head(config(**changes), name) + buckets({"512x512": 4, "1024x1024": 2}) + steps + end


@pytest.fixture(scope="module")
def attempts(lexicon: Lexicon) -> Any:
    def read(*logs: str) -> list[Analysis]:
        sources = [Source(f"logs/{i}_log.txt", "utf-8", [text.encode()]) for i, text in enumerate(logs)]
        return list(analyse_each("run", sources, [], lexicon))

    return read


@pytest.fixture(scope="module")
def compare(attempts: Any, knowledge: Knowledge) -> Any:
    def made(*logs: str, lang: str = "en") -> Comparison:
        return build(attempts(*logs), knowledge, lang)

    return made


def ids(items: Sequence[Any] | None) -> list[str]:
    return [item.id.reveal() for item in items or []]


OFF: dict[str, Any] = {"train__gradient_checkpointing": False}


@pytest.mark.parametrize(
    ("failed", "retry", "conclusion", "proven"),
    [
        (log(ABORTS, **OFF), log(), "cause_confirmed", True),
        (log(ABORTS, datasets__resolution=[512, 1024]), log(datasets__resolution=[512]), "variable_proven", True),
        (log(ABORTS, **OFF), log(datasets__resolution=[512]), "several_unproven", False),
        (log(ABORTS), log(), "unchanged_passes", False),
        (log(ABORTS), log(ABORTS), "unchanged_same", False),
        (log(ABORTS, **OFF), log(ABORTS), "not_enough", True),
        (log(ABORTS, **OFF), log(ABORTS, datasets__resolution=[512]), "none_enough", True),
        (log(ABORTS, **OFF), log({20}), "later", False),
        (log({20, 21, 22, 23}, **OFF), log({2, 3, 4, 5}), "earlier", False),
        (log(ABORTS, **OFF), log(until=2), "not_yet", False),
        (log(), log(ABORTS, **OFF), "checkpointing_broke", True),
        (log(), log(ABORTS, train__batch_size=4), "variable_broke", True),
        (log(), log(ABORTS, train__batch_size=4, **OFF), "several_broke", False),
        (log(), log(ABORTS), "unchanged_broke", False),
        (log(until=2), log({20, 21, 22, 23}), "broke_unproven", False),
        (log(), log(), "nothing_failed", False),
        (log(ABORTS, model__arch="flux"), log(), "other_job", False),
        (log(ABORTS, datasets__folder_path="/data/jugs"), log({20}), "other_job", False),
    ],
)
def test_each_conclusion(compare: Any, failed: str, retry: str, conclusion: str, proven: bool) -> None:
    found = compare(failed, retry).conclusion
    assert (found.id, found.proven) == (conclusion, proven)


def test_a_retry_must_complete_the_failing_step_itself(compare: Any) -> None:
    failed = log(ABORTS, **OFF)
    short = compare(failed, log(until=3)).conclusion
    assert (short.id, short.run_until_step) == ("not_yet", 4)
    assert compare(failed, log(until=6)).conclusion.id == "cause_confirmed"


def test_a_bucket_spike_is_gone_only_after_enough_steps_without_a_skip(compare: Any) -> None:
    spiky = log({20}, **OFF)
    # one skip in forty steps; the bucket table of six batches makes an epoch of six steps, the skip was at 20
    assert compare(spiky, log(until=15)).conclusion.id == "not_yet"
    assert compare(spiky, log(until=35)).conclusion.id == "cause_confirmed"
    assert compare(spiky, log({30})).conclusion.id == "not_enough"


def test_batch_for_accumulation_is_one_variable_and_its_copies_are_too(compare: Any) -> None:
    failed = log(ABORTS, train__batch_size=4)
    same = compare(failed, log(train__batch_size=1, train__gradient_accumulation=4))
    assert ids(same.changes) == ["batch_for_accumulation"]
    assert same.conclusion.id == "variable_proven"
    paths = {edit.path.reveal() for edit in same.changes[0].edits}
    assert {"train.batch_size", "datasets[0].batch_size", "train.gradient_accumulation"} == paths
    other = compare(failed, log(train__batch_size=1, train__gradient_accumulation=2))
    assert ids(other.changes) == ["batch_size", "train.gradient_accumulation"]
    assert other.conclusion.id == "several_unproven"


def test_what_has_no_bearing_does_not_spoil_a_proof(compare: Any) -> None:
    prompts = [{"prompt": "a jug"}]
    found = compare(
        log(ABORTS, **OFF), log(train__steps=50, train__lr=0.1, sample__samples=prompts, sample__sample_every=9)
    )
    assert found.conclusion.id == "cause_confirmed"
    assert {"no_bearing", "prompts", "sample_every"} == set(ids(found.no_bearing))


def test_loader_workers_hold_system_memory_not_the_card(compare: Any) -> None:
    on_the_card = compare(log(ABORTS, **OFF), log(datasets__num_workers=0))
    assert on_the_card.conclusion.id == "cause_confirmed"
    assert ids(on_the_card.no_bearing) == ["dataloader"]
    shm = (
        head(config())
        + training(40, [], until=5)
        + "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. "
    )
    shm += "It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.\n"
    assert ids(compare(shm, log(datasets__num_workers=0)).changes) == ["dataloader"]


def test_a_setting_that_nobody_knows_counts_as_a_variable(compare: Any) -> None:
    found = compare(log(ABORTS, **OFF), log(train__new_switch=True))
    assert found.conclusion.id == "several_unproven"
    assert "train.new_switch" in ids(found.changes)
    assert "bearing_not_known" in [note.id for note in found.notes]


def test_of_several_the_least_likely_one_is_undone_first(compare: Any) -> None:
    found = compare(log(ABORTS, train__batch_size=4, **OFF), log(network__linear=16))
    assert found.conclusion.revert_first is not None
    assert found.conclusion.revert_first.reveal() == "network.linear"


def test_an_unknown_config_proves_nothing(compare: Any) -> None:
    bare = log(ABORTS).replace(json.dumps(config(), indent=4), "")
    found = compare(bare, log())
    assert (found.conclusion.id, found.variables, found.changes) == ("passes_config_unknown", None, None)
    assert [note.id for note in found.notes] == ["config_unknown_failed"]


def test_a_history_says_what_helped_what_did_not_and_what_is_next(compare: Any) -> None:
    first, second = log(ABORTS, train__batch_size=4, **OFF), log(ABORTS, train__batch_size=2, **OFF)
    going = compare(first, second, log(ABORTS, train__batch_size=2))
    assert [item.conclusion for item in going.history] == [None, "not_enough", "not_enough"]
    assert ids(going.in_vain) == ["batch_size", "gradient_checkpointing"]
    assert going.next_fix is not None
    assert going.next_fix.id == "reduce_batch_size"
    solved = compare(first, second, log(train__batch_size=2), log(train__batch_size=2))
    assert (solved.failed, solved.retry, solved.conclusion.id) == (2, 3, "cause_confirmed")
    assert ids(solved.helped) == ["gradient_checkpointing"]
    assert solved.next_fix is None


def test_a_fix_that_was_in_force_when_it_failed_is_not_offered_again(compare: Any) -> None:
    found = compare(log(ABORTS), log(ABORTS, **OFF))
    assert found.next_fix is not None
    assert found.next_fix.id != "enable_gradient_checkpointing"


def test_appended_attempts_are_told_apart(attempts: Any, knowledge: Knowledge) -> None:
    found = build(attempts(log(ABORTS, **OFF) + log()), knowledge)
    assert found.conclusion.id == "cause_confirmed"


def test_a_change_that_carried_the_run_further_has_helped(compare: Any) -> None:
    found = compare(log(ABORTS, **OFF), log({20}))
    assert found.conclusion.id == "later"
    assert ids(found.helped) == ["gradient_checkpointing"]
    assert "`" not in in_markdown(found.conclusion.text)


def test_a_preview_that_was_left_out_is_not_shown_to_fit(compare: Any) -> None:
    oom = "Generating baseline samples before training\n\rGenerating Samples:   0%|          | 0/1 [00:00<?, ?it/s]\n"
    oom += 'Traceback (most recent call last):\n  File "/opt/ai-toolkit/jobs/process/BaseSDTrainProcess.py", line 300, in sample\n'
    oom += "    self.sd.generate_images(gen_img_config_list)\n"
    oom += "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 8.00 GiB.\n"
    failed = head(config(train__disable_sampling=False)) + oom
    assert compare(failed, log(train__disable_sampling=True)).conclusion.id == "preview_left_out"
    # no preview, and nothing that says that none was wanted: the place was not passed
    assert compare(failed, log()).conclusion.id == "not_yet"


def test_another_name_is_a_warning(compare: Any) -> None:
    found = compare(log(ABORTS, **OFF), log(name="jugs"))
    assert "different_jobs" in [note.id for note in found.notes]
    assert found.conclusion.id == "cause_confirmed"


HOSTILE = "[red]x[/red]|`</td><script>\u202e\x1b[31m"


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("name", ["mugs", HOSTILE])
def test_every_format_is_whole_and_harmless(compare: Any, knowledge: Knowledge, lang: str, name: str) -> None:
    found = compare(
        log(ABORTS, name=name, **OFF), log(ABORTS, name=name), log(name=name, train__x="|<b>\x1b[0m"), lang=lang
    )
    texts = Texts(knowledge, lang)
    shown = terminal.render(found, texts)
    ticket = markdown.render(redact(found, knowledge), texts)
    for text in (shown, ticket):
        assert not set(text) & set("\x1b\u202e\r")
        assert "compare." not in text
        assert "None" not in text
    assert max(cell_len(line) for line in shown.splitlines()) <= 80
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(ticket)
    inline = [child for token in tokens if token.children for child in token.children]
    assert not [token for token in tokens if token.type == "html_block"]
    assert not [child for child in inline if child.type in ("html_inline", "image", "link_open")]
    assert "history" in json.loads(json_.render(found))


@pytest.mark.parametrize("hostile", HOSTILE_TEXTS)
def test_hostile_text_changes_no_token_of_the_ticket(compare: Any, knowledge: Knowledge, hostile: str) -> None:
    found = compare(log(ABORTS, **OFF), log(ABORTS), log(datasets__resolution=[512]))
    texts = Texts(knowledge, "en")
    tame, wild = (
        parsed(markdown.render(dressed(found, text), texts, max_chars=0)) for text in (HARMLESS, hostile[:200])
    )
    assert shape(wild) == shape(tame)
    assert not [run for run in spoken(wild) if ACTING.search(run)]


@pytest.mark.parametrize("hostile", ["`" * 200, "😀" * 200, "\\" * 200, "x"])
@pytest.mark.parametrize("flavor", ["github", "discord", "jira", "plain"])
@pytest.mark.parametrize("most", [1200, 2000, 3000])
def test_a_ticket_fits_its_budget(compare: Any, knowledge: Knowledge, hostile: str, flavor: str, most: int) -> None:
    found = dressed(compare(*[log(ABORTS, **OFF), log(ABORTS)] * 6, log(datasets__resolution=[512])), hostile)
    text = markdown.render(found, Texts(knowledge, "en"), flavor=flavor, max_chars=most)
    assert length(text) <= most
    assert balanced(text, flavor)
    assert ("--max-chars 0" in text.replace("\\", "")) == (
        length(markdown.render(found, Texts(knowledge, "en"), flavor=flavor, max_chars=0)) > most
    )


def test_the_languages_differ_in_words_only(compare: Any) -> None:
    logs = (log(ABORTS, **OFF), log(ABORTS), log(datasets__resolution=[512]))
    english, korean = (compare(*logs, lang=lang) for lang in ("en", "ko"))
    assert english.conclusion.text != korean.conclusion.text
    assert (english.conclusion.id, english.variables) == (korean.conclusion.id, korean.variables)


def test_the_json_is_what_its_types_say(compare: Any) -> None:
    def hook(kind: type) -> dict[str, Any]:
        assert kind in (LogText, Words)
        return {"type": "string"}

    (root,), parts = msgspec.json.schema_components([Comparison], schema_hook=hook, ref_template="#/$defs/{name}")
    value = json.loads(json_.render(compare(log(ABORTS, **OFF), log())))
    jsonschema.validate(value, {**root, "$defs": parts})
    assert value["conclusion"]["id"] == "cause_confirmed"
    assert value["changes"][0]["edits"][0] == {"path": "train.gradient_checkpointing", "from": False, "to": True}
