"""Builders of archives as runs bring them back, and what is in them afterwards."""

import hashlib
import io
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

from redaction.files_child import HiddenFile, hide_in_file
from sandbox.workspace import RunFile, Workspace

PICTURE = b"\xff\xd8\xffpixels"
PAGE = f"page@{'ab' * 16}"
OTHER_PAGE = f"page@{'cd' * 16}"


def a_zip(members: dict[str, bytes], *, comment: bytes = b"", is_stored: bool = False) -> bytes:
    """An archive with these members, packed or as they are."""
    whole = io.BytesIO()
    method = zipfile.ZIP_STORED if is_stored else zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(whole, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = comment
    return whole.getvalue()


def read_members(archive: bytes) -> dict[str, bytes]:
    """What is in an archive, which is whole."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        assert opened.testzip() is None
        return {name: opened.read(name) for name in opened.namelist()}


def lines(*events: dict[str, Any]) -> bytes:
    """Events as a trace has them."""
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)


def events_of(text: bytes) -> list[Any]:
    """The events of a trace, each of which is JSON."""
    return [json.loads(line) for line in text.split(b"\n") if line]


def by_hash(content: bytes, ending: str = ".html") -> str:
    """What a trace calls a resource."""
    return f"resources/{hashlib.sha1(content, usedforsecurity=False).hexdigest()}{ending}"


def hidden(
    folder: Path, content: bytes, *secrets: str, name: str = "trace.zip", **limits: Any
) -> HiddenFile:
    """The file, made clean. `limits`: what `hide_in_file` takes beside secrets."""
    workspace = Workspace(folder)
    (workspace.folder / name).write_bytes(content)
    file = RunFile(workspace.folder / name, workspace.artifact(name, "trace"))
    return hide_in_file(file, secrets, **limits)


def hidden_bytes(folder: Path, content: bytes, *secrets: str, name: str = "trace.zip") -> bytes:
    """What the file is once it is clean."""
    return hidden(folder, content, *secrets, name=name).file.path.read_bytes()


def a_lying_zip(count: int, *, is_wide_told_elsewhere: bool = False) -> bytes:
    """A zip that says it lists one member at its end, and many at the end for long ones."""
    listed = struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, *[0] * 14) * count
    wide = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(listed), 0)
    place = struct.pack("<4sIQI", b"PK\6\7", 0, 0 if is_wide_told_elsewhere else len(listed), 1)
    return listed + wide + place + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1, 1, 46, 0, 0)
