"""The errors of this room."""


class IntakeError(Exception):
    """The input cannot be read or is no log; the message is one line saying what, where, and what to do."""


class Unreadable(IntakeError):
    """A file that the system does not let us read; `why` is its reason alone."""

    def __init__(self, shown: str, why: str) -> None:
        super().__init__(f"{shown}: {why}")
        self.why = why


class Unreachable(IntakeError):
    """A store or host that did not answer this time; the same may go well a little later."""
