"""A real object store over HTTP, which checks signatures, with one bucket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from nanio.app import build_app
from nanio.auth.credentials import StaticCredentialResolver
from nanio.config import Settings

from service.object_store.model import Bucket
from tests.servers.public_api import listening

KEY_ID: Final = "picket"
SECRET_KEY: Final = "a-secret-of-the-store"


@asynccontextmanager
async def object_store(directory: Path) -> AsyncIterator[Bucket]:
    """Its bucket, as somebody with the right key names it; it is gone with the context."""
    (directory / "files").mkdir(parents=True, exist_ok=True)
    app = build_app(
        Settings(data_dir=directory, credentials=StaticCredentialResolver({KEY_ID: SECRET_KEY}))
    )
    async with listening(app) as url:
        yield Bucket(
            name="files", prefix="below/here", endpoint=url, key_id=KEY_ID, secret_key=SECRET_KEY
        )


def settings_of(bucket: Bucket) -> dict[str, Any]:
    """The service's settings for this bucket."""
    return {
        "artifact_store": Bucket(name=bucket.name, prefix=bucket.prefix),
        "artifact_endpoint": bucket.endpoint,
        "artifact_key_id": bucket.key_id,
        "artifact_secret_key": bucket.secret_key,
        "artifact_link_minutes": bucket.link_s // 60,
        "artifact_agent_link_minutes": bucket.agent_link_s // 60,
    }
