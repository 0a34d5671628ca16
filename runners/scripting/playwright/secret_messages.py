"""Reads what a run's processes report of secrets, of typing and of screenshots, for its workspace.

A long value comes in pieces: a pipe writes up to PIPE_BUF bytes atomically, so the lines of several
processes do not mix. A script may forge such lines, but only hides something in its own result.
"""

import binascii
from contextlib import suppress
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import Meta

from sandbox.workspace import Workspace

_MARK: Final = b'"fact":"secret"'
_TYPED: Final = b'"fact":"typed"'
_PICTURE_MARKS: Final = (b'"fact":"masked"', b'"fact":"unshowing"')
_MOST: Final = 64
"""The most different secrets of all processes of a run; each process may report 20."""
_MOST_CHARS: Final = 200_000
"""The longest value, in base64."""
_TOO_MANY: Final = (
    f"the run set more than {_MOST} different secrets, or too long ones, "
    "so its texts and files could not be searched for all secrets"
)


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    process: Annotated[int, Meta(ge=0)] = msgspec.field(name="from")
    number: Annotated[int, Meta(ge=0, le=_MOST)]
    piece: Annotated[str, Meta(max_length=4096)]
    last: bool


class _Typed(msgspec.Struct, frozen=True, kw_only=True):
    process: Annotated[int, Meta(ge=0)] = msgspec.field(name="from")
    text: Annotated[str, Meta(max_length=4096)] | None
    """The text in base64. None: the process does not know what was typed."""


class _Picture(msgspec.Struct, frozen=True, kw_only=True):
    fact: Literal["masked", "unshowing"]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    knew: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """The digests of the secrets that were looked for."""


_DECODER: Final = msgspec.json.Decoder(_Piece)
_TYPED_TEXTS: Final = msgspec.json.Decoder(_Typed)
_PICTURES: Final = msgspec.json.Decoder(_Picture)


class FactReceiver(Protocol):
    """Collects the facts of a run: `ReporterEvents` of scripts, `SuiteEvents` of suites."""

    def take(self, line: bytes) -> None:
        """Note one line with a fact."""

    def stop(self) -> None:
        """Note that the run was asked to end."""


class SecretMessages:
    """Filters the facts of a run: keeps those about secrets, and passes on the others."""

    def __init__(self, workspace: Workspace, *, receiver: FactReceiver) -> None:
        self._workspace = workspace
        self._receiver = receiver
        self._begun: dict[tuple[int, int], str] = {}
        self._known: set[str] = set()

    def take(self, line: bytes) -> None:
        """Note a line about a secret, typing or a screenshot; pass on any other line."""
        if any(mark in line for mark in _PICTURE_MARKS):
            self._note_picture(line)
            return
        if _TYPED in line:
            self._note_typed(line)
            return
        piece = _decode_piece(line) if _MARK in line else None
        if piece is None:
            self._receiver.take(line)
            return
        whose = (piece.process, piece.number)
        if whose in self._begun or len(self._begun) < _MOST:
            self._note(whose, piece)
        else:
            self._workspace.mark_unsearchable(_TOO_MANY)

    def stop(self) -> None:
        """Pass on that the run was asked to end."""
        self._receiver.stop()

    def _note_picture(self, line: bytes) -> None:
        with suppress(msgspec.DecodeError, RecursionError):
            message = _PICTURES.decode(line)
            is_masked = message.fact == "masked"
            self._workspace.record_picture(message.sha256, is_masked=is_masked, knew=message.knew)

    def _note_typed(self, line: bytes) -> None:
        with suppress(msgspec.DecodeError, RecursionError):
            message = _TYPED_TEXTS.decode(line)
            text = None if message.text is None else _decode_value(message.text)
            self._workspace.add_typed(message.process, text)

    def _note(self, whose: tuple[int, int], piece: _Piece) -> None:
        text = self._begun.pop(whose, "") + piece.piece
        if len(text) > _MOST_CHARS:
            self._workspace.mark_unsearchable(_TOO_MANY)
        elif not piece.last:
            self._begun[whose] = text
        elif value := _decode_value(text):
            self._note_value(value)

    def _note_value(self, value: str) -> None:
        if value in self._known:
            return
        if len(self._known) == _MOST:
            self._workspace.mark_unsearchable(_TOO_MANY)
            return
        self._known.add(value)
        self._workspace.add_secret(value)


def _decode_piece(line: bytes) -> _Piece | None:
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None


def _decode_value(text: str) -> str:
    try:
        return binascii.a2b_base64(text).decode("utf-8", "replace")
    except binascii.Error:
        return ""
