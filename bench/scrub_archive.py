"""A trace archive for `scrub.py`: synthetic, and alike in each run."""

import hashlib
import json
import random
import string
import zipfile
from base64 import b64encode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import quote

_ALPHABET: Final = string.ascii_letters + string.digits
_TEXT: Final = (
    "button card cart checkout click color confirm content delivery display div email empty error "
    "expect field flex footer form function header image input item label layout link list locator "
    "login margin message modal navigation onclick order page padding payment price product query "
    "response return section select shadow span style submit table title total undefined value var"
)
_WORDS: Final = tuple(_TEXT.split())
_HITS_EACH: Final = 2000
"""One line of so many shows a secret."""
_RESOURCE_BYTES: Final = 200_000
_SHARES: Final = {"0-trace.trace": 0.7, "0-trace.network": 0.1}
"""Of the whole; pages and scripts are the rest."""
_COOKIE: Final = "session=f3b1c0de-77aa-4e0b-9a51-bb20e1a0c9d4; theme=dark-blue-ocean"


def write_archive(path: Path, secrets: tuple[str, ...], size_bytes: int) -> None:
    """Events, snapshots, requests, pages and scripts of so many bytes together, unpacked."""
    lines = _Lines(secrets)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name, share in _SHARES.items():
            maker = lines.event if name.endswith(".trace") else lines.request
            with archive.open(name, "w") as member:
                for piece in lines.pieces(maker, int(size_bytes * share)):
                    member.write(piece)
        left = int(size_bytes * (1 - sum(_SHARES.values())))
        for _ in range(left // _RESOURCE_BYTES):
            content = b"".join(lines.pieces(lines.script, _RESOURCE_BYTES))
            digest = hashlib.sha1(content, usedforsecurity=False).hexdigest()
            archive.writestr(f"resources/{digest}.html", content)


def contents_of(path: Path) -> Iterator[bytes]:
    """What lies in it, unpacked."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            yield archive.read(name)


def secrets_of(count: int) -> tuple[str, ...]:
    """Tokens, passwords and keys as they are common."""
    dice = random.Random(7)
    makers: tuple[Callable[[int], str], ...] = (
        lambda _: "".join(dice.choices(_ALPHABET, k=32)),
        lambda _: "".join(dice.choices(f"{_ALPHABET}+/=", k=40)),
        lambda number: f'p@$$ w/ö"rd&<x>%+={number}',
        lambda _: "sk_live_" + "".join(dice.choices(_ALPHABET, k=24)),
    )
    return tuple(makers[number % len(makers)](number) for number in range(count))


class _Lines:
    def __init__(self, secrets: tuple[str, ...]) -> None:
        self._random = random.Random(len(secrets))
        self._secrets = secrets
        self._made = 0

    def pieces(self, maker: Callable[[], str], size_bytes: int) -> Iterator[bytes]:
        """So many bytes of lines."""
        left = size_bytes
        while left > 0:
            self._made += 1
            line = self._hit() if self._made % _HITS_EACH == 0 else maker()
            piece = line.encode() + b"\n"
            left -= len(piece)
            yield piece

    def event(self) -> str:
        """Of a trace: a call or a snapshot."""
        (maker,) = self._random.choices((self._call, self._snapshot), weights=(4, 3))
        return maker()

    def request(self) -> str:
        """Of the network log."""
        inner = json.dumps({"text": self._words(8), "name": "naïve"})
        content = {"mimeType": "text/html", "text": inner}
        headers = [{"name": "Accept", "value": "text/html"}, {"name": "Cookie", "value": _COOKIE}]
        snapshot = {"request": {"headers": headers, "url": self._url()}, "content": content}
        return json.dumps({"type": "resource-snapshot", "snapshot": snapshot})

    def script(self) -> str:
        """Of a page."""
        return (
            f'<div class="{self._words(2)}">{self._words(15)}</div>'
            f'<script>function {self._words(1)}(a,b){{return a&&"{self._words(3)}\\n"}}</script>'
        )

    def _words(self, count: int) -> str:
        return " ".join(self._random.choices(_WORDS, k=count))

    def _url(self) -> str:
        number = self._random.randrange(10**6)
        return f"https://shop.example.test/cart/item-{number}?ref=%2Fhome%3Fa%3Db&q={number * 7}"

    def _call(self) -> str:
        sha1 = f"{self._random.getrandbits(160):040x}"
        params = {"url": self._url(), "sha1": f"{sha1}.html", "timeout": 30_000}
        return json.dumps({"type": "before", "callId": f"call@{self._made}", "params": params})

    def _snapshot(self) -> str:
        link = ["A", {"href": "/" + self._words(3).replace(" ", "/")}, self._words(12)]
        return json.dumps({"type": "frame-snapshot", "html": ["DIV", {"class": "row"}, link]})

    def _hit(self) -> str:
        secret = self._random.choice(self._secrets)
        forms = (secret, quote(secret), json.dumps(secret), b64encode(secret.encode()).decode())
        return json.dumps({"value": self._random.choice(forms)})
