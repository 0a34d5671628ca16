"""Bundles: packed alike on every machine, unpacked into their folder or not at all."""

import errno
import io
import os
import re
import tarfile
from pathlib import Path

import pytest

from runners.scripting.suites.bundle_archive import BadBundleError, UnpackLimits, pack, unpack


def archive_of(folder: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    path = folder / "bundle.tar.gz"
    with tarfile.open(path, "w:gz") as opened:
        for member, content in members:
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return path


def a_file(name: str, content: bytes = b"x", mode: int = 0o644) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.mode = mode
    return member, content


def a_link(name: str, to: str, kind: bytes = tarfile.SYMTYPE) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member, b""


def a_file_with(**pax: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo("a")
    member.pax_headers = pax
    return member, b""


def a_device(name: str) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type = tarfile.CHRTYPE
    return member, b""


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "unpacked"
    folder.mkdir()
    return folder


def test_a_packed_folder_comes_out_as_it_went_in(tmp_path: Path, into: Path) -> None:
    project = tmp_path / "project"
    (project / "tests" / "deep").mkdir(parents=True)
    (project / "tests" / "deep" / "a.spec.ts").write_text("test")
    (project / "run.sh").write_text("#!/bin/sh\n")
    (project / "run.sh").chmod(0o755)
    (project / "latest").symlink_to("tests/deep")
    pack(project, tmp_path / "bundle.tar.gz")
    unpack(tmp_path / "bundle.tar.gz", into)
    assert (into / "tests/deep/a.spec.ts").read_text() == "test"
    assert os.access(into / "run.sh", os.X_OK)
    assert (into / "latest").readlink() == Path("tests/deep")


def test_equal_folders_make_equal_bundles(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "b.ts").write_text("b")
        (tmp_path / name / "a.ts").write_text("a")
        os.utime(tmp_path / name / "a.ts", (1, len(name)))
        pack(tmp_path / name, tmp_path / f"{name}.tar.gz")
    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "other.tar.gz").read_bytes()


def test_installed_packages_are_not_packed(tmp_path: Path, into: Path) -> None:
    project = tmp_path / "project"
    (project / "node_modules" / "x").mkdir(parents=True)
    (project / "node_modules" / "x" / "index.js").write_text("")
    (project / "package.json").write_text("{}")
    pack(project, project / "bundle.tar.gz")
    unpack(project / "bundle.tar.gz", into)
    assert [path.name for path in into.iterdir()] == ["package.json"]


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (a_file("../evil"), "'../evil', which leaves its folder"),
        (a_file("/etc/evil"), "'/etc/evil', which leaves its folder"),
        (a_file("a/../../evil"), "which leaves its folder"),
        (a_link("out", "/etc"), "link out points to '/etc', outside"),
        (a_link("a/out", "../../etc"), "link a/out points to '../../etc', outside"),
        (a_link("out", "/etc/passwd", tarfile.LNKTYPE), "points to '/etc/passwd', outside"),
        (a_link("out", "../x", tarfile.LNKTYPE), "points to '../x', outside"),
        (a_device("null"), "null, which is no file, folder or link"),
    ],
)
def test_what_leaves_the_folder_is_refused_by_name(
    tmp_path: Path, into: Path, member: tuple[tarfile.TarInfo, bytes], said: str
) -> None:
    with pytest.raises(BadBundleError, match=said.replace("(", r"\(")):
        unpack(archive_of(tmp_path, member), into)


