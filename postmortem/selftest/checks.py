"""Every entry must hold on its own examples, claim its lines alone, and have texts and a source."""

from __future__ import annotations

import re
from collections.abc import Iterator

import regex

from postmortem.diagnosis.conditions import ConditionError, parse
from postmortem.drift.compare import toolkit_wordings
from postmortem.knowledge.log_schema import STATEMENTS, Pattern
from postmortem.knowledge.schema import Knowledge, Remedy
from postmortem.model import Place
from postmortem.report.redact.shapes import KeptLists, Shape
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.recognise import Recogniser
from postmortem.selftest import growth
from postmortem.text import seen

_PLACE = re.compile(r"\{([\w.]+)\}")
_LANGUAGES = ("en", "ko")


def problems(knowledge: Knowledge) -> list[str]:
    """All that is wrong with the knowledge base, a line each; empty when it holds."""
    found = [
        *_compile(knowledge),
        *_redactions(knowledge),
        *_examples(knowledge),
        *growth.problems(knowledge),
        *_conditions(knowledge),
        *_sources(knowledge),
        *_seen(knowledge),
        *_texts(knowledge),
    ]
    return list(dict.fromkeys(found))


def _compile(knowledge: Knowledge) -> Iterator[str]:
    for pattern in knowledge.patterns:
        for name, source in (("regex", pattern.regex), *pattern.fields.items()):
            try:
                regex.compile(source)
            except regex.error as error:
                yield f"{pattern.id}: {name}: not an expression: {error}"


def _redactions(knowledge: Knowledge) -> Iterator[str]:
    """Each entry must hide something in each of its examples, alone, and nothing in those that must not match."""
    kept = KeptLists(knowledge)
    lists = {item.id for item in knowledge.kept_words}
    for rank, entry in enumerate(knowledge.redactions):
        shape = Shape(entry, rank, kept)
        for example in entry.examples.match:
            if not shape.may(example.lower()) or not any(True for _ in shape.spans(example)):
                yield f"{entry.id}: does not hide anything in its example: {example[:80]}"
        for example in entry.examples.no_match:
            if any(True for _ in shape.spans(example)):
                yield f"{entry.id}: hides what it must not: {example[:80]}"
    keeping = [*((entry.id, entry.keep) for entry in knowledge.redactions)]
    keeping += [(entry.id, entry.keep) for entry in knowledge.private_settings]
    for owner, names in keeping:
        for name in set(names) - lists:
            yield f"{owner}: keeps {name}, which is no list of kept words"


def _examples(knowledge: Knowledge) -> Iterator[str]:
    """Each example goes through the same recogniser as a log line, against all entries at once."""
    lexicon = Lexicon(knowledge)
    recogniser = Recogniser(lexicon, "")
    for pattern in knowledge.patterns:
        if not pattern.examples.match:
            yield f"{pattern.id}: has no example that must match"
        if pattern.role in STATEMENTS or pattern.role in ("marker", "trainer"):
            yield from _line_examples(pattern, lexicon, recogniser)
        else:
            yield from _bare_examples(pattern, lexicon)


def _line_examples(pattern: Pattern, lexicon: Lexicon, recogniser: Recogniser) -> Iterator[str]:
    for example in pattern.examples.match:
        claims = _claims(example, lexicon, recogniser)
        if pattern.id not in claims:
            yield f"{pattern.id}: no longer claims its example ({', '.join(claims) or 'nothing does'}): {example[:100]}"
        elif not _holds_anchor(pattern, example, lexicon, recogniser):
            yield f"{pattern.id}: what it matches in its example holds none of its anchors: {example[:100]}"
        rivals = _rivals(pattern, example, lexicon)
        if rivals:
            yield f"{pattern.id}: {', '.join(rivals)} claim(s) the same line: {example[:100]}"
    for example in pattern.examples.no_match:
        if pattern.id in _claims(example, lexicon, recogniser):
            yield f"{pattern.id}: claims what it must not: {example[:100]}"


