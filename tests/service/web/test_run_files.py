"""Files of a run on its page, whose store is a bucket."""

import struct
from dataclasses import replace
from pathlib import Path
from typing import Final

from contract.result import Artifact
from service.object_store.s3 import BucketStore
from service.results.assets import Asset, RunFile
from service.web.result.run_files import describe_files
from tests.servers.object_store import object_store

PICTURE: Final = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\rIHDR" + struct.pack(">II", 640, 480)


def an_asset(name: str) -> Asset:
    artifact = Artifact(name=name, kind="screenshot", size_bytes=len(PICTURE), sha256="0" * 64)
    return Asset(artifact, RunFile(location_id="here", run_id=1, fence=7, name=name))


async def test_the_page_links_what_the_bucket_has_and_all_of_it_while_it_is_away(
    tmp_path: Path,
) -> None:
    shown, lost = an_asset("shot.png"), an_asset("lost.png")
    (tmp_path / "arriving").write_bytes(PICTURE)
    async with object_store(tmp_path / "remote") as bucket:
        store = BucketStore(bucket)
        await store.put_file(shown.file.key, tmp_path / "arriving")
        first, second = await describe_files(store, (shown, lost), at="/here")
    assert (first.path, first.width, first.height) == ("/here/files/shot.png", 640, 480)
    assert second.path == ""

    away = await describe_files(store, (shown, lost), at="/here")
    assert away == [
        replace(first, width=None, height=None),
        replace(second, path="/here/files/lost.png"),
    ]
