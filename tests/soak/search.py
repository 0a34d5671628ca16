"""Search all that agents said for secrets: as they are, in every encoding, and by the scanner."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redaction.clean import UnscannableError
from redaction.policy import select_usable
from redaction.scanner.scan import scan_bytes, scan_file
from redaction.scanner.text import TextScan
from tests.builders.encodings import ENCODINGS
from tests.soak.recording import Recording
from tests.soak.requests import Request, requests_of

_SMALL_BYTES: Final = 1 << 20
_PIECE_CHARS: Final = 9
"""Less than a whole secret is one too: its beginning and its end are looked for as well."""
_PEM_EDGE: Final = "-----"
"""Keys have it in common."""
_STARS: Final = b"****"
_ARTIFACT: Final = "/agent/v1/artifacts/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What was searched, and where something was found."""

    leaks: tuple[str, ...]
    """Places, without values."""
    size_bytes: int
    requests: int
    files: int
    hidden: int
    """Requests that show that something was hidden in them: none would prove nothing."""

    def line(self) -> str:
        """For a person."""
        return (
            f"searched {self.size_bytes} bytes: {self.requests} requests, of which {self.hidden} "
            f"hide something, and {self.files} files; leaks: {', '.join(self.leaks) or 'none'}"
        )


class Search:
    """Knows what is looked for."""

    def __init__(self, secrets: Mapping[str, str], *, own_key: str) -> None:
        """The secrets are by their names, which are told instead of them.

        `own_key` may stand in the `Authorization` header of a call, once, and nowhere else.
        """
        self._secrets = select_usable((*secrets.values(), own_key))
        self._scan = TextScan(self._secrets)
        self._forms = {form: f"agent's key in {how}" for how, form in _forms(own_key)}
        for name, secret in secrets.items():
            pieces = (piece for one in select_usable([secret]) for piece in _pieces(one))
            for how, form in (found for piece in pieces for found in _forms(piece)):
                self._forms[form] = f"{name} in {how}"
        key = re.escape(own_key.encode())
        self._own = re.compile(rb"(?i)(\r\nauthorization: Bearer )" + key + rb"(?=\r\n|\Z)")

    def through(self, recording: Recording, folder: Path, *, logs: Iterable[str] = ()) -> Searched:
        """Everything that was recorded; files are put together in the folder meanwhile."""
        leaks: list[str] = []
        count = hidden = 0
        files = _Files(folder)
        for number, said in enumerate(recording.connections(), start=1):
            requests = list(requests_of(said))
            for one in requests:
                files.take(one)
            count += len(requests)
            hidden += sum(_STARS in one.body for one in requests)
            leaks += self._leaks_of(said, requests, f"connection {number}")
        for number, path in enumerate(files.paths, start=1):
            leaks += [f"file {number}: {how}" for how in self._holds_file(path)]
        leaks += [f"log: {how}" for how in self.holds("\n".join(logs).encode())]
        if recording.missed_bytes:
            leaks.append(f"{recording.missed_bytes} bytes for which there was no room")
        return Searched(
            leaks=tuple(leaks),
            size_bytes=recording.size_bytes,
            requests=count,
            files=len(files.paths),
            hidden=hidden,
        )

    def holds(self, content: bytes) -> Iterator[str]:
        """How a secret was found in it; nothing where there is none."""
        yield from self._plainly(content)
        try:
            small = len(content) < _SMALL_BYTES
            if self._scan.finds(content) if small else scan_bytes(content, self._secrets):
                yield "scanner"
        except UnscannableError:
            yield "not to be scanned"

    def _leaks_of(self, said: bytes, requests: list[Request], place: str) -> Iterator[str]:
        """As the bytes are, and as they read; the scanner gets all calls of one connection."""
        raw = self._without_own_key(b"\r\n" + said)
        yield from (f"{place}: {how}" for how in self._plainly(raw))
        read = b"\n\x01\n".join(
            b"\r\n".join((self._without_own_key(one.head), one.body)) for one in requests
        )
        yield from (f"{place}, decoded: {how}" for how in self.holds(read))

    def _plainly(self, content: bytes) -> Iterator[str]:
        yield from dict.fromkeys(how for form, how in self._forms.items() if form in content)

    def _without_own_key(self, said: bytes) -> bytes:
        return self._own.sub(rb"\1", said)

    def _holds_file(self, path: Path) -> Iterator[str]:
        yield from self._plainly(path.read_bytes())
        try:
            yield from (f"scanner, {leak.kind}" for leak in scan_file(path, self._secrets))
        except UnscannableError:
            yield "not to be scanned"


class _Files:
    """Artifacts as they came in parts, over several connections and more than once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        self._known: dict[tuple[str, str, str], Path] = {}
        """By address, digest and fence."""

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self._known.values())

    def take(self, part: Request) -> None:
        """A part where the request brings one."""
        headers = part.headers()
        if not part.target.startswith(_ARTIFACT) or not part.body:
            return
        key = (part.target, headers.get("x-content-sha256", ""), headers.get("x-fence", ""))
        path = self._known.setdefault(key, self._folder / f"{len(self._known):06}")
        first = int(headers["content-range"].removeprefix("bytes ").split("-")[0])
        path.touch()
        with path.open("r+b") as file:
            file.seek(first)
            file.write(part.body)


def _pieces(secret: str) -> Iterator[str]:
    """The secret, its beginning and its end."""
    yield secret
    ends = (secret[:_PIECE_CHARS], secret[-_PIECE_CHARS:])
    yield from (end for end in ends if _PEM_EDGE not in end)


def _forms(text: str) -> Iterator[tuple[str, bytes]]:
    """The text in each encoding, and as JSON has that."""
    for how, form in _encoded(text):
        yield how, form
        in_json = json.dumps(form.decode("latin-1"), ensure_ascii=False)[1:-1]
        yield f"{how} in JSON", in_json.encode("latin-1")


def _encoded(text: str) -> Iterator[tuple[str, bytes]]:
    content = text.encode()
    for encoding in ENCODINGS:
        if "base64" not in encoding.name:
            yield encoding.name, encoding.encode(content)
    for place, skipped in enumerate((0, 2, 3)):  # letters that its neighbours have a part in
        whole = base64.b64encode(b"\0" * place + content).rstrip(b"=")
        yield "base64", whole[skipped : -1 if (len(content) + place) % 3 else None]
