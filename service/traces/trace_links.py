"""Links to traces that hold for some minutes, and where their viewer is."""

import base64
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from contract.agent_api import ARTIFACT_NAME
from service.accounts.keys import Pepper
from service.results.assets import RunFile

VERSION: Final = "1.65.1"
"""The viewer's; it is a part of its address, and what is below that never changes."""
_KEPT_S: Final = 600
"""The viewer reads a trace when it is opened, and once more when its worker was asleep."""
_PURPOSE: Final = b"picket: a trace for the viewer\n"
_MOST_LETTERS: Final = 2_000


class _Content(msgspec.Struct, frozen=True, array_like=True):
    until_s: int
    location_id: str
    run_id: int
    fence: int
    name: str


@dataclass(frozen=True, slots=True)
class TraceLinks:
    """Signs links, and reads them: whoever has one may read one file, for some minutes."""

    pepper: Pepper
    now_s: Callable[[], float] = time.time

    def sign(self, file: RunFile) -> str:
        """The token of a link."""
        content = msgspec.json.encode(
            _Content(
                until_s=int(self.now_s()) + _KEPT_S,
                location_id=file.location_id,
                run_id=file.run_id,
                fence=file.fence,
                name=file.name,
            )
        )
        return f"{_encode(content)}.{_encode(self._sign(content))}"

    def read(self, token: str) -> RunFile | None:
        """The file that a token leads to. None: it has ended, or is none of ours."""
        text, _, signature = token[:_MOST_LETTERS].partition(".")
        try:
            content = _decode(text)
            is_ours = hmac.compare_digest(_decode(signature), self._sign(content))
            found = msgspec.json.decode(content, type=_Content) if is_ours else None
        except (ValueError, msgspec.MsgspecError):
            return None
        if found is None or found.until_s < self.now_s():
            return None
        if ARTIFACT_NAME.fullmatch(found.name) is None:
            return None
        return RunFile(
            location_id=found.location_id,
            run_id=found.run_id,
            fence=found.fence,
            name=found.name,
        )

    def _sign(self, content: bytes) -> bytes:
        return self.pepper.keyed(_PURPOSE + content)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerAddress:
    """Where browsers find the viewer."""

    port: int | None = None
    """The port at which it listens. None: it does not."""
    url: str | None = None
    """TRACE_VIEWER_URL. None: the other name of this machine, for browsers on it."""

    def origin_for(self, scheme: str, host: str) -> str | None:
        """The viewer's origin for a page of this one, with another host: cookies ignore ports.

        None: there is none, because nothing listens, or browsers would refuse it.
        """
        if self.url is not None:
            return self.url
        if self.port is None or scheme != "http":
            return None
        other = _OTHER_NAMES.get(host)
        return None if other is None else f"http://{other}:{self.port}"


_OTHER_NAMES: Final = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
