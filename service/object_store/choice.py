"""The store that the settings choose."""

from pathlib import Path

from service.errors import SettingsError
from service.object_store.folder import FolderStore
from service.object_store.model import Bucket, ObjectStore, ObjectStoreError


async def open_store(bucket: Bucket | None, folder: Path) -> ObjectStore:
    """The bucket, or without one the folder.

    Raises:
        SettingsError: the bucket cannot be used, or its client library is missing.
    """
    if bucket is None:
        return FolderStore(folder)
    try:
        from service.object_store.s3 import BucketStore  # noqa: PLC0415 - an extra installs it
    except ModuleNotFoundError as problem:
        said = "ARTIFACT_STORE needs the extra s3; install picket-monitoring[s3]"
        raise SettingsError((said,)) from problem
    store = BucketStore(bucket)
    try:
        await store.check()
    except ObjectStoreError as problem:
        named = f"ARTIFACT_STORE is s3://{bucket.name}/{bucket.prefix}"
        said = f"{named}, which cannot be used: {problem.reason}"
        raise SettingsError((said,)) from problem
    return store
