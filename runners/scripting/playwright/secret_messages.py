"""Hears what a run's scripts made secret or typed, and which pictures show none, for its workspace.

A long value comes in pieces, since a pipe takes so much at once that lines do not run into each
other. A script may write such lines itself: it hides something in its own result then.
"""

import binascii
from contextlib import suppress
from typing import Annotated, Final, Literal, Protocol

import msgspec
from msgspec import Meta

_MARK: Final = b'"fact":"secret"'
_TYPED: Final = b'"fact":"typed"'
_OF_PICTURES: Final = (b'"fact":"masked"', b'"fact":"unshowing"')
_MOST: Final = 64
"""Different ones of all processes of a run; each may tell 20."""
_MOST_CHARS: Final = 200_000
"""Of one value, in base64."""
_TOO_MANY: Final = (
    f"the run set more than {_MOST} different secrets, or too long ones, "
    "so neither its texts nor its files could be searched for all"
)


class _Piece(msgspec.Struct, frozen=True, kw_only=True):
    process: Annotated[int, Meta(ge=0)] = msgspec.field(name="from")
    number: Annotated[int, Meta(ge=0, le=_MOST)]
    piece: Annotated[str, Meta(max_length=4096)]
    last: bool


class _Typed(msgspec.Struct, frozen=True, kw_only=True):
    process: Annotated[int, Meta(ge=0)] = msgspec.field(name="from")
    text: Annotated[str, Meta(max_length=4096)] | None
    """In base64. None: something that was not heard."""


class _Picture(msgspec.Struct, frozen=True, kw_only=True):
    fact: Literal["masked", "unshowing"]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    knew: Annotated[tuple[str, ...], Meta(max_length=100)] = ()
    """Names of the secrets that were looked for."""


_DECODER: Final = msgspec.json.Decoder(_Piece)
_TYPED_TEXTS: Final = msgspec.json.Decoder(_Typed)
_PICTURES: Final = msgspec.json.Decoder(_Picture)


class SecretKeeper(Protocol):
    """Who keeps what a run came upon."""

    def add_secret(self, value: str) -> None:
        """This must not be seen in what the run brings back."""

    def mark_unsearchable(self, because: str) -> None:
        """The run has secrets that nobody knows."""

    def add_typed(self, process: int, text: str | None) -> None:
        """A process typed this letter by letter. None: nobody heard what it was."""

    def record_picture(self, sha256: str, *, is_masked: bool, knew: tuple[str, ...]) -> None:
        """The text on the picture with this digest shows none of the secrets with these names."""


class FactReceiver(Protocol):
    """Who collects the facts of a run."""

    def take(self, line: bytes) -> None:
        """It told a fact."""

    def stop(self) -> None:
        """It is asked to end."""


class SecretMessages:
    """Stands before whoever collects the facts of a run."""

    def __init__(self, workspace: SecretKeeper, *, receiver: FactReceiver) -> None:
        self._workspace = workspace
        self._receiver = receiver
        self._begun: dict[tuple[int, int], str] = {}
        self._known: set[str] = set()

    def take(self, line: bytes) -> None:
        """Note one line, if it tells of a secret, of typing or a picture, or hand it on."""
        if any(mark in line for mark in _OF_PICTURES):
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
        """The run is asked to end."""
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
