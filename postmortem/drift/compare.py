"""Compare a checkout with the knowledge base: what is not covered, what is gone, which defaults differ."""

from __future__ import annotations

import ast
import datetime
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from postmortem.drift.checkout import Checkout
from postmortem.drift.claims import Claims
from postmortem.drift.keys import CONFIG_MODULES, UNKNOWN, ConfigKey, config_keys
from postmortem.drift.templates import shown
from postmortem.drift.wordings import Wording, listed_archs, parse, script_strings, wordings
from postmortem.knowledge.log_schema import STATEMENTS, Pattern, Seen
from postmortem.knowledge.schema import Knowledge, Setting

_TOOLKIT = "ostris/ai-toolkit"
_TELLING = 6
"""Characters that an anchor has at least, if finding it somewhere in a source is to mean something."""
_LAUNCHER = "ui/cron/"
"""Where the UI starts jobs: what stands there goes into their logs."""
_CLASS = re.compile(re.escape(CONFIG_MODULES) + r" (\w+)")


class Uncovered(msgspec.Struct, frozen=True):
    """Something that the checkout says and no entry covers; `{…}` in `text` stands for what varies."""

    kind: str
    path: str
    lines: tuple[int, ...]
    text: str


class Gone(msgspec.Struct, frozen=True):
    """An entry that the checkout contradicts: by its `seen` it should be said there and is not, or the other way."""

    id: str
    what: str
    why: str
    source: str


class Default(msgspec.Struct, frozen=True):
    """A setting whose default the checkout has otherwise."""

    setting: str
    path: str
    line: int
    ours: Any
    theirs: Any


class Drift(msgspec.Struct, frozen=True):
    """Everything that differs; `excluded` counts what was left out on purpose, by exclusion."""

    uncovered: tuple[Uncovered, ...]
    gone: tuple[Gone, ...]
    defaults: tuple[Default, ...]
    excluded: dict[str, int]
    covered: int
    outside: int
    passed_over: tuple[str, ...]

    @property
    def found(self) -> bool:
        """Whether anything differs."""
        return bool(self.uncovered or self.gone or self.defaults)


def compare(checkout: Checkout, knowledge: Knowledge, *, date: datetime.date | None, everything: bool) -> Drift:
    """What `checkout` and `knowledge` know of each other.

    `date` is the commit day of the checkout, None for the newest; what an entry's `seen` says is held against it.
    Without `everything`, only what stands in watched paths is listed; entries are looked for everywhere.
    """
    said, keys, passed_over = _read(checkout)
    claims = Claims(knowledge)
    found: dict[Wording, frozenset[str]] = {item: claims.of(item.kind, item.template) for item in said}
    archs = {name for family in knowledge.families for name in family.arch}
    open_ = [item for item in said if not (item.template[0] in archs if item.kind == "arch" else found[item])]
    finds = [Uncovered(item.kind, item.path, (item.line,), shown(item.template)) for item in open_]
    prefixes = _prefixes(knowledge.settings)
    known = {name for setting in knowledge.settings for name in (setting.path, *setting.aliases)}
    flags = {flag for family in knowledge.families for flag in family.flags}
    unknown = [key for key in keys if _path(key, prefixes) not in known and key.key not in flags]
    finds += [Uncovered("key", CONFIG_MODULES, (key.line,), _path(key, prefixes)) for key in unknown]
    watched = [item for item in finds if everything or any(_in(item.path, entry.paths) for entry in knowledge.watched)]
    excluded: Counter[str] = Counter()
    listed = list(_not_excluded(watched, knowledge, excluded))
    defaults = list(_defaults(knowledge.settings, keys, prefixes, date))
    differing = {
        item.text
        for item in _not_excluded(
            [Uncovered("default", item.path, (item.line,), item.setting) for item in defaults], knowledge, excluded
        )
    }
    claimed = {ident for ids in found.values() for ident in ids}
    return Drift(
        uncovered=_merged(listed),
        gone=(*_gone_patterns(knowledge, claimed, checkout, date), *_gone_settings(knowledge, keys, prefixes, date)),
        defaults=tuple(item for item in defaults if item.setting in differing),
        excluded=dict(sorted(excluded.items())),
        covered=len(said) + len(keys) - len(finds),
        outside=len(finds) - len(watched),
        passed_over=(*checkout.passed_over, *passed_over),
    )


def _read(checkout: Checkout) -> tuple[list[Wording], list[ConfigKey], list[str]]:
    said: list[Wording] = []
    keys: list[ConfigKey] = []
    passed_over: list[str] = []
    for file in checkout.files:
        if not file.path.endswith(".py"):
            if file.path.rsplit("/", 1)[-1].startswith("options."):
                said += listed_archs(file.path, file.text)
            elif file.path.startswith(_LAUNCHER):
                said += script_strings(file.path, file.text)
            continue
        tree = parse(file.text)
        if not isinstance(tree, ast.Module):
            passed_over.append(f"{file.path}: {tree}")
            continue
        said += wordings(file.path, tree)
        if file.path == CONFIG_MODULES:
            keys += config_keys(tree)
    return said, keys, passed_over


def _in(path: str, globs: Iterable[str]) -> bool:
    return any(fnmatchcase(path, glob) for glob in globs)


