"""One cause one group, no two causes in a group; and nothing else matters."""

from __future__ import annotations

import re
from functools import lru_cache
from io import BytesIO
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postmortem.fleet.fingerprint import fingerprint, identity
from postmortem.intake import open_path, open_stream
from postmortem.knowledge.schema import Knowledge
from postmortem.reading import analysis_of
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.fleet.corpus import CAUSES, SAME, cases
from tests.forms import SAME as FORMS
from tests.simulate import config, finished, head, training

EACH = 6
TRACE = (
    "Error running job: {said}\n\nTraceback (most recent call last):\n"
    '  File "{root}/run.py", line 120, in main\n    job.run()\n'
    '  File "{root}/toolkit/{file}.py", line {line}, in {function}\n    do()\n{library}{closing}\n'
)


def failing(
    closing: str,
    said: str = "x",
    root: str = "/home/a/ai-toolkit",
    file: str = "prompt_utils",
    function: str = "load",
    line: int = 10,
    library: str = "",
) -> str:
    """A log that ends with an error of the program's own."""
    trace = TRACE.format(
        said=said, root=root, file=file, function=function, line=line, library=library, closing=closing
    )
    return head(config()) + trace


@pytest.fixture(scope="session")
def prints(run: Analyse, knowledge: Knowledge) -> dict[str, set[str | None]]:
    """By cause: the fingerprints of its logs."""
    return {name: {fingerprint(run(case.log), knowledge) for case in cases(name, EACH)} for name in CAUSES}


@pytest.mark.parametrize("name", CAUSES)
def test_one_cause_is_one_group(prints: dict[str, set[str | None]], name: str) -> None:
    assert len(prints[name]) == 1 and None not in prints[name]


def test_no_two_causes_are_in_a_group(prints: dict[str, set[str | None]]) -> None:
    by_print: dict[str | None, set[str]] = {}
    for name, found in prints.items():
        for one in found:
            by_print.setdefault(one, set()).add(SAME.get(name, name))
    assert {one: names for one, names in by_print.items() if len(names) > 1} == {}


@lru_cache(maxsize=1)
def some() -> tuple[str, ...]:
    """A log of each of a few causes that come through every form whole."""
    names = ("checkpointing off, first steps", "page-locked memory", "dataset missing", "disk full")
    return tuple(next(cases(name, 1)).log for name in names)


@pytest.mark.parametrize("form", FORMS)
def test_how_the_log_came_does_not_matter(run: Analyse, knowledge: Knowledge, lexicon: Lexicon, form: str) -> None:
    for log in some():
        opened = open_stream(BytesIO(FORMS[form](log)))
        assert identity(analysis_of(opened, lexicon), knowledge) == identity(run(log), knowledge)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # a user's path, a line of another version, another key
        (
            failing("KeyError: 'a'", root="/home/a/ai-toolkit", line=10),
            failing("KeyError: 'b c'", root="D:/AI/ai-toolkit", line=99),
        ),
        # numbers
        (
            failing("ValueError: expected 4 channels, got 3"),
            failing("ValueError: expected 16 channels, got 1"),
        ),
        # an exception's module moves between versions
        (
            failing("safetensors_rust.SafetensorError: Error while deserializing header"),
            failing("safetensors.SafetensorError: Error while deserializing header"),
        ),
        # Python's own modules and installed packages below the program's frame
        (
            failing(
                "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
                library='  File "/usr/lib/python3.10/json/decoder.py", line 355, in raw_decode\n    raise\n',
            ),
            failing(
                "json.decoder.JSONDecodeError: Expecting value: line 9 column 2 (char 7)",
                library='  File "C:\\Python311\\Lib\\json\\__init__.py", line 346, in loads\n    raise\n',
            ),
        ),
        # Windows speaks the user's language
        (
            failing("OSError: The paging file is too small for this operation to complete. (os error 1455)"),
            failing("OSError: 이 작업을 완료하기 위한 페이징 파일이 너무 작습니다. (os error 1455)"),
        ),
    ],
)
def test_what_is_of_one_user_or_version_does_not_matter(
    run: Analyse, knowledge: Knowledge, one: str, other: str
) -> None:
    assert fingerprint(run(one), knowledge) == fingerprint(run(other), knowledge) is not None


