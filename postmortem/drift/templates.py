"""Turn the expression of a printed text into templates: what is fixed, and holes for what varies.

A hole can be filled in several plausible ways, so that an entry's expression can be tried on the line as it
would look in a log.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping

import msgspec

MAX_ALTERNATIVES = 12
"""Ways in which one expression can come out that are looked at: `'es' if n else ''` makes two."""
MAX_FILLINGS = 200
_MAX_REPEAT = 200
_MAX_NESTING = 40


class Hole(msgspec.Struct, frozen=True):
    """A value that the program puts in: the names in its expression, and how it is formatted."""

    hint: str
    spec: str = ""


Part = str | Hole
Template = tuple[Part, ...]

_FILLINGS = (
    "12",
    "word",
    "/data/sets/a.safetensors",
    "None",
    "1.0e-04",
    "512x512",
    "12000ms",
    "['a', 'b']",
    "two words",
    "",
)
_BY_HINT = (
    (re.compile(r"^len\b"), "12"),
    (re.compile(r"shape", re.IGNORECASE), "torch.Size([4, 16])"),
    (re.compile(r"keys|missing|list", re.IGNORECASE), "['a', 'b']"),
    (re.compile(r"path|file|folder|dir\b|url|repo|name_or", re.IGNORECASE), "/data/sets/a.safetensors"),
    (re.compile(r"len|num|count|step|idx|index|total|width|height|dim|alpha|rank|size", re.IGNORECASE), "12"),
    (re.compile(r"__name__|type|arch|name", re.IGNORECASE), "word"),
)
_PERCENT = re.compile(r"%(?:\((?P<name>\w+)\))?[-#0 +]*\d*(?P<spec>(?:\.\d+)?[sdifgeExXr])")
_BRACES = re.compile(r"\{(?P<name>[\w.\[\]]*)(?:![rsa])?(?::(?P<spec>[^{}]*))?\}")


def templates(node: ast.expr, names: Mapping[str, ast.expr] | None = None, depth: int = 0) -> list[Template]:
    """The ways in which the text of `node` can come out. `names` are local variables set once in the function."""
    if depth > _MAX_NESTING:
        return [(Hole("…"),)]
    names = names or {}
    if isinstance(node, ast.Constant):
        return [(str(node.value),)]
    if isinstance(node, ast.JoinedStr):
        return _product([templates(value, names, depth + 1) for value in node.values])
    if isinstance(node, ast.FormattedValue):
        return _formatted(node, names, depth)
    if isinstance(node, ast.IfExp):
        return [*templates(node.body, names, depth + 1), *templates(node.orelse, names, depth + 1)][:MAX_ALTERNATIVES]
    if isinstance(node, ast.BinOp):
        return _operation(node, names, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        base = node.func.value
        if isinstance(base, ast.Constant) and isinstance(base.value, str):
            return [_holes(base.value, _BRACES)]
    if isinstance(node, ast.Name) and node.id in names:
        # one step only: variables made of variables could double at each step
        return templates(names[node.id], {}, depth + 1)
    return [(Hole(_names(node)),)]


def _formatted(node: ast.FormattedValue, names: Mapping[str, ast.expr], depth: int) -> list[Template]:
    spec = ""
    if isinstance(node.format_spec, ast.JoinedStr):
        spec = "".join(str(v.value) for v in node.format_spec.values if isinstance(v, ast.Constant))
    inner = templates(node.value, names, depth + 1)
    fixed = [found for found in inner if any(isinstance(part, str) for part in found)]
    return inner if fixed and not spec else [(Hole(_names(node.value), spec),)]


def _operation(node: ast.BinOp, names: Mapping[str, ast.expr], depth: int) -> list[Template]:
    left = templates(node.left, names, depth + 1)
    if isinstance(node.op, ast.Add):
        found = _product([left, templates(node.right, names, depth + 1)])
        if _has_text(node.left) or _has_text(node.right):
            return found
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
        times = node.right.value if isinstance(node.right, ast.Constant) else 3
        return [(node.left.value * (min(times, _MAX_REPEAT) if isinstance(times, int) else 3),)]
    if isinstance(node.op, ast.Mod) and len(left) == 1 and len(left[0]) == 1 and isinstance(left[0][0], str):
        return [_holes(left[0][0], _PERCENT)]
    return [(Hole(_names(node)),)]


def _has_text(node: ast.expr) -> bool:
    return any(
        isinstance(below, ast.JoinedStr) or (isinstance(below, ast.Constant) and isinstance(below.value, str))
        for below in ast.walk(node)
    )


def _holes(text: str, places: re.Pattern[str]) -> Template:
    parts: list[Part] = []
    at = 0
    for found in places.finditer(text):
        parts += [text[at : found.start()], Hole(found["name"] or "", found["spec"] or "")]
        at = found.end()
    return (*parts, text[at:])


def _product(options: list[list[Template]]) -> list[Template]:
    found: list[Template] = []
    for choice in itertools.islice(itertools.product(*options), MAX_ALTERNATIVES):
        found.append(tuple(part for template in choice for part in template))
    return found


def _names(node: ast.expr) -> str:
    """The names in an expression, outermost first: what the value is likely to be."""
    found: list[str] = []
    for below in ast.walk(node):
        if isinstance(below, ast.Attribute):
            found.append(below.attr)
        elif isinstance(below, ast.Name) and below.id != "self":
            found.append(below.id)
        if len(found) > 5:
            break
    return " ".join(dict.fromkeys(found))


def lines(template: Template) -> Iterator[Template]:
    """The template cut at its line breaks: a log is read line by line."""
    line: list[Part] = []
    for part in template:
        if isinstance(part, Hole):
            line.append(part)
            continue
        first, *rest = re.split(r"[\r\n]+", part)
        line.append(first)
        for piece in rest:
            yield tuple(line)
            line = [piece]
    yield tuple(line)


def shown(template: Template) -> str:
    """The template for people: `{names}` where something varies."""
    return "".join(part if isinstance(part, str) else f"{{{part.hint or '…'}}}" for part in template)


def says_something(template: Template) -> bool:
    """Whether it holds a fixed word: an entry could only claim a line without one by guessing."""
    return any(isinstance(part, str) and re.search(r"[^\W\d_]{2}", part) for part in template)


def fillings(template: Template) -> Iterator[str]:
    """Lines as they may stand in a log, the likeliest first."""
    holes = [part for part in template if isinstance(part, Hole)]
    options = [_options(hole) for hole in holes]
    seen: set[str] = set()
    first = [choice[0] for choice in options]
    single = ([*first[:at], value, *first[at + 1 :]] for at, choice in enumerate(options) for value in choice)
    uniform = ([choice[min(index, len(choice) - 1)] for choice in options] for index in range(len(_FILLINGS) + 1))
    for values in itertools.islice(
        itertools.chain([first], single, uniform, itertools.product(*options)), MAX_FILLINGS
    ):
        filled = iter(values)
        line = "".join(part if isinstance(part, str) else next(filled) for part in template)
        if line not in seen:
            seen.add(line)
            yield line


def _options(hole: Hole) -> list[str]:
    spec = hole.spec.rstrip()
    if spec[-1:] in ("f", "F", "e", "E", "g", "%"):
        return {"f": ["0.1234"], "e": ["1.234e-02"], "g": ["0.5"], "%": ["12.0%"]}.get(spec[-1].lower(), ["0.1234"])
    if spec[-1:] in ("d", "i", ","):
        return ["12", "1,234"] if "," in spec else ["12"]
    likely = [value for hints, value in _BY_HINT if hints.search(hole.hint)]
    return list(dict.fromkeys([*likely, *_FILLINGS]))
