"""Sensitive headers in what scripts and Playwright say: call logs of requests, printed objects."""

import re
from typing import Any, Final

import msgspec
import re2

from contract.http_evidence import HttpEvidence
from contract.result import Outcome
from contract.wire import decode, encode
from runners.kit.archives.headers import HeaderHiding

_MEMORY_BYTES: Final = 8 << 20


class SaidHeaders:
    """Knows the names of headers whose values are secret whatever they are."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._named = _compile(names)

    def hidden(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        """The outcome without the values behind such names; the values, for all the rest.

        What a server answered stays: its body is the check's own matter, its headers are hidden by
        whoever knows that they are headers.
        """
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return self._hidden(outcome)
        said, found = self._hidden(msgspec.structs.replace(outcome, evidence=None))
        if not found and said.failure == outcome.failure and said.log == outcome.log:
            return outcome, ()
        return msgspec.structs.replace(said, evidence=evidence), found

    def _hidden(self, outcome: Outcome) -> tuple[Outcome, tuple[str, ...]]:
        text = encode(outcome)
        if self._named.search(text) is None:
            return outcome, ()
        hiding = HeaderHiding(self._names)
        # A text may be JSON of its own, which looks otherwise within that of the result.
        tree = self._without(msgspec.to_builtins(outcome), hiding)
        text = _hide(msgspec.json.encode(tree), hiding)
        return decode(text, Outcome), hiding.found

    def _without(self, value: Any, hiding: HeaderHiding) -> Any:
        """The tree's texts, each by itself."""
        if isinstance(value, dict):
            return {key: self._without(one, hiding) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._without(one, hiding) for one in value]
        if not isinstance(value, str) or self._named.search(value.encode()) is None:
            return value
        return _hide(value.encode(), hiding).decode()


def _hide(text: bytes, hiding: HeaderHiding) -> bytes:
    hiding.look(text)
    return hiding.hide(text)[0]


def _compile(names: frozenset[str]) -> Any:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    return re2.compile(f"(?i:{'|'.join(map(re.escape, sorted(names)))})".encode(), options)
