"""Laws of redaction over random text: it is stable, doing it twice changes nothing, and no secret is left in pieces."""

from __future__ import annotations

import re

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from postmortem.knowledge.load import load
from postmortem.report.redact import Redactor
from postmortem.report.redact.labels import LABEL

KNOWLEDGE = load(cache=False)
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NOISE = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="<>"), max_size=60)
PIECES = st.sampled_from(
    [
        *(
            "/home/",
            "C:\\Users\\",
            "token=",
            "@",
            "://",
            ":",
            "/",
            "\\",
            "\n",
            '"',
            "'",
            " ",
            "prompt: ",
            ".png",
            "hf_",
            "user@host:~$ ",
        ),
        *(
            "/data/",
            "<user-1>",
            "<",
            ">",
            "%20",
            "10.0.0.1",
            "\\n",
            "Dataset: ",
            "  45%|##| 1/2 [",
            "wandb.ai/",
            "\\\\nas\\x\\",
        ),
    ]
)
TEXT = st.lists(st.one_of(NOISE, PIECES), max_size=12).map("".join)
SECRET = st.text(alphabet="abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789", min_size=8, max_size=30).filter(
    lambda text: not text.isdigit() and re.search("[a-zA-Z]{3}.*[0-9]|[0-9].*[a-zA-Z]{3}", text) is not None
)
AROUND = st.text(alphabet=" \t,;()[]{}\"'=|", max_size=8)


@QUICK
@given(TEXT)
def test_twice_is_once(text: str) -> None:
    redactor = Redactor(KNOWLEDGE)
    once = redactor.text(text)
    assert redactor.text(once) == once


@QUICK
@given(TEXT)
def test_the_same_text_gives_the_same(text: str) -> None:
    assert Redactor(KNOWLEDGE).text(text) == Redactor(KNOWLEDGE).text(text)


@QUICK
@given(TEXT)
def test_what_stays_is_what_was_there(text: str) -> None:
    """Nothing is invented: what stands between the labels stands in the text, in that order."""
    shown = Redactor(KNOWLEDGE).text(text)
    at = 0
    for piece in LABEL.split(shown):
        found = text.find(piece, at)
        assert found >= 0
        at = found + len(piece)


@QUICK
@given(SECRET, AROUND, AROUND, TEXT)
def test_no_piece_of_a_learnt_value_is_left(secret: str, before: str, after: str, noise: str) -> None:
    pieces = [secret[at : at + 6].casefold() for at in range(len(secret) - 5)]
    assume(not any(piece in noise.casefold() for piece in pieces))
    redactor = Redactor(KNOWLEDGE)
    redactor.learn(None, [{"config": {"name": secret}}])
    shown = redactor.text(
        f"{noise}\n{before} {secret} {after}\n{secret}_000000250.safetensors /x/{secret}/y {secret.upper()}"
    )
    assert not [piece for piece in pieces if piece in shown.casefold()]


@QUICK
@given(
    SECRET,
    st.sampled_from(
        ["password={}", "Authorization: Bearer {}x", "https://u:{}@h.example.org/", "?token={}&x=1", "/home/{}/x"]
    ),
)
def test_no_piece_of_a_secret_is_left(secret: str, form: str) -> None:
    shown = Redactor(KNOWLEDGE).text("a " + form.format(secret) + " b")
    assert not [at for at in range(len(secret) - 5) if secret[at : at + 6] in shown]
    assert shown.startswith("a ")
    assert shown.endswith(" b") or "Authorization" in form  # a header goes to the end of its line


@QUICK
@given(st.lists(SECRET, min_size=2, max_size=6, unique_by=str.casefold))
def test_a_label_stands_for_one_thing(names: list[str]) -> None:
    redactor = Redactor(KNOWLEDGE)
    lines = [f"/home/{name}/x" for name in names]
    first = [redactor.text(line) for line in lines]
    assert len(set(first)) == len(names)
    assert [redactor.text(line) for line in lines] == first
    assert sorted(redactor.mapping().values()) == sorted(names)
