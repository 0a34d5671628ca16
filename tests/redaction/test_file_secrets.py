"""Files of runs: no secret leaves in one, and none that could hold one unseen."""

import base64
import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from contract.agent_api import MAX_ARTIFACT_BYTES
from redaction.archives.limits import UnsearchableFileError
from redaction.files_child import HiddenFile, hide_in_file
from redaction.policy import HIDDEN, SENSITIVE_HEADERS
from redaction.result import Scrubber
from sandbox.workspace import RunFile, Workspace
from tests.builders.archives import a_zip, lines, read_members
from tests.builders.specs import a_job, a_secret

SECRET = "s3cr3t/t0ken+value"
OWN = "the-agents-own-secret"
PICTURE = b"\x89PNG\r\n\x1a\n"


def a_file(folder: Path, content: bytes, *, kind: Any = "log", name: str = "a.txt") -> RunFile:
    workspace = Workspace(folder)
    (workspace.folder / name).write_bytes(content)
    return RunFile(workspace.folder / name, workspace.artifact(name, kind))


def cleaned(file: RunFile, *, secret: str | None = SECRET, own: tuple[str, ...] = ()) -> HiddenFile:
    variables = () if secret is None else (a_secret("TOKEN", secret),)
    secrets = Scrubber(own).all_secrets(a_job(variables=variables), ())
    return hide_in_file(file, secrets)


@pytest.mark.parametrize(
    "form",
    [SECRET.encode(), b"s3cr3t%2Ft0ken%2Bvalue", base64.b64encode(b"user:" + SECRET.encode())],
)
def test_no_form_of_a_secret_stays_in_a_file(tmp_path: Path, form: bytes) -> None:
    file = a_file(tmp_path, b"first, before " + form + b" after " + form + b"\n")
    found = cleaned(file)
    left = file.path.read_bytes()
    assert form not in left
    assert (left.startswith(b"first, before "), left.endswith(b"\n")) == (True, True)
    assert found.replacements == 2


def test_a_file_is_described_as_it_is_when_it_is_clean(tmp_path: Path) -> None:
    file = a_file(tmp_path, f"token {SECRET}, {OWN}".encode())
    artifact = cleaned(file, own=(OWN,)).file.artifact
    left = file.path.read_bytes()
    assert artifact.size_bytes == len(left)
    assert artifact.sha256 == hashlib.sha256(left).hexdigest()
    assert (artifact.name, artifact.kind, artifact.content_type) == ("a.txt", "log", "text/plain")


@pytest.mark.parametrize(
    "content",
    [
        SECRET.encode("utf-16"),
        SECRET.encode("utf-16-le"),
        SECRET.encode("utf-32"),
        b"a line of text\n" + gzip.compress(SECRET.encode()),
        b"7z\xbc\xaf\x27\x1c" + SECRET.encode(),
    ],
    ids=["utf-16", "utf-16-le", "utf-32", "late", "7z"],
)
def test_what_is_no_text_leaves_only_when_there_are_no_secrets(
    tmp_path: Path, content: bytes
) -> None:
    file = a_file(tmp_path, content)
    with pytest.raises(UnsearchableFileError, match="searched"):
        cleaned(file)
    assert cleaned(file, secret=None).file.artifact == file.artifact


def test_a_picture_that_is_not_called_one_does_not_leave(tmp_path: Path) -> None:
    with pytest.raises(UnsearchableFileError, match="picture"):
        cleaned(a_file(tmp_path, PICTURE))


def test_what_is_packed_is_unpacked_cleaned_and_packed_again(tmp_path: Path) -> None:
    file = a_file(tmp_path, gzip.compress(f"token {SECRET} end".encode()), kind="trace")
    assert cleaned(file).replacements == 1
    assert gzip.decompress(file.path.read_bytes()) == f"token {HIDDEN} end".encode()


def test_text_that_is_called_a_picture_is_searched(tmp_path: Path) -> None:
    file = a_file(tmp_path, SECRET.encode(), kind="screenshot", name="a.png")
    assert cleaned(file).replacements == 1


def test_pictures_stay_as_they_are(tmp_path: Path) -> None:
    picture = a_file(tmp_path, PICTURE + b"pixels", kind="screenshot", name="a.png")
    assert cleaned(picture).replacements == 0
    assert picture.path.read_bytes() == PICTURE + b"pixels"


def test_a_picture_with_a_secret_beside_its_pixels_does_not_leave(tmp_path: Path) -> None:
    picture = a_file(tmp_path, PICTURE + SECRET.encode(), kind="screenshot", name="a.png")
    with pytest.raises(UnsearchableFileError, match="in its metadata"):
        cleaned(picture)


def test_a_file_that_is_too_long_is_not_searched(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"")
    os.truncate(file.path, MAX_ARTIFACT_BYTES + 1)
    with pytest.raises(UnsearchableFileError, match="more than"):
        cleaned(file)


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of somebody else")
    file.path.unlink()
    file.path.symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic"):
        cleaned(file)
    with pytest.raises(OSError, match="symbolic"):
        cleaned(file, secret=None)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    file = a_file(tmp_path, b"")
    file.path.unlink()
    os.mkfifo(file.path)
    with pytest.raises(OSError, match="is not a regular file"):
        cleaned(file)


def test_another_name_of_the_same_file_keeps_what_it_has(tmp_path: Path) -> None:
    file = a_file(tmp_path, SECRET.encode())
    other = tmp_path / "other"
    other.hardlink_to(file.path)
    cleaned(file)
    assert SECRET.encode() not in file.path.read_bytes()
    assert other.read_text() == SECRET


def test_a_workspace_is_made_when_it_is_asked_for_and_goes_with_all_it_holds(
    tmp_path: Path,
) -> None:
    workspace = Workspace(tmp_path)
    assert (workspace.has_folder, list(tmp_path.iterdir())) == (False, [])
    (workspace.folder / "sub").mkdir()
    assert workspace.folder.stat().st_mode & 0o077 == 0
    workspace.remove()
    assert (workspace.has_folder, list(tmp_path.iterdir())) == (False, [])


@pytest.mark.parametrize("header", ["Authorization", "set-cookie", "X-Session"])
@pytest.mark.parametrize("name", ["of.har", "trace.zip"])
def test_headers_are_hidden_where_nothing_else_is_secret(
    tmp_path: Path, name: str, header: str
) -> None:
    told = {"headers": [{"name": header, "value": "id=of-nobody"}], "body": "of-nobody"}
    content = lines(told) if name == "of.har" else a_zip({"0-trace.network": lines(told)})
    file = a_file(tmp_path, content, name=name)
    names = SENSITIVE_HEADERS | {"x-session"}
    assert hide_in_file(file, (), header_names=names).replacements
    left = file.path.read_bytes()
    assert b"of-nobody" not in (left if name == "of.har" else read_members(left)["0-trace.network"])


@pytest.mark.parametrize("content", [b"%PDF-1.7", b"\xff\xfe\0", PICTURE, b"authorization: plain"])
def test_where_nothing_is_secret_other_files_stay_as_they_are(
    tmp_path: Path, content: bytes
) -> None:
    file = a_file(tmp_path, content)
    assert hide_in_file(file, ()).replacements == 0
    assert file.path.read_bytes() == content
