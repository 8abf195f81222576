"""The one error of this room."""


class IntakeError(Exception):
    """The input cannot be read or is no log; the message is one line saying what, where, and what to do."""
