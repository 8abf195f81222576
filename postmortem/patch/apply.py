"""Judge each change against what the file says now, make it where AI Toolkit reads it, and prove the result."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from postmortem.jobconfig.parse import ConfigProblem, parse
from postmortem.jobconfig.values import keys_of, place, settings_of
from postmortem.knowledge.schema import Knowledge
from postmortem.knowledge.yaml_loader import YamlProblem
from postmortem.model import ConfigChange
from postmortem.patch import tree
from postmortem.patch.edit import Editor, Path
from postmortem.patch.job import choose_process, folders, is_json, load, same
from postmortem.patch.refusal import Refused

_DATASET = re.compile(r"datasets\[(\d+)\]")
_UNSURE = ("[name]", "${")
"""What AI Toolkit fills in before it reads a config: such text differs from the dump without meaning anything else."""
_ALREADY = object()


class Patched(msgspec.Struct, frozen=True):
    """The new text, what was changed in it, and what the file had already (values as in the file)."""

    text: str
    done: tuple[ConfigChange, ...] = ()
    already: tuple[ConfigChange, ...] = ()


def apply(
    text: str, changes: Sequence[ConfigChange], knowledge: Knowledge, ran: Mapping[str, Any] | None = None
) -> Patched:
    """`text` with `changes` made in the process that ran as the dump `ran` says, and nothing else.

    Each change's `before` is checked: a file that goes as far already is left alone. Raises Refused, with nothing
    changed, where the file says something that the change does not expect, or the result would change anything else.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    try:
        parse(body)
    except ConfigProblem as problem:
        raise Refused("damaged", problem=problem.problem) from None
    job = load(body)
    prefix, settings = choose_process(job, ran)
    _same_datasets(settings, ran, changes)
    now = settings_of(settings, knowledge)
    done: list[ConfigChange] = []
    already: list[ConfigChange] = []
    wanted: list[tuple[str, Path, Any]] = []
    for change in changes:
        have = now[change.path].value if change.path in now else None
        after = _wanted(change, have) if _there(change.path, settings) else _ALREADY
        if after is _ALREADY:
            already.append(ConfigChange(change.path, have, have))
            continue
        wanted.append((change.path, (*prefix, *keys_of(place(change.path, settings, knowledge))), after))
        done.append(ConfigChange(change.path, have, after))
    if not wanted:
        return Patched(text, (), tuple(already))
    new = _edited(body, job, [(path, value) for _, path, value in wanted])
    result = settings_of(choose_at(load(new), prefix), knowledge)
    if any(path in result and result[path].value != value for path, _, value in wanted):
        raise Refused("verify")
    return Patched(mark + new, tuple(done), tuple(already))


def choose_at(job: Any, prefix: Path) -> Any:
    """The value at `prefix` of plain values."""
    for step in prefix:
        job = job[step]
    return job


def _edited(body: str, job: Any, edits: Sequence[tuple[Path, Any]]) -> str:
    """The text with the edits made; parsing it gives `job` with the edits made, or it is refused."""
    json_text = is_json(body)
    root = tree.of_json(body) if json_text else tree.of_yaml(body)
    editor = Editor(body, root, json_text=json_text)
    expected = copy.deepcopy(job)
    for path, value in edits:
        if isinstance(value, list):
            items = choose_at(job, path)
            if isinstance(items, list) and len(items) == len(value) == 1:
                editor.set((*path, 0), value[0])
                _put(expected, path, list(value))
                continue
            kept = [type(item) is not int or item in value for item in items] if isinstance(items, list) else []
            editor.keep(path, kept)
            _put(expected, path, [item for item, keep in zip(items, kept) if keep])
        else:
            editor.set(path, value)
            _put(expected, path, value)
    new = editor.text()
    try:
        result = load(new)
    except (YamlProblem, ValueError):
        raise Refused("verify") from None
    if not same(result, expected):
        raise Refused("shared" if not json_text and re.search(r"[*&]\w", body) else "verify")
    return new


def _put(job: Any, path: Path, value: Any) -> None:
    for step, below in pairwise(path):
        if isinstance(step, str) and isinstance(job, dict) and job.get(step) is None:
            job[step] = {}
        job = job[step]
        if not isinstance(job, dict if isinstance(below, str) else list):
            raise Refused("shape")
    job[path[-1]] = value


def _wanted(change: ConfigChange, have: Any) -> Any:
    """The value to write over `have`; `_ALREADY` if that goes as far as the change, or further."""
    before, after = change.before, change.after
    if have == after and isinstance(have, bool) == isinstance(after, bool):
        return _ALREADY
    if have == before and isinstance(have, bool) == isinstance(before, bool):
        return after
    if isinstance(after, list):
        rest = [side for side in have if side <= max(after)] if isinstance(have, list) else []
        if have and rest == have:
            return _ALREADY
        if rest:
            return rest
    elif _number(after) and _number(have) and _number(before):
        return _ALREADY if (after < before and have <= after) or (after > before and have >= after) else after
    elif isinstance(after, bool) or have is None or have == before:
        return after
    raise Refused("other_value", path=change.path, have=have, before=before)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _there(path: str, settings: Mapping[str, Any]) -> bool:
    """Whether the list item that `path` is in still exists; a preview that is gone needs no edit."""
    if "[" not in path:
        return True
    item: Any = settings
    for step in keys_of(path[: path.index("]") + 1]):
        listed = isinstance(step, int) and isinstance(item, list) and step < len(item)
        item = item[step] if listed else item.get(step) if isinstance(item, Mapping) else None
    return isinstance(item, Mapping)


def _same_datasets(settings: Mapping[str, Any], ran: Mapping[str, Any] | None, changes: Sequence[ConfigChange]) -> None:
    """Refuse to edit the n-th dataset of a file where the n-th one of the run was another."""
    here, there = folders(settings), folders(ran) if ran is not None else None
    for change in changes:
        found = _DATASET.match(change.path)
        if not found:
            continue
        index = int(found[1])
        if index >= len(here) or here[index] is None:
            raise Refused("no_dataset", index=index)
        if there is None or index >= len(there) or any(mark in str(here[index]) for mark in _UNSURE):
            continue
        if here[index] != there[index]:
            raise Refused("other_dataset", index=index)
