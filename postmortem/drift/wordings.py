"""Find what a Python source says at run time: printed lines, logger calls, bars, raised messages, arch names."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

import msgspec

from postmortem.drift.templates import Hole, Template, lines, says_something, templates
from postmortem.knowledge.schema import DriftKind

_MAX_PARTS = 200
"""Fixed and varying parts of one line that are looked at; no line for people has a tenth of that."""
_PRINT = re.compile(r"print|print_\w+")
_LEVELS = frozenset({"debug", "info", "warning", "warn", "error", "exception", "critical"})
_BARS = re.compile(r"tqdm|trange|\w*ProgressBar")


class Wording(msgspec.Struct, frozen=True):
    """One line, bar, message or name, and where the source says it (1-based line)."""

    kind: DriftKind
    path: str
    line: int
    template: Template


def parse(text: str) -> ast.Module | str:
    """The syntax tree of a source, or why there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        return f"not Python of this interpreter (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"cannot be parsed ({type(error).__name__})"


def wordings(path: str, tree: ast.Module) -> Iterator[Wording]:
    """All that the source says, in the order of the file, each wording with the line of its call."""
    yield from _scope(path, tree, {})
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from _class_arch(path, node)
        elif isinstance(node, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == "ModelArch" for t in node.targets
        ):
            for below in ast.walk(node.value):
                if isinstance(below, ast.Constant) and isinstance(below.value, str):
                    yield Wording("arch", path, below.lineno, (below.value,))


def _scope(path: str, scope: ast.AST, outer: dict[str, ast.expr]) -> Iterator[Wording]:
    """What one function or module says; a variable that it sets once stands for its value."""
    names = {**outer, **_set_once(scope)}
    pending = list(ast.iter_child_nodes(scope))[::-1]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _scope(path, node, names)
            continue
        if isinstance(node, ast.If) and _only_as_script(node.test) and "/" in path:
            continue
        if isinstance(node, ast.Call):
            yield from _call(path, node, names)
        elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            yield from _said("raise", path, node.lineno, templates(node.exc.args[0], names))
        elif isinstance(node, ast.Assert) and node.msg is not None:
            yield from _said("raise", path, node.lineno, templates(node.msg, names))
        pending += list(ast.iter_child_nodes(node))[::-1]


def _only_as_script(test: ast.expr) -> bool:
    """`__name__ == "__main__"`: a module that a job imports does not run what follows."""
    left = test.left if isinstance(test, ast.Compare) else None
    return isinstance(left, ast.Name) and left.id == "__name__"


def _set_once(scope: ast.AST) -> dict[str, ast.expr]:
    found: dict[str, ast.expr] = {}
    often: set[str] = set()
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if node.id in found:
                often.add(node.id)
            found.setdefault(node.id, node)
        pending += list(ast.iter_child_nodes(node))
    values: dict[str, ast.expr] = {}
    for below in ast.walk(scope):
        if isinstance(below, ast.Assign) and len(below.targets) == 1 and isinstance(below.targets[0], ast.Name):
            name = below.targets[0].id
            text = isinstance(below.value, ast.JoinedStr | ast.IfExp | ast.BinOp | ast.Constant)
            if found.get(name) is below.targets[0] and name not in often and text:
                values[name] = below.value
    return values


def _call(path: str, node: ast.Call, names: dict[str, ast.expr]) -> Iterator[Wording]:
    name, owner = _callee(node.func)
    kind: DriftKind
    if _PRINT.fullmatch(name) or (name == "write" and owner in ("tqdm", "stdout", "stderr")):
        kind = "print"
    elif (name in _LEVELS and owner.lower() in ("logger", "logging", "log")) or (
        owner == "warnings" and name == "warn"
    ):
        kind = "log"
    elif _BARS.fullmatch(name) or name == "set_description":
        described = [item.value for item in node.keywords if item.arg in ("desc", "description")]
        described += node.args[:1] if name == "set_description" else []
        for value in described:
            yield from _said("bar", path, node.lineno, templates(value, names))
        return
    else:
        return
    texts: list[Template] = [()]
    for index, argument in enumerate(node.args[:8]):
        if isinstance(argument, ast.Starred):
            continue
        found = templates(argument, names)
        texts = [(*text, *([" "] if index else []), *more) for text in texts for more in found][:12]
    yield from _said(kind, path, node.lineno, texts)


def _callee(function: ast.expr) -> tuple[str, str]:
    """The last name of what is called, and the name before it."""
    if isinstance(function, ast.Name):
        return function.id, ""
    if isinstance(function, ast.Attribute):
        value = function.value
        owner = value.attr if isinstance(value, ast.Attribute) else value.id if isinstance(value, ast.Name) else ""
        return function.attr, owner
    return "", ""


def _said(kind: DriftKind, path: str, line: int, found: list[Template]) -> Iterator[Wording]:
    for text in found:
        for one in lines(text):
            cut = one[:_MAX_PARTS]
            if says_something(cut):
                yield Wording(kind, path, line, cut)


def _class_arch(path: str, node: ast.ClassDef) -> Iterator[Wording]:
    for below in node.body:
        targets = below.targets if isinstance(below, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "arch" for target in targets):
            value = below.value if isinstance(below, ast.Assign) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield Wording("arch", path, below.lineno, (value.value,))


_UI_NAME = re.compile(r"^\s{2,8}name: '([\w.-]+)(?::[\w.-]+)?',?\s*$")


def listed_archs(path: str, text: str) -> Iterator[Wording]:
    """The arch names in the UI's list of models (`name: 'family:tag'`), without their tags."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        inside = inside or "modelArchs" in line
        found = _UI_NAME.match(line) if inside and len(line) < 200 else None
        if found:
            yield Wording("arch", path, number, (found[1],))


_QUOTED = re.compile(r"`([^`\n]{4,400})`|'([^'\n]{4,400})'|\"([^\"\n]{4,400})\"")
_INSERTED = re.compile(r"\$\{([^{}]{0,200})\}")


def script_strings(path: str, text: str) -> Iterator[Wording]:
    """The string literals of a TypeScript source, line by line; `${…}` varies."""
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _QUOTED.finditer(line[:2000]):
            quoted = (found[1] or found[2] or found[3]).replace("\\n", "\n")
            pieces = _INSERTED.split(quoted)
            parts = tuple(Hole(piece) if index % 2 else piece for index, piece in enumerate(pieces))
            yield from _said("print", path, number, [parts])