def _holds_anchor(pattern: Pattern, example: str, lexicon: Lexicon, recogniser: Recogniser) -> bool:
    """Whether an anchor stands in what is matched, and not just somewhere else in the example's line: where it does
    not, another line of that kind may hold none, and would never be tried."""
    line = seen(example)
    bare = lexicon.peel_prefix(line)
    compiled = Compiled(pattern)
    matches = [found[0] for text in (line, bare, recogniser.message(bare)) if (found := compiled.match(text))]
    return not matches or any(anchor in match for anchor in pattern.anchors for match in matches)


def _claims(example: str, lexicon: Lexicon, recogniser: Recogniser) -> list[str]:
    line = seen(example)
    raw = line.encode()
    entries = {item for anchor, items in lexicon.anchored.items() if anchor in raw for item in items}
    return [event.pattern for event in recogniser(line, Place(1, 0), entries)]


def _rivals(pattern: Pattern, example: str, lexicon: Lexicon) -> list[str]:
    """Other entries of the same layer that match the same message, with no order between the two."""
    if pattern.role == "trainer":
        return []
    recogniser = Recogniser(lexicon, "")
    bare = lexicon.peel_prefix(seen(example))
    message = bare if pattern.role == "marker" else recogniser.message(bare)
    found: list[str] = []
    raw = message.encode()
    own = Compiled(pattern)
    if own.match(message) is None:
        return []
    for anchor, items in lexicon.anchored.items():
        if anchor not in raw:
            continue
        for item in items:
            other = item.pattern
            same_layer = (other.role == "marker") == (pattern.role == "marker") and other.role != "trainer"
            if other.id == pattern.id or not same_layer or not item.match(message):
                continue
            if other.id not in pattern.yields_to and pattern.id not in other.yields_to:
                found.append(other.id)
    return sorted(set(found))


def _bare_examples(pattern: Pattern, lexicon: Lexicon) -> Iterator[str]:
    """Prefixes, carriers, bars and frames are matched on their own."""
    compiled = Compiled(pattern)
    for example in pattern.examples.match:
        line = example if pattern.role in ("prefix", "bar", "frame") else lexicon.peel_prefix(example)
        found = _search(compiled, line)
        if found is None:
            yield f"{pattern.id}: no longer matches its example: {example[:100]}"
        elif pattern.anchors and not any(anchor in example for anchor in pattern.anchors):
            yield f"{pattern.id}: none of its anchors is in its example: {example[:100]}"
    for example in pattern.examples.no_match:
        if _search(compiled, example) is not None:
            yield f"{pattern.id}: matches what it must not: {example[:100]}"


def _search(compiled: Compiled, line: str) -> object:
    if compiled.pattern.role == "frame" or compiled.pattern.sets.event == "bar_syntax":
        return regex.compile(compiled.pattern.regex).search(line)
    return compiled.match(line)


def _conditions(knowledge: Knowledge) -> Iterator[str]:
    def check(owner: str, conditions: tuple[str, ...]) -> Iterator[str]:
        for condition in conditions:
            try:
                parse(condition)
            except ConditionError as error:
                yield f"{owner}: {error}"

    for factor in knowledge.factors:
        yield from check(factor.id, factor.when)
    for cause in knowledge.causes:
        yield from check(cause.id, cause.when)
    for remedy in knowledge.remedies:
        yield from check(remedy.id, remedy.requires)
        for rule in (*remedy.offer, *remedy.will_not_help):
            yield from check(remedy.id, rule.when)
        for change in remedy.changes:
            yield from check(remedy.id, change.when)
    for first in knowledge.first_tries:
        yield from check(first.id, first.when)
    risks = {risk.id for risk in knowledge.risks}
    for risk in knowledge.risks:
        yield from check(risk.id, risk.when)
        for other in set(risk.instead_of) - risks:
            yield f"{risk.id}: stands instead of {other}, which no entry is"
    for regression in knowledge.regressions:
        for symptoms in regression.symptoms:
            yield from check(regression.id, symptoms)
    known = {pattern.id for pattern in knowledge.patterns}
    for dating in knowledge.datings:
        for pattern in set(dating.patterns) - known:
            yield f"{dating.id}: dates by {pattern}, which no entry is"
        if not (dating.patterns or dating.observed or dating.exception):
            yield f"{dating.id}: says nothing to date by"
    settings = {setting.path for setting in knowledge.settings}
    for remedy in knowledge.remedies:
        for change in remedy.changes:
            if change.path not in settings:
                yield f"{remedy.id}: changes {change.path}, which settings.yaml does not have"


