"""What `--where` may ask: comparisons of columns with constants. Checked as a syntax tree before pandas sees it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Callable, Collection, Sequence

_ALLOWED = (
    ast.Expression,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.UnaryOp,
    ast.Not,
    ast.USub,
    ast.Compare,
    ast.Eq,
    ast.NotEq,
    ast.Lt,
    ast.LtE,
    ast.Gt,
    ast.GtE,
    ast.In,
    ast.NotIn,
    ast.Name,
    ast.Load,
    ast.Constant,
    ast.List,
    ast.Tuple,
)
_STRING = re.compile(r"('[^'\\]*'|\"[^\"\\]*\")")
MAX_LENGTH = 2_000
SHOWN = 8
"""Values of a column that a hint names."""


class BadExpression(ValueError):
    """Says what in the expression is not understood."""


def checked(expression: str, names: Sequence[str]) -> str:
    """`expression` as pandas takes it, ``class`` spelled ``class_``. Raises BadExpression."""
    tree = _parsed(expression)
    known = {"class_" if name == "class" else name for name in names}
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise BadExpression(
                f"{type(node).__name__.lower()} is not allowed; compare columns with constants, texts in quotes"
            )
        if isinstance(node, ast.Name) and node.id not in known:
            raise BadExpression(f"no column {node.id}; {_nearest(node.id, names)}")
    _must_be_true_or_false(tree.body)
    try:
        # pandas reads line by line, and has its own signs in texts; one line without comments is what both understand
        return ast.unparse(tree)
    except RecursionError:
        raise BadExpression("nested too deeply") from None


def _must_be_true_or_false(top: ast.expr) -> None:
    """What filters is a comparison, a column of true and false, or several of them joined."""
    waiting = [top]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.BoolOp):
            waiting += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            waiting.append(node.operand)
        elif isinstance(node, ast.Compare):
            if not any(isinstance(one, ast.Name) for one in ast.walk(node)):
                raise BadExpression("a comparison without a column")
        elif not isinstance(node, ast.Name):
            raise BadExpression("not a comparison; write such as  class == 'bucket_spike' and batch_size > 1")


def unmatched(expression: str, values: Callable[[str], Collection[str]]) -> list[tuple[str, str, list[str]]]:
    """What the expression compares a column with that no row has: (column, text, the nearest that rows have).

    `values` gives the texts of a column. The expression must have been `checked`.
    """
    found: list[tuple[str, str, list[str]]] = []
    for node in ast.walk(_parsed(expression)):
        if not (isinstance(node, ast.Compare) and isinstance(node.left, ast.Name)):
            continue
        column = "class" if node.left.id == "class_" else node.left.id
        for side in node.comparators:
            for text in _texts(side):
                have = values(column)
                if have and text not in have:
                    near = difflib.get_close_matches(text, have, n=3, cutoff=0.5)
                    found.append((column, text, near or sorted(have)[:SHOWN]))
    return found


def _parsed(expression: str) -> ast.Expression:
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"longer than {MAX_LENGTH} characters")
    parts = _STRING.split(expression)
    asked = "".join(part if index % 2 else re.sub(r"\bclass\b", "class_", part) for index, part in enumerate(parts))
    try:
        return ast.parse(asked.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        single = any(re.search(r"(?<![=!<>])=(?!=)", part) for part in parts[::2])
        hint = "write == for equals" if single else "write such as  class == 'bucket_spike' and batch_size > 1"
        raise BadExpression(f"not an expression; {hint}") from None


def _texts(node: ast.expr) -> list[str]:
    nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
    return [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=3)
    inside = [one for one in names if name.lower() in one]
    meant = near or inside[:3]
    # a word without quotes is the commoner slip
    hint = f"or, if {name} is a text, put it in quotes"
    return f"did you mean {', '.join(meant)}? {hint}" if meant else f"have {', '.join(names)}; {hint}"
