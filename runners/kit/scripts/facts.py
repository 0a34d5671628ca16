"""Collects what one setup or teardown script says about itself, and believes little of it.

The script shares its process with our code and can write facts of its own: whatever does not read
as a fact spoils the run of the script that wrote it, and nothing else.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from contract.result import LogLine
from runners.kit.scripts.messages import Begun, Broke, Done, Fact, Logged, Secret, decode_fact

_MAX_LINES: Final = 1_001
"""With the notice that there were more."""
_MAX_SECRETS: Final = 20
_MAX_SECRET_CHARS: Final = 16_384
"""Of all together: each is searched for, in all its encoded forms, wherever something leaves."""


class ScriptFacts:
    """The facts of one script, as they come in."""

    def __init__(self, *, began_ms: float, keep_secret: Callable[[str], None]) -> None:
        """`began_ms`: when the script got its job, since the run began."""
        self.has_begun = False
        self.ending: Broke | Done | None = None
        """None: the script has not come to an end by itself."""
        self.is_garbled = False
        """Something came that is no fact."""
        self._began_ms = began_ms
        self._keep_secret = keep_secret
        self._secrets: set[str] = set()
        self.log: list[LogLine] = []

    def take(self, line: bytes) -> bool:
        """Note a line; whether the end of the process has nothing to add any more."""
        try:
            fact = decode_fact(line)
        except (msgspec.DecodeError, RecursionError):
            self.is_garbled = True
        else:
            self._note(fact)
        return self.is_garbled or (isinstance(self.ending, Done) and not self.ending.printed)

    def _note(self, fact: Fact) -> None:
        match fact:
            case Begun():
                self.has_begun = True
            case Logged() if len(self.log) < _MAX_LINES:
                at_ms = self._began_ms + fact.after_ms
                self.log.append(LogLine(after_ms=at_ms, level=fact.level, message=fact.message))
            case Secret():
                self._note_secret(fact.value)
            case Broke() | Done() if self.ending is None:
                self.ending = fact
            case _:
                self.is_garbled = True

    def _note_secret(self, value: str) -> None:
        self._secrets.add(value)
        chars = sum(map(len, self._secrets))
        if len(self._secrets) > _MAX_SECRETS or chars > _MAX_SECRET_CHARS:
            self.is_garbled = True
        else:
            self._keep_secret(value)
