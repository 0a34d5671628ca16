"""What a form sent."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from service.http.errors import InvalidError, TooLargeError
from service.http.request_body import in_time
from service.web.forms.multipart import KIND, read_multipart

_LIMIT_BYTES: Final = 1024 * 1024
_MOST_FIELDS: Final = 20_000
_PATIENCE_S: Final = 60.0
"""How long the next bytes of a file may take to arrive."""
_TORN: Final = "The form did not arrive whole."


class FormData:
    """The fields of a form, in their order; a name may come more than once."""

    def __init__(
        self, pairs: Sequence[tuple[str, str]], file: AsyncIterator[bytes] | None = None
    ) -> None:
        self.pairs = tuple(pairs)
        self.file = file
        """A file as it arrives, which is read once. None: none was chosen."""
        self._last: Mapping[str, str] = dict(pairs)

    def text(self, name: str) -> str:
        """The last value of a field, without blanks around it; empty when it was not sent."""
        return self._last.get(name, "").strip()

    def secret(self, name: str) -> str:
        """The last value of a field as it was typed: blanks may be a part of a password."""
        return self._last.get(name, "")

    def all(self, name: str) -> tuple[str, ...]:
        """Every value of a field."""
        return tuple(value for key, value in self.pairs if key == name)

    def __contains__(self, name: str) -> bool:
        return name in self._last


async def read_form(request: Request) -> FormData:
    """The form of a request, which is read once and kept; if it has a file, up to that.

    Raises:
        TooLargeError: it is longer than a body of the API may be.
        InvalidError: it is no form.
    """
    kept = getattr(request.state, "form", None)
    if isinstance(kept, FormData):
        return kept
    has_parts = is_multipart(request)
    form = await _read_multipart(request) if has_parts else _parse(await _read(request))
    request.state.form = form
    return form


def is_multipart(request: Request) -> bool:
    """Whether a form is sent as one that may have a file."""
    kind = request.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower() == KIND


async def _read_multipart(request: Request) -> FormData:
    kind = request.headers.get("content-type", "")
    parts = in_time(_stream(request), patience_s=_PATIENCE_S, remedy="send the form again")
    form = await read_multipart(kind, parts)
    return FormData(_with_own_lines(form.pairs), form.file)


async def _stream(request: Request) -> AsyncIterator[bytes]:
    try:
        async for block in request.stream():
            yield block
    except ClientDisconnect:
        raise InvalidError(_TORN, keys=()) from None


async def _read(request: Request) -> bytes:
    received = bytearray()
    async for block in _stream(request):
        received += block
        if len(received) > _LIMIT_BYTES:
            raise TooLargeError(f"The form is larger than {_LIMIT_BYTES} bytes.")
    return bytes(received)


def _parse(body: bytes) -> FormData:
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise InvalidError("The form cannot be read.", keys=()) from None
    return FormData(_with_own_lines(pairs))


def _with_own_lines(pairs: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Browsers send lines with CR LF; people wrote them with LF."""
    return [(name, value.replace("\r\n", "\n")) for name, value in pairs]
