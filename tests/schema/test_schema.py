"""The published schemas: complete, current, and true of what the commands write."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report import json_
from postmortem.scan import Lexicon
from postmortem.schema import DOCUMENTS, schema
from postmortem.schema.build import EVERYWHERE, keys, meaning
from tests.cli.test_main import postmortem
from tests.test_fixtures import FIXTURES, NAMES, report_on

LOG = FIXTURES / "early-step-checkpointing-off" / "log.txt"
FINE = FIXTURES / "ok-clean-sdxl" / "log.txt"


def closed(document: str) -> Any:
    """A validator that takes no key that the schema does not tell of."""
    whole = schema(document)
    for part in whole["$defs"].values():
        if "properties" in part:
            part["additionalProperties"] = False
    jsonschema.Draft202012Validator.check_schema(whole)
    return jsonschema.Draft202012Validator(whole)


def structs() -> dict[str, type[msgspec.Struct]]:
    found: dict[str, type[msgspec.Struct]] = {}

    def walk(kind: Any) -> None:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if found.setdefault(kind.__name__, kind) is not kind:
                raise AssertionError(f"two objects are called {kind.__name__}")
            if kind.__name__ not in done:
                done.add(kind.__name__)
                for field in msgspec.structs.fields(kind):
                    walk(field.type)
        for below in typing.get_args(kind):
            walk(below)

    done: set[str] = set()
    for root in DOCUMENTS.values():
        walk(root)
    return found


def test_every_key_has_a_meaning_and_no_meaning_is_stale() -> None:
    known = {name: {field.encode_name for field in msgspec.structs.fields(kind)} for name, kind in structs().items()}
    missing = [f"{name}.{key}" for name, fields in known.items() for key in sorted(fields) if not meaning(name, key)]
    assert missing == []
    told = keys()
    stale = [f"{name}.{key}" for name in told if name != EVERYWHERE for key in told[name] if key not in known[name]]
    assert stale == []
    everywhere = set().union(*known.values())
    assert set(told[EVERYWHERE]) <= everywhere
    for document in DOCUMENTS:
        for name, part in schema(document)["$defs"].items():
            assert all(value.get("description") for value in part.get("properties", {}).values()), name


def test_sizes_say_their_unit() -> None:
    for name in ("Memory", "LedgerPart", "Span", "ForecastPart"):
        for field in msgspec.structs.fields(structs()[name]):
            if field.type in (float, float | None):
                assert "MiB" in (meaning(name, field.encode_name) or ""), field.name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_fixture_is_as_the_schema_says(name: str, lang: str, lexicon: Lexicon, validator: Any) -> None:
    validator.validate(json.loads(json_.render(report_on(name, lexicon, lang))))


@pytest.fixture(scope="module")
def validator() -> Any:
    return closed("report")


def test_keys_come_in_the_order_of_the_contract(knowledge: Knowledge, lexicon: Lexicon) -> None:
    known = structs()

    def in_order(kind: Any, value: Any) -> Iterator[None]:
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and isinstance(value, dict):
            fields = msgspec.structs.fields(kind)
            fields = tuple(one for one in fields if one.encode_name in value or one.default is not msgspec.UNSET)
            assert list(value) == [field.encode_name for field in fields]
            for field in fields:
                yield from in_order(field.type, value[field.encode_name])
            yield None
        elif isinstance(value, list) or typing.get_origin(kind) is dict:
            for item in value.values() if isinstance(value, dict) else value:
                for below in typing.get_args(kind):
                    yield from in_order(below, item)
        else:
            for below in typing.get_args(kind):
                yield from in_order(below, value)

    for name in NAMES[::6]:
        value = json.loads(json_.render(report_on(name, lexicon)))
        assert len(list(in_order(known["Report"], value))) > 20


def test_what_the_other_commands_write_is_as_their_schema_says(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert postmortem("analyze", str(LOG), "--format", "json", "-o", str(report)).returncode == 1
    config = tmp_path / "config.yaml"
    config.write_text("config: {process: [{type: x, model: {arch: flux}, train: {batch_size: 1}}]}", encoding="utf-8")
    for document, arguments in (
        ("compare", ("compare", str(LOG), str(FINE))),
        ("check", ("check", str(config), "--gpu", "24")),
        ("verify", ("verify", str(report), str(LOG))),
        ("verify", ("verify", str(report), str(FINE))),
    ):
        done = postmortem(*arguments, "--format", "json")
        closed(document).validate(json.loads(done.stdout))
    ticket = tmp_path / "ticket.zip"
    assert postmortem("bundle", str(LOG), "-o", str(ticket)).returncode == 0
    from postmortem.bundle import unpack

    closed("manifest").validate(json.loads(unpack(ticket.read_bytes())["manifest.json"]))


def test_the_command_prints_each(capsys: pytest.CaptureFixture[str]) -> None:
    from postmortem.cli.main import run

    for arguments, title in (([], "report"), *(([name], name) for name in DOCUMENTS)):
        assert run(["schema", *arguments]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["title"] == f"aitk-postmortem {title}"
        assert shown["$schema"].endswith("2020-12/schema")
    assert run(["schema", "nothing"]) == 2