def _not_excluded(finds: list[Uncovered], knowledge: Knowledge, excluded: Counter[str]) -> Iterator[Uncovered]:
    rules = [
        (rule, [re.compile(text) for text in rule.strings], [re.compile(text) for text in rule.unless])
        for rule in knowledge.exclusions
    ]
    for item in finds:
        for rule, strings, unless in rules:
            if item.kind not in rule.what or not _in(item.path, rule.paths):
                continue
            if any(text.match(item.text) for text in strings) and not any(text.search(item.text) for text in unless):
                excluded[rule.id] += 1
                break
        else:
            yield item


def _merged(finds: list[Uncovered]) -> tuple[Uncovered, ...]:
    """One entry for each text of a file, with all its lines."""
    lines: dict[tuple[str, str, str], list[int]] = {}
    for item in finds:
        lines.setdefault((item.path, item.kind, item.text), []).extend(item.lines)
    merged = [Uncovered(kind, path, tuple(sorted(set(at))), text) for (path, kind, text), at in lines.items()]
    return tuple(sorted(merged, key=lambda item: (item.path, item.lines, item.text)))


def _expected(seen: Seen | None, date: datetime.date | None) -> bool:
    """Whether a checkout of that day must say what was seen then; None is the newest day.

    On the first and the last day both are right: that day may have more commits than one.
    """
    if seen is None or date is None:
        return seen is None or seen.until is None
    return seen.since < date and (seen.until is None or date < seen.until)


def _denied(seen: Seen | None, date: datetime.date | None) -> bool:
    """Whether `seen` says that a checkout of that day does not say it."""
    if seen is None or date is None:
        return seen is not None and seen.until is not None
    return date < seen.since or (seen.until is not None and seen.until < date)


def _gone_patterns(
    knowledge: Knowledge, claimed: set[str], checkout: Checkout, date: datetime.date | None
) -> Iterator[Gone]:
    texts = [file.text for file in checkout.files]
    for pattern in toolkit_wordings(knowledge):
        if pattern.id in claimed:
            if _denied(pattern.seen, date):
                yield Gone(pattern.id, "pattern", "said although `seen` denies it", pattern.source)
        elif pattern.status != "legacy" and _expected(pattern.seen, date) and not _holds_anchor(pattern, texts):
            yield Gone(pattern.id, "pattern", "no longer said", pattern.source)


def _holds_anchor(pattern: Pattern, texts: list[str]) -> bool:
    """Whether an anchor long enough to tell stands in a source: some wordings are put together elsewhere."""
    telling = [anchor.strip() for anchor in pattern.anchors if len(anchor.strip()) >= _TELLING]
    return any(anchor in text for anchor in telling for text in texts)


def toolkit_wordings(knowledge: Knowledge) -> Iterator[Pattern]:
    """The entries that stand for words of AI Toolkit itself; each says when they were `seen`."""
    return (item for item in knowledge.patterns if _TOOLKIT in item.source and _is_wording(item))


def _is_wording(pattern: Pattern) -> bool:
    """Whether AI Toolkit words it itself: what its errors entail is worded by Python and torch, frames are no text."""
    return pattern.role != "consequence" and (
        pattern.role in STATEMENTS or pattern.role in ("marker", "bar", "carrier")
    )


def _prefixes(settings: tuple[Setting, ...]) -> dict[str, str]:
    """For each config class that settings are taken from, the path under which its keys stand in a job."""
    votes: dict[str, Counter[str]] = {}
    for setting in settings:
        named = _CLASS.search(setting.source)
        if named:
            votes.setdefault(named[1], Counter())[setting.path.rpartition(".")[0]] += 1
    return {owner: counts.most_common(1)[0][0] for owner, counts in votes.items()}


def _path(key: ConfigKey, prefixes: dict[str, str]) -> str:
    """The key's path in a job; where no setting tells it, the class in its place."""
    return f"{prefixes.get(key.owner, key.owner)}.{key.key}"


def _gone_settings(
    knowledge: Knowledge, keys: list[ConfigKey], prefixes: dict[str, str], date: datetime.date | None
) -> Iterator[Gone]:
    there = {_path(key, prefixes) for key in keys}
    for setting in knowledge.settings:
        named = _CLASS.search(setting.source)
        if not named:
            continue
        if any(name in there for name in (setting.path, *setting.aliases)):
            if _denied(setting.seen, date):
                yield Gone(setting.path, "setting", "read although `seen` denies it", setting.source)
        elif _expected(setting.seen, date):
            yield Gone(setting.path, "setting", "no longer read", setting.source)


def _defaults(
    settings: tuple[Setting, ...], keys: list[ConfigKey], prefixes: dict[str, str], date: datetime.date | None
) -> Iterator[Default]:
    by_path = {setting.path: setting for setting in settings}
    for key in keys:
        setting = by_path.get(_path(key, prefixes))
        if setting is None or key.default is UNKNOWN:
            continue
        ours = _default_at(setting, date)
        if setting.follows:
            continue
        if ours != key.default or isinstance(ours, bool) != isinstance(key.default, bool):
            yield Default(setting.path, CONFIG_MODULES, key.line, ours, key.default)


def _default_at(setting: Setting, date: datetime.date | None) -> Any:
    """The default of that day: the earlier one that ended first on or after it, else today's."""
    if date is not None:
        for earlier in sorted(setting.earlier, key=lambda entry: entry.until):
            if date <= earlier.until:
                return earlier.default
    return setting.default