def _sources(knowledge: Knowledge) -> Iterator[str]:
    groups = (
        *(knowledge.patterns, knowledge.remedies, knowledge.factors, knowledge.families, knowledge.classes),
        *(knowledge.datings, knowledge.regressions, knowledge.variables, knowledge.risks, knowledge.first_tries),
        *(knowledge.causes, knowledge.redactions, knowledge.private_settings, knowledge.kept_words),
    )
    for entries in groups:
        for entry in entries:
            if not entry.source.strip():
                yield f"{entry.id}: has no source"
    for setting in knowledge.settings:
        if not setting.source.strip():
            yield f"{setting.path}: has no source"
    for rule in knowledge.exclusions:
        if not rule.reason.strip():
            yield f"{rule.id}: has no reason"


def _seen(knowledge: Knowledge) -> Iterator[str]:
    """AI Toolkit's own wordings say when they were seen, so that a checkout can be held against them."""
    for pattern in toolkit_wordings(knowledge):
        if pattern.seen is None:
            yield f"{pattern.id}: is AI Toolkit's and has no `seen`"
    dated = [(item.id, item.seen) for item in knowledge.patterns]
    for name, span in [*dated, *((item.path, item.seen) for item in knowledge.settings)]:
        if span and span.until and span.until < span.since:
            yield f"{name}: seen until before it was seen from"


def needed_texts(knowledge: Knowledge) -> Iterator[str]:
    """The text keys that entries must have in every language."""
    for pattern in knowledge.patterns:
        if pattern.role in STATEMENTS:
            yield f"signature.{pattern.id}"
    for factor in knowledge.factors:
        yield f"factor.{factor.id}"
    for cause in knowledge.causes:
        yield f"fleet.cause.{cause.id}"
    for entry in knowledge.classes:
        yield f"{entry.what}.{entry.id}.title"
        yield f"{entry.what}.{entry.id}.explain"
    for variable in knowledge.variables:
        yield f"compare.variable.{variable.id}"
    for risk in knowledge.risks:
        yield f"check.risk.{risk.id}"
    for first in knowledge.first_tries:
        yield f"check.first_try.{first.id}"
    for remedy in knowledge.remedies:
        yield from _remedy_keys(remedy)
    for regression in knowledge.regressions:
        yield from (f"regression.{regression.id}.{part}" for part in ("what", "when", "do"))


def _remedy_keys(remedy: Remedy) -> Iterator[str]:
    for part in ("title", "ui", "cost", "explain"):
        yield f"remedy.{remedy.id}.{part}"
    for rule in remedy.offer:
        yield f"remedy.{remedy.id}.why.{rule.why}"
    if remedy.will_not_help:
        yield f"remedy.{remedy.id}.name"
    for rule in remedy.will_not_help:
        yield f"remedy.{remedy.id}.not.{rule.why}"


def _texts(knowledge: Knowledge) -> Iterator[str]:
    for lang in _LANGUAGES:
        if lang not in knowledge.texts:
            yield f"text/{lang}: missing"
    languages = knowledge.texts
    every = {key for texts in languages.values() for key in texts} | set(needed_texts(knowledge))
    for lang, texts in languages.items():
        for key in sorted(every - set(texts)):
            yield f"text/{lang}: {key} is missing"
    reference = languages.get("en", {})
    for lang, texts in languages.items():
        for key, text in texts.items():
            if key in reference and set(_PLACE.findall(text)) != set(_PLACE.findall(reference[key])):
                yield f"text/{lang}: {key} has other placeholders than text/en"
