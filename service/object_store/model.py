"""What a store of files can do, and where a bucket is."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from service.http.errors import ApiError

BUNDLES: Final = "bundles"
"""What keys of bundles begin with; no location has this id."""


class ObjectStoreError(ApiError):
    """503: the store cannot be reached, or refused the request."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self, bucket: str, reason: str) -> None:
        super().__init__(f"The bucket {bucket} cannot be used: {reason}.")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class RemoteObject:
    """An object that lies in a store elsewhere."""

    size_bytes: int
    read: Callable[[int, int], AsyncIterator[bytes]]
    """Its bytes from the first offset up to the second, which is not read any more."""

    async def read_all(self, start: int, stop: int) -> bytes:
        """Read these bytes at once."""
        return b"".join([block async for block in self.read(start, stop)])


@dataclass(frozen=True, slots=True)
class UploadLink:
    """Where one file can be stored for a short while."""

    url: str
    headers: Mapping[str, str]
    """What the request has to have, besides the length of the file."""


class ObjectStore(Protocol):
    """Keeps files by key; keys are names with slashes between them.

    All methods but those of a folder raise `ObjectStoreError` when the store does not answer.
    """

    async def put_file(self, key: str, file: Path) -> None:
        """Store a file under this key; it is moved there, and gone afterwards.

        Raises:
            OSError: the disk takes no more, or the file cannot be read.
        """

    async def find(self, key: str) -> Path | RemoteObject | None:
        """What is stored under this key."""

    async def list_keys(self, prefix: str) -> frozenset[str]:
        """All keys that begin with this prefix and a slash."""

    async def remove_before(self, before_ms: int) -> int:
        """Remove the runs to which nothing has been added since; how many.

        The first two names of a key are a location and a run; bundles stay.
        """

    async def list_changed(self, prefix: str) -> Mapping[str, float]:
        """When each object was stored whose key begins with this prefix and a slash, in ms."""

    async def remove(self, key: str, *, before_ms: float) -> None:
        """Remove an object, unless it is newer, or gone."""

    async def sign(self, key: str) -> str | None:
        """A link that reads this object for a short while. None: the service serves it."""

    async def sign_for_agent(self, key: str) -> str | None:
        """A link by which an agent reads this object. None: the service serves it."""

    async def sign_upload(self, key: str, *, size_bytes: int, sha256: str) -> UploadLink | None:
        """A link by which an agent stores this very file. None: it goes to the service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """A bucket of an S3-compatible store, and how to reach it."""

    name: str
    prefix: str = ""
    """What all keys begin with, without slashes around it."""
    endpoint: str | None = None
    """The address of the store. None: AWS."""
    region: str = "us-east-1"
    key_id: str | None = None
    """The access key. None: credentials of the environment, as other AWS clients find them."""
    secret_key: str | None = field(default=None, repr=False)
    link_s: int = 0
    """How long signed links are valid. 0: there are none."""
    agent_link_s: int = 0
    """How long links for agents are valid. 0: there are none."""


def parse_bucket(text: str) -> Bucket:
    """The bucket and prefix of an address as in s3://bucket/prefix.

    Raises:
        ValueError: with the rest of a sentence.
    """
    parts = urlsplit(text)
    if "@" in parts.netloc:
        raise ValueError("has credentials; set ARTIFACT_STORE_KEY_ID and ARTIFACT_STORE_SECRET_KEY")
    if parts.scheme != "s3" or not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"is {text}; use the form s3://bucket/prefix")
    return Bucket(name=parts.netloc, prefix=parts.path.strip("/"))


async def read_head(found: Path | RemoteObject | None, count: int) -> bytes:
    """The first bytes of a stored file; fewer where it has fewer, or is gone."""
    if found is None:
        return b""
    if isinstance(found, RemoteObject):
        stop = min(count, found.size_bytes)
        return await found.read_all(0, stop)  # noqa: ASYNC240 - it is no path here
    return await asyncio.to_thread(_head_of, found, count)


def _head_of(file: Path, count: int) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(count)
    except OSError:
        return b""
