"""Files in a bucket of an S3-compatible store."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from service.object_store.model import (
    BUNDLES,
    Bucket,
    ObjectStoreError,
    RemoteObject,
    UploadLink,
)
from service.object_store.presign import Signer, checksum_header

if TYPE_CHECKING:
    from obstore import ObjectMeta

_CONNECT: Final = timedelta(seconds=5)
_REQUEST: Final = timedelta(seconds=60)
_RETRIES: Final = 2
_RETRYING: Final = timedelta(seconds=20)
_BLOCK_BYTES: Final = 2 * 1024 * 1024
"""How much one request reads: memory and time of a request have a limit, however slow readers
are."""
_ATTRIBUTES: Final = {
    "Content-Type": "application/octet-stream",
    "Content-Disposition": "attachment",
}
"""What a browser is told at a signed link: it saves the file, and runs nothing of it."""
_REASONS: Final = (
    ("NoSuchBucket", "there is no such bucket"),
    ("403 Forbidden", "the store refused the key"),
    ("401 Unauthorized", "the store refused the key"),
    ("404 Not Found", "there is no such bucket"),
    ("error sending request", "the store cannot be reached"),
)


def _changed_ms(found: "ObjectMeta") -> float:
    return found["last_modified"].timestamp() * 1000


class BucketStore:
    """Keeps objects in a bucket."""

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._store = _connect(bucket)

    async def check(self) -> None:
        """Whether the bucket is there, and may be read.

        Raises:
            ObjectStoreError: it is not; says why.
        """
        with self._explained():
            await obstore.list(self._store, prefix="picket", chunk_size=1).collect_async()

    async def put_file(self, key: str, file: Path) -> None:
        """Upload a file, in parts where it is large, and remove it here."""
        with self._explained():
            try:
                await obstore.put_async(self._store, key, file, attributes=_ATTRIBUTES)
            except FileNotFoundError as problem:
                if not await asyncio.to_thread(file.exists):
                    raise
                raise self._error(problem) from problem
        await asyncio.to_thread(file.unlink, missing_ok=True)

    async def find(self, key: str) -> RemoteObject | None:
        """The object, if it is there."""
        with self._explained():
            try:
                meta = await obstore.head_async(self._store, key)
            except FileNotFoundError:
                return None
        return RemoteObject(meta["size"], partial(self._read, key))

    async def list_keys(self, prefix: str) -> frozenset[str]:
        """All keys that begin with this prefix and a slash."""
        with self._explained():
            found = await obstore.list(self._store, prefix=prefix).collect_async()
        return frozenset(one["path"] for one in found)

    async def remove_before(self, before_ms: int) -> int:
        """Remove the runs whose newest object is older; how many."""
        newest: dict[str, float] = {}
        keys: dict[str, list[str]] = {}
        with self._explained():
            async for page in obstore.list(self._store):
                for one in page:
                    if one["path"].startswith(f"{BUNDLES}/"):
                        continue
                    run = "/".join(one["path"].split("/")[:2])
                    newest[run] = max(newest.get(run, 0.0), _changed_ms(one))
                    keys.setdefault(run, []).append(one["path"])
            gone = [run for run, changed_ms in newest.items() if changed_ms < before_ms]
            for run in gone:
                await obstore.delete_async(self._store, keys[run])
        return len(gone)

    async def list_changed(self, prefix: str) -> Mapping[str, float]:
        """When each object was stored whose key begins with this prefix and a slash, in ms."""
        with self._explained():
            found = await obstore.list(self._store, prefix=prefix).collect_async()
        return {one["path"]: _changed_ms(one) for one in found}

    async def remove(self, key: str, *, before_ms: float) -> None:
        """Remove an object, unless it is newer, or gone."""
        with self._explained(), suppress(FileNotFoundError):
            if _changed_ms(await obstore.head_async(self._store, key)) < before_ms:
                await obstore.delete_async(self._store, key)

    async def sign(self, key: str) -> str | None:
        """A link that reads this object for a short while. None: links are off."""
        return await self._sign(key, self._bucket.link_s)

    async def sign_for_agent(self, key: str) -> str | None:
        """A link by which an agent reads this object. None: links for agents are off."""
        return await self._sign(key, self._bucket.agent_link_s)

    async def sign_upload(self, key: str, *, size_bytes: int, sha256: str) -> UploadLink | None:
        """A link by which an agent stores this very file. None: links for agents are off.

        Without a key of our own to sign with, the link takes any file: whoever relies on it looks.
        """
        valid_s, bucket = self._bucket.agent_link_s, self._bucket
        if not valid_s:
            return None
        headers = {name.lower(): value for name, value in _ATTRIBUTES.items()}
        with self._explained():
            valid = timedelta(seconds=valid_s)
            link = await obstore.sign_async(self._store, "PUT", key, valid)
        if bucket.key_id is not None and bucket.secret_key is not None:
            headers |= checksum_header(sha256)
            signer = Signer(
                key_id=bucket.key_id, secret_key=bucket.secret_key, region=bucket.region
            )
            link = signer.presign(
                "PUT",
                link.partition("?")[0],
                valid_s=valid_s,
                headers={**headers, "content-length": str(size_bytes)},
                now=datetime.now(UTC),
            )
        return UploadLink(link, headers)

    async def _sign(self, key: str, valid_s: int) -> str | None:
        if not valid_s:
            return None
        with self._explained():
            valid = timedelta(seconds=valid_s)
            return await obstore.sign_async(self._store, "GET", key, valid)

    async def _read(self, key: str, start: int, stop: int) -> AsyncIterator[bytes]:
        while start < stop:
            end = min(start + _BLOCK_BYTES, stop)
            with self._explained():
                block = await obstore.get_range_async(self._store, key, start=start, end=end)
            yield bytes(block)
            start = end

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BaseError as problem:
            raise self._error(problem) from problem

    def _error(self, problem: Exception) -> ObjectStoreError:
        text = str(problem)
        reason = next(
            (said for sign, said in _REASONS if sign in text), "the store did not do what was asked"
        )
        return ObjectStoreError(self._bucket.name, reason)


def _connect(bucket: Bucket) -> S3Store:
    """The client; it opens no connection yet."""
    chosen: dict[str, Any] = {"region": bucket.region}
    if bucket.endpoint is not None:
        chosen["endpoint"] = bucket.endpoint
    if bucket.key_id is not None:
        chosen |= {"access_key_id": bucket.key_id, "secret_access_key": bucket.secret_key}
    return S3Store(
        bucket.name,
        prefix=bucket.prefix or None,
        client_options={
            "allow_http": (bucket.endpoint or "").startswith("http://"),
            "connect_timeout": _CONNECT,
            "timeout": _REQUEST,
        },
        retry_config={"max_retries": _RETRIES, "retry_timeout": _RETRYING},
        **chosen,
    )
