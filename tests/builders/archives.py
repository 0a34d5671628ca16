"""Builders of archives as runs bring them back, and what is in them afterwards."""

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from runners.kit.file_secrets import HiddenFile, hide_in_file
from runners.kit.workspace import RunFile, Workspace

PICTURE = b"\xff\xd8\xffpixels"
PAGE = f"page@{'ab' * 16}"
OTHER_PAGE = f"page@{'cd' * 16}"


def a_zip(members: dict[str, bytes], *, comment: bytes = b"") -> bytes:
    """An archive with these members, packed."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.comment = comment
    return whole.getvalue()


def members_of(archive: bytes) -> dict[str, bytes]:
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
