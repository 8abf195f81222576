"""Why an edit is not made."""

from __future__ import annotations

from typing import Any


class Refused(ValueError):
    """The edit cannot be made safely: nothing is changed.

    `reason` names the text for people (``fix.refused.<reason>``), `values` fill it.
    """

    def __init__(self, reason: str, **values: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.values = values
