"""The errors of this room."""


class IntakeError(Exception):
    """The input cannot be read or is no log; the message is one line saying what, where, and what to do."""


class Unreachable(IntakeError):
    """A store or host that did not answer this time; the same may go well a little later."""
