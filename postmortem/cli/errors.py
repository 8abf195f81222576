"""Failures that a user can act on."""

USAGE = 2
INPUT = 3


class Failure(Exception):
    """Ends the command: one line for stderr, and the exit status."""

    def __init__(self, message: str, status: int = INPUT) -> None:
        super().__init__(message)
        self.status = status
