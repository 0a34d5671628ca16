"""Rewrites an outcome's texts without secrets; unchanged parts stay the same objects."""

import base64
import binascii
import re
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Final, TypeVar, Union, cast, get_args, get_origin

import msgspec
import re2

from contract.assertions import AssertionResult
from contract.evidence import (
    BrowserEvidence,
    HttpEvidence,
    MultiStepEvidence,
    PlaywrightEvidence,
    SeenResponse,
)
from contract.result import Outcome, TcpEvidence
from redaction.policy import CUT_SIGN, HIDDEN
from redaction.replacer import SecretPattern

StructT = TypeVar("StructT", bound=msgspec.Struct)
ValueT = TypeVar("ValueT")

_CUT_CHARS: Final = 2500
"""The shortest assertion value that may have been cut: 10 KB have at least so many characters."""


class Rewriter:
    """Rewrites one outcome and counts what it hides."""

    def __init__(self, *, pattern: SecretPattern | None, hidden_headers: frozenset[str]) -> None:
        self._pattern = pattern
        self._hiding = pattern
        self._hidden_headers = hidden_headers
        self.replacements = 0

    def headers(self, outcome: Outcome) -> Outcome:
        """Hide the values of hidden headers."""
        evidence = outcome.evidence
        if not isinstance(evidence, HttpEvidence):
            return outcome
        request = _changed(evidence.request, headers=self._headers(evidence.request.headers))
        response = evidence.response
        if response is not None:
            response = _changed(response, headers=self._headers(response.headers))
        return _changed(outcome, evidence=_changed(evidence, request=request, response=response))

    def texts(self, outcome: Outcome, *, encoded: bytes) -> Outcome:
        """Hide secrets, and credentials in URLs, in every text.

        `encoded` is JSON with the outcome; if it shows no sign of either, nothing else is read.
        """
        outcome = self._log(self._without_encoded_body(outcome))
        may_hold_secrets = self._pattern is not None and self._pattern.may_be_in(encoded)
        if not may_hold_secrets and not may_hold_credentials(encoded):
            return outcome
        self._hiding = self._pattern if may_hold_secrets else None
        return cast("Outcome", self._value(outcome))

    def cut_ends(self, outcome: Outcome) -> Outcome:
        """Hide prefixes of secrets at the ends of texts that were cut."""
        if self._pattern is None:
            return outcome
        kinds: dict[str, Callable[[Any], Any]] = {
            "evidence": self._cut_evidence,
            "assertions": self._cut_assertions,
        }
        fields = {name: getattr(outcome, name) for name in _text_fields(Outcome)}
        return _changed(
            outcome, **{name: kinds.get(name, self._cut_texts)(fields[name]) for name in fields}
        )

    def _headers(self, headers: dict[str, str]) -> dict[str, str]:
        hidden = {
            name: HIDDEN
            for name, value in headers.items()
            if name.lower() in self._hidden_headers and value != HIDDEN
        }
        self.replacements += len(hidden)
        return {**headers, **hidden} if hidden else headers

    def _log(self, outcome: Outcome) -> Outcome:
        """Hide secrets of several lines that the log has line by line."""
        if self._pattern is None or len(outcome.log) < 2:
            return outcome
        messages, count = self._pattern.hide_in_lines(tuple(one.message for one in outcome.log))
        if not count:
            return outcome
        self.replacements += count
        lines = zip(outcome.log, messages, strict=True)
        log = tuple(_changed(line, message=message) for line, message in lines)
        return _changed(outcome, log=log)

    def _value(self, value: Any) -> Any:
        """Rewrite any part of an outcome; numbers only occur in free-form objects."""
        match value:
            case str() if type(value) is str:
                return self._text(value)
            case msgspec.Struct():
                names = _text_fields(type(value))
                return _changed(value, **{n: self._value(getattr(value, n)) for n in names})
            case dict():
                pairs = {self._value(key): self._value(item) for key, item in value.items()}
                return _same_if_equal(value, pairs)
            case tuple() | list():
                return _same_if_equal(value, type(value)(map(self._value, value)))
            case int() | float() if type(value) is not bool:
                return value if self._text(str(value)) == str(value) else HIDDEN
            case _:
                return value

    def _text(self, text: str) -> str:
        if self._hiding is not None:
            text, count = self._hiding.hide_in_text(text)
            self.replacements += count
        if not ("@" in text or "%40" in text):
            return text
        shown = _without_credentials(text)
        self.replacements += shown != text
        return shown

    def _without_encoded_body(self, outcome: Outcome) -> Outcome:
        """Hide secrets in a body stored as base64, by decoding it."""
        evidence = outcome.evidence
        if self._pattern is None or not isinstance(evidence, HttpEvidence):
            return outcome
        response = evidence.response
        if response is None or response.body_encoding != "base64":
            return outcome
        try:
            body, count = self._pattern.hide(base64.b64decode(response.body))
        except binascii.Error:
            return outcome
        if not count:
            return outcome
        self.replacements += count
        response = _changed(response, body=base64.b64encode(body).decode())
        return _changed(outcome, evidence=_changed(evidence, response=response))

    def _cut_evidence(self, evidence: Any) -> Any:
        match evidence:
            case HttpEvidence(response=SeenResponse(truncated=True) as response):
                cut = _changed(response, body=self._cut_end(response.body))
                return _changed(evidence, response=cut)
            case TcpEvidence(truncated=True, response=str() as text):
                return _changed(evidence, response=self._cut_end(text))
            case PlaywrightEvidence() | BrowserEvidence() | MultiStepEvidence():
                return self._cut_texts(evidence)
            case _:
                return evidence

    def _cut_texts(self, value: Any) -> Any:
        """Rewrite each text before each sign that it was cut."""
        match value:
            case str() if type(value) is str:
                return self._cut_sentence(value)
            case msgspec.Struct():
                names = _text_fields(type(value))
                return _changed(value, **{n: self._cut_texts(getattr(value, n)) for n in names})
            case tuple():
                return _same_if_equal(value, tuple(map(self._cut_texts, value)))
            case dict():
                return _same_if_equal(value, {k: self._cut_texts(v) for k, v in value.items()})
            case _:
                return value

    def _cut_assertions(self, results: tuple[AssertionResult, ...]) -> tuple[AssertionResult, ...]:
        return _same_if_equal(results, tuple(map(self._cut_assertion, results)))

    def _cut_assertion(self, result: AssertionResult) -> AssertionResult:
        actual, error = result.actual, result.error
        if actual is not None and len(actual) >= _CUT_CHARS:
            actual = self._cut_end(actual)
        if error is not None:
            error = self._cut_sentence(error)
        return _changed(result, actual=actual, error=error)

    def _cut_sentence(self, sentence: str) -> str:
        if CUT_SIGN not in sentence:
            return sentence
        *cut, rest = sentence.split(CUT_SIGN)
        return _same_if_equal(sentence, CUT_SIGN.join([*map(self._cut_end, cut), rest]))

    def _cut_end(self, text: str) -> str:
        shown = self._pattern.hide_cut_secret(text) if self._pattern is not None else text
        self.replacements += shown != text
        return shown


