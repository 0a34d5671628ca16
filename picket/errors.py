"""The errors of commands: one sentence and an exit code."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of all commands."""

    OK = 0
    """The command succeeded; a check passed or is degraded."""
    FAILED = 1
    """A check failed or timed out, `up` got too few results, or `doctor` found a failure."""
    BAD_INPUT = 2
    """A setting, an option or a file is wrong, so nothing was started."""
    KEY_REFUSED = 3
    """The service refused the agent's key."""
    OWN_FAULT = 70
    """An internal error (`EX_SOFTWARE`); it says nothing about the target."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C before the work was done."""


class CommandError(Exception):
    """Ends the command: the sentence goes to standard error, without a traceback."""

    def __init__(self, message: str, code: ExitCode = ExitCode.BAD_INPUT) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
