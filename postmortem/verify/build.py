"""Put the checks together: evidence, arithmetic, the whole analysis again, and a ticket's checksums."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from postmortem import __version__
from postmortem.knowledge.schema import Knowledge
from postmortem.report import document as report_document
from postmortem.report.texts import Texts
from postmortem.text import LogText
from postmortem.verify import document as doc
from postmortem.verify import needs, spans, sums
from postmortem.verify.compare import ABSENT, Labels, Pair, pairs
from postmortem.verify.sent import TOOL, Claims

EVIDENCE, NUMBERS, ANALYSIS, FILES = "evidence", "numbers", "analysis", "files"
_CHANGED = frozenset({"no_such_pattern", "pattern_changed", "not_claimed"})
"""What is wrong with evidence because the patterns are others."""


class Given(msgspec.Struct, frozen=True):
    """What the log gives: the report made again (as JSON, redacted as the one that was sent), what was found at the
    evidence's spans, and claims that were settled before: a ticket's files, options that cannot have been. `left` is
    what could not be checked of the files; `labels` are those of the ticket, as far as its files showed them."""

    report: dict[str, Any]
    evidence: list[spans.Found]
    settled: list[doc.Finding]
    files_same: int = 0
    hints: tuple[str, ...] = ()
    left: list[doc.Finding] = msgspec.field(default_factory=list)
    labels: Labels = msgspec.field(default_factory=Labels)


def build(claims: Claims, given: Given, knowledge: Knowledge, lang: str) -> doc.Verification:
    """The verification of `claims`, its texts in `lang`."""
    return _Builder(claims, given, knowledge, lang).run()


class _Builder:
    def __init__(self, claims: Claims, given: Given, knowledge: Knowledge, lang: str) -> None:
        self._claims = claims
        self._given = given
        self._knowledge = knowledge
        self._texts = Texts(knowledge, lang)
        self._same_version = (
            claims.same_schema and claims.tool_version == __version__ and claims.patterns == knowledge.version
        )
        self._counts = {name: [0, 0, 0] for name in (EVIDENCE, NUMBERS, ANALYSIS, FILES)}
        self._differs: list[doc.Finding] = []
        self._unchecked: list[doc.Finding] = []
        beside = claims.value["input"].get("beside")
        found = given.report["input"]["beside"]
        self._lacking = needs.missing(beside, found) if isinstance(beside, dict) else []

    def run(self) -> doc.Verification:
        """All checks, one after the other."""
        for finding in self._given.settled:
            self._counts[finding.group][1] += 1
            self._differs.append(self._said(finding))
        for finding in self._given.left:
            self._counts[finding.group][2] += 1
            self._unchecked.append(self._said(finding))
        self._counts[FILES][0] += self._given.files_same
        self._evidence()
        for one in sums.check(self._claims.value):
            if one.holds:
                self._counts[NUMBERS][0] += 1
            else:
                self._differ(NUMBERS, one.path, "does_not_add_up", one.says, one.follows, None)
        for pair in pairs(self._claims.value, self._given.report, "", self._given.labels):
            self._pair(pair)
        return self._result()

    def _evidence(self) -> None:
        counts = self._counts[EVIDENCE]
        seen: set[int] = set()
        for one in self._given.evidence:
            before = tuple(counts)
            if one.why == "stands":
                counts[0] += 1
            elif one.why in _CHANGED and self._claims.patterns != self._knowledge.version:
                self._leave(EVIDENCE, one.path, "other_version", one.says, one.there)
            else:
                self._differ(EVIDENCE, one.path, one.why, one.says, one.there, one.line)
            if one.index in seen:  # a line of evidence is one claim, however much of it is wrong
                counts[:] = before
            seen.add(one.index)

    def _pair(self, pair: Pair) -> None:
        # how the report was made is no claim, but a key that says something else of it is
        if needs.under(pair.path, needs.NO_CLAIMS) and (pair.found is not ABSENT or pair.path.endswith("]")):
            return
        if pair.same:
            self._counts[ANALYSIS][0] += 1
            return
        absent = pair.sent is ABSENT or pair.found is ABSENT
        if not self._same_version and absent and not pair.path.endswith("]"):
            # what only the other version can say, nobody here can check, nor whether it left out what this one says
            self._leave(ANALYSIS, pair.path, "other_version", pair.sent, ABSENT)
            return
        lacks = needs.needed(pair.path, self._lacking)
        if lacks is not None:
            self._leave(ANALYSIS, pair.path, f"needs_{lacks}", pair.sent, pair.found)
        elif not self._same_version and needs.by_version(pair.path, pair.sent, pair.found):
            self._leave(ANALYSIS, pair.path, "other_version", pair.sent, pair.found)
        else:
            why = "not_in_log" if pair.found is ABSENT else "left_out" if pair.sent is ABSENT else "other_value"
            self._differ(ANALYSIS, pair.path, why, pair.sent, pair.found, self._line(pair.path))

    def _line(self, path: str) -> int | None:
        """Where the log says what stands at `path` of the report made again."""
        report = self._given.report
        if path.startswith(("memory", "ledger")):
            events = report["oom_events"]
            return events[-1]["line"] if events else None
        at: Any = report
        line: int | None = None
        for key in _keys(path):
            try:
                at = at[key]
            except (KeyError, IndexError, TypeError):
                break
            if isinstance(at, dict) and isinstance(at.get("line"), int):
                line = at["line"]
        return line

    def _said(self, finding: doc.Finding) -> doc.Finding:
        return msgspec.structs.replace(finding, says=self._texts(f"verify.why.{finding.why}"))

    def _differ(self, group: str, path: str, why: str, sent: Any, found: Any, line: int | None) -> None:
        known = {item.path.reveal() for item in self._differs} if len(self._differs) < 200 else ()
        self._counts[group][1] += 1
        if path not in known:
            self._differs.append(self._finding(group, path, why, sent, found, line))

    def _leave(self, group: str, path: str, why: str, sent: Any, found: Any) -> None:
        self._counts[group][2] += 1
        self._unchecked.append(self._finding(group, path, why, sent, found, None))

    def _finding(self, group: str, path: str, why: str, sent: Any, found: Any, line: int | None) -> doc.Finding:
        return doc.Finding(
            group=group,
            path=LogText(path[:300]),
            why=why,
            says=self._texts(f"verify.why.{why}"),
            report=None if sent is ABSENT else report_document.quoted(sent),
            log=None if found is ABSENT else report_document.quoted(found),
            line=line,
        )

    def _result(self) -> doc.Verification:
        verdict = "differs" if self._differs else "unproven" if self._unchecked else "same"
        options = self._claims.value["input"].get("options")
        hints = [f"give_{name}" for name in self._lacking]
        if not self._same_version:
            hints.append("other_version")
        hints += self._given.hints
        told = {"version": LogText(self._claims.tool_version), "patterns": LogText(self._claims.patterns)}
        return doc.Verification(
            schema_version=doc.SCHEMA_VERSION,
            tool=report_document.Tool(name=TOOL, version=__version__, patterns=self._knowledge.version),
            report=doc.Made(
                tool_version=LogText(self._claims.tool_version),
                patterns=LogText(self._claims.patterns),
                schema_version=LogText(self._claims.schema_version),
                redacted=isinstance(options, dict) and options.get("redacted") is True,
                same_version=self._same_version,
            ),
            verdict=verdict,
            groups=[
                doc.Group(id=name, same=same, differs=differs, unchecked=unchecked)
                for name, (same, differs, unchecked) in self._counts.items()
                if name != FILES or same or differs
            ],
            differs=self._differs,
            unchecked=self._unchecked,
            hints=[doc.Hint(id=name, text=self._texts(f"verify.hint.{name}", told)) for name in hints],
            lang=self._texts.lang,
        )


def _keys(path: str) -> Iterable[Any]:
    """The keys of a path, list indices as numbers."""
    for part in path.replace("]", "").replace("[", ".[").split("."):
        yield int(part[1:]) if part.startswith("[") and part[1:].isdecimal() and len(part) < 9 else part.lstrip("[")