_CREDENTIALS: Final[tuple[re.Pattern[str], ...]] = (
    re2.compile(r"""(:(?:\\*/){2})[^\s/?#"'<>\\]+(@)"""),
    # In a URL inside another URL: percent-encoded, up to the first encoded / ? or #.
    re2.compile(
        r"""(%3[aA]%2[fF]%2[fF])"""
        r"""(?:[^\s/?#"'<>&%]|%(?:[013-9a-fA-F][0-24-9a-eA-E]|[014-9a-fA-F][3fF]|2[0-24-9a-eA-E]))+"""
        r"""(%40)"""
    ),
)
"""User name and password in a URL, plain and percent-encoded."""


def may_hold_credentials(encoded: bytes) -> bool:
    """Whether JSON has the @ of every URL with credentials."""
    return b"@" in encoded or b"%40" in encoded


def _without_credentials(text: str) -> str:
    for substitution in _CREDENTIALS:
        text = substitution.sub(rf"\1{HIDDEN}\2", text)
    return text


def _changed(struct: StructT, **fields: Any) -> StructT:
    if all(getattr(struct, name) is value for name, value in fields.items()):
        return struct
    return msgspec.structs.replace(struct, **fields)


def _same_if_equal(old: ValueT, new: ValueT) -> ValueT:
    return old if old == new else new


@lru_cache(maxsize=256)
def _text_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields that may hold free text somewhere; closed sets, numbers and times do not."""
    fields = msgspec.structs.fields(kind)
    return tuple(field.name for field in fields if _holds_text(field.type))


def _holds_text(annotation: Any) -> bool:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _holds_text(arguments[0])
    if origin is dict:
        return _holds_text(arguments[1])
    if origin in (tuple, list, Union, types.UnionType):
        return any(map(_holds_text, arguments))
    if annotation in (str, object):
        return True
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)
