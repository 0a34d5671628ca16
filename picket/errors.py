"""How a command ends when it cannot do what it was asked: one sentence and an exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell is told."""

    OK = 0
    """Done; a check passed or is degraded."""
    FAILED = 1
    """A check failed or timed out; `up` ended without its results; `doctor` found a fault."""
    BAD_INPUT = 2
    """A setting, an option or a file is wrong: nothing was tried."""
    KEY_REFUSED = 3
    """The service refused the agent's key."""
    OWN_FAULT = 70
    """We could not look (`EX_SOFTWARE`): this says nothing about the target."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C before the work was done."""


class CommandError(Exception):
    """Ends the command: the sentence goes to standard error, without a traceback."""

    def __init__(self, message: str, code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
