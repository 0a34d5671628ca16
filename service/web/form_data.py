"""What a form sent."""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request

from service.http.errors import InvalidError, TooLargeError

_LIMIT_BYTES: Final = 1024 * 1024
_MOST_FIELDS: Final = 20_000


class FormData:
    """The fields of a form, in their order; a name may come more than once."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        self.pairs = tuple(pairs)
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
    """The form of a request, which is read once and kept.

    Raises:
        TooLargeError: it is longer than a body of the API may be.
        InvalidError: it is no form.
    """
    kept = getattr(request.state, "form", None)
    if isinstance(kept, FormData):
        return kept
    form = _parse(await _read(request))
    request.state.form = form
    return form


async def _read(request: Request) -> bytes:
    received = bytearray()
    try:
        async for block in request.stream():
            received += block
            if len(received) > _LIMIT_BYTES:
                raise TooLargeError(f"The form is larger than {_LIMIT_BYTES} bytes.")
    except ClientDisconnect:
        raise InvalidError("The form did not arrive whole.", keys=()) from None
    return bytes(received)


def _parse(body: bytes) -> FormData:
    try:
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"
        )
    except ValueError:
        raise InvalidError("The form cannot be read.", keys=()) from None
    # Browsers send lines with CR LF; people wrote them with LF.
    return FormData([(name, value.replace("\r\n", "\n")) for name, value in pairs])