@pytest.mark.parametrize(
    "other",
    [
        failing("TypeError: expected 4 channels, got 3"),
        failing("ValueError: no captions found in this folder"),
        failing("ValueError: expected 4 channels, got 3", function="save"),
        failing("ValueError: expected 4 channels, got 3", file="data_loader"),
    ],
)
def test_another_error_is_another_group(run: Analyse, knowledge: Knowledge, other: str) -> None:
    one = failing("ValueError: expected 4 channels, got 3")
    assert fingerprint(run(one), knowledge) != fingerprint(run(other), knowledge)


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["/home/{}/ai-toolkit", "C:/Users/{}/ai-toolkit", "/workspace/{}"]),
    st.text("abcxyzÖ도 _-.", min_size=1, max_size=12).map(str.strip).filter(bool),
    st.integers(1, 9999),
    st.floats(0.01, 1e6, allow_nan=False),
    st.text(max_size=20),
)
def test_no_name_number_or_path_matters(
    run: Analyse, knowledge: Knowledge, root: str, user: str, line: int, number: float, key: str
) -> None:
    plain = failing("KeyError: 'x'")
    assert fingerprint(run(failing(f"KeyError: {key!r}", root=root.format(user), line=line)), knowledge) == fingerprint(
        run(plain), knowledge
    )
    sized = failing(f"RuntimeError: The size of tensor a ({number}) must match the size of tensor b ({line})")
    other = failing("RuntimeError: The size of tensor a (64) must match the size of tensor b (128)")
    assert fingerprint(run(sized), knowledge) == fingerprint(run(other), knowledge)


def test_an_attempt_has_the_fingerprint_that_it_has_alone(run: Analyse, knowledge: Knowledge) -> None:
    log = head(config(train__gradient_checkpointing=False)) + training(400, {0, 1, 2, 3})
    assert identity(run(log + log + log), knowledge) == identity(run(log), knowledge)


def test_a_fingerprint_holds_no_text_for_people(run: Analyse, knowledge: Knowledge) -> None:
    log = head(config(train__gradient_checkpointing=False)) + training(400, {0, 1, 2, 3})
    mute = msgspec.structs.replace(knowledge, texts={"en": {}, "ko": {}})
    assert fingerprint(run(log), mute) == fingerprint(run(log), knowledge)


def test_nothing_of_the_users_own_is_in_an_identity(run: Analyse, knowledge: Knowledge) -> None:
    for name in CAUSES:
        for case in cases(name, 1):
            found = identity(run(case.log), knowledge)
            assert found is not None
            values = [getattr(found, field) or "" for field in found.__struct_fields__]
            assert not any(case.plan.name in value or case.plan.root in value for value in values)
            assert not re.search(r"\d", " ".join(values).replace(".py", "")), values


def test_which_version_ran_does_not_matter(lexicon: Lexicon, knowledge: Knowledge) -> None:
    # the same failure: the log's version is surely one that has the regression, surely none, or not known
    names = ("regression-klein-load-inside", "regression-klein-load-outside", "regression-klein-load-unknown")
    fixtures = Path(__file__).parents[2] / "fixtures"
    found = {fingerprint(analysis_of(open_path(fixtures / name / "log.txt"), lexicon), knowledge) for name in names}
    assert len(found) == 1 and None not in found


def test_settings_that_the_log_does_not_hold_are_not_taken_for_good_ones(run: Analyse, knowledge: Knowledge) -> None:
    steps = training(400, {0, 1, 2, 3})
    found = {
        name: identity(run(log), knowledge) for name, log in (("without", steps), ("with", head(config()) + steps))
    }
    assert found["without"] is not None and found["without"].mechanism == "settings_unknown"
    assert found["with"] is not None and found["with"].mechanism is None


def test_a_run_that_did_not_fail_has_none(run: Analyse, knowledge: Knowledge) -> None:
    assert fingerprint(run(head(config()) + training(40, []) + finished()), knowledge) is None