def test_a_file_behind_a_link_is_refused(tmp_path: Path, into: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    bundle = archive_of(tmp_path, a_link("door", "../outside"), a_file("door/evil"))
    with pytest.raises(BadBundleError):
        unpack(bundle, into)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("late", [False, True])
def test_a_link_that_leaves_over_another_link_is_refused(
    tmp_path: Path, into: Path, *, late: bool
) -> None:
    links = [a_link("sub/up", ".."), a_link("out", "sub/up/../secret")]
    with pytest.raises(BadBundleError, match="link out points to"):
        unpack(archive_of(tmp_path, *(reversed(links) if late else links)), into)


def test_a_second_name_behind_a_link_that_leaves_is_refused(tmp_path: Path, into: Path) -> None:
    (tmp_path / "secret").write_text("s")
    bundle = archive_of(
        tmp_path,
        a_link("stolen", "sub/up/../secret", tarfile.LNKTYPE),
        a_link("sub/up", ".."),
    )
    with pytest.raises(BadBundleError):
        unpack(bundle, into)


def test_a_second_name_of_a_file_becomes_a_file(tmp_path: Path, into: Path) -> None:
    unpack(
        archive_of(tmp_path, a_file("a", b"same"), a_link("b", "a", tarfile.LNKTYPE)),
        into,
    )
    assert (into / "b").read_bytes() == b"same"


def test_a_bundle_of_too_many_files_is_refused(tmp_path: Path, into: Path) -> None:
    with pytest.raises(BadBundleError, match="more than 2 files"):
        unpack(
            archive_of(tmp_path, *(a_file(f"f{n}") for n in range(3))),
            into,
            UnpackLimits(members=2),
        )


def test_a_bundle_that_grows_too_large_is_refused(tmp_path: Path, into: Path) -> None:
    bundle = archive_of(tmp_path, a_file("zeros", bytes(10_001)))
    with pytest.raises(BadBundleError, match="more than 10000 bytes"):
        unpack(bundle, into, UnpackLimits(size_bytes=10_000))
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b\x08\x00broken"])
def test_what_is_no_archive_is_refused_with_a_sentence(
    tmp_path: Path, into: Path, content: bytes
) -> None:
    path = tmp_path / "bundle.tar.gz"
    path.write_bytes(content)
    with pytest.raises(BadBundleError, match=r"no readable tar\.gz"):
        unpack(path, into)


def test_a_bundle_that_was_cut_is_refused(tmp_path: Path, into: Path) -> None:
    whole = archive_of(tmp_path, a_file("a", os.urandom(50_000))).read_bytes()
    (tmp_path / "bundle.tar.gz").write_bytes(whole[:30_000])
    with pytest.raises(BadBundleError):
        unpack(tmp_path / "bundle.tar.gz", into)


def test_nothing_is_made_behind_a_link_before_it_is_refused(tmp_path: Path, into: Path) -> None:
    (tmp_path / "victim").mkdir()
    archive = archive_of(
        tmp_path,
        a_file("p/q/r.txt"),
        a_link("p/q/s", "../.."),
        a_link("p/q/s/l", "../../victim"),
        a_link("p/q/s/l/new/evil", "../../../../../package.json"),
    )
    with pytest.raises(BadBundleError, match="behind a link"):
        unpack(archive, into)
    assert list((tmp_path / "victim").iterdir()) == []


def test_second_names_count_towards_what_a_bundle_may_unpack_to(tmp_path: Path, into: Path) -> None:
    names = [a_link(f"{number}.txt", "a.txt", tarfile.LNKTYPE) for number in range(10)]
    archive = archive_of(tmp_path, a_file("a.txt", b"x" * 1000), *names)
    with pytest.raises(BadBundleError, match="hard links"):
        unpack(archive, into, UnpackLimits(size_bytes=5000))


def test_pipes_and_what_runs_leave_are_not_packed(tmp_path: Path, into: Path) -> None:
    project = tmp_path / "project"
    (project / "test-results").mkdir(parents=True)
    (project / "test-results" / "trace.zip").write_text("")
    (project / "package.json").write_text("{}")
    os.mkfifo(project / "pipe")
    pack(project, tmp_path / "bundle.tar.gz")
    unpack(tmp_path / "bundle.tar.gz", into)
    assert [path.name for path in into.iterdir()] == ["package.json"]


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([a_file("x" * 300)], f"holds {'x' * 200!r}…: File name too long"),
        ([a_file("a/" + "x" * 300 + "/b")], "File name too long"),
        ([a_link("x" * 300, "a")], "File name too long"),
        ([a_file("a"), a_link("x" * 300, "a", tarfile.LNKTYPE)], "File name too long"),
        ([a_link("b", "x" * 300, tarfile.LNKTYPE)], "File name too long"),
        ([a_file("a/" * 120 + "b")], "more than 100 nested folders"),
        ([a_file("x/" * 2100)], "a name that is too long"),
        ([a_file("a"), a_file("a/b")], "holds a twice"),
        ([a_file("a/b"), a_file("a")], "holds a twice"),
        ([a_file("a"), a_link("a", "b")], "holds a twice"),
        ([a_file("a\udcff"), a_link("a\udcff", "b")], r"holds 'a\udcff' twice"),
        ([a_file_with(linkpath="b\0c")], "leaves its folder"),
        ([a_file_with(path="b\0c")], "leaves its folder"),
    ],
)
def test_names_that_no_disk_takes_are_the_bundles_fault(
    tmp_path: Path, into: Path, members: list[tuple[tarfile.TarInfo, bytes]], said: str
) -> None:
    with pytest.raises(BadBundleError, match=re.escape(said)) as refused:
        unpack(archive_of(tmp_path, *members), into)
    assert str(refused.value).encode()


def test_a_disk_that_is_full_is_our_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space left"):
        unpack(archive_of(tmp_path, a_file("a")), tmp_path)
