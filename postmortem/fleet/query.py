"""What `--where` may ask: comparisons of columns with constants. Checked as a syntax tree before pandas sees it."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

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


class BadExpression(ValueError):
    """Says what in the expression is not understood."""


def checked(expression: str, names: Sequence[str]) -> str:
    """`expression` as pandas takes it, ``class`` spelled ``class_``. Raises BadExpression."""
    if len(expression) > MAX_LENGTH:
        raise BadExpression(f"longer than {MAX_LENGTH} characters")
    parts = _STRING.split(expression)
    asked = "".join(part if index % 2 else re.sub(r"\bclass\b", "class_", part) for index, part in enumerate(parts))
    try:
        tree = ast.parse(asked.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise BadExpression("not an expression; write such as  class == 'bucket_spike' and batch_size > 1") from None
    known = {"class_" if name == "class" else name for name in names}
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise BadExpression(f"{type(node).__name__.lower()} is not allowed; compare columns with constants")
        if isinstance(node, ast.Name) and node.id not in known:
            raise BadExpression(f"no column {node.id}; have {', '.join(names)}")
    return asked.strip()
