"""Anybody can hold the agent's promise against a file of their own."""

import base64
import zipfile
from pathlib import Path

import pytest

from picket.__main__ import main

SECRET = "hunter2/hunter2&more"
Printed = pytest.CaptureFixture[str]


@pytest.fixture
def secret_file(tmp_path: Path) -> str:
    path = tmp_path / "secrets"
    path.write_text(f"{SECRET}\n\nanother-value\n")
    return str(path)


def a_file(folder: Path, content: bytes, name: str = "run.log") -> str:
    (folder / name).write_bytes(content)
    return str(folder / name)


def test_a_check_says_where_a_secret_is_and_never_which(
    tmp_path: Path, secret_file: str, capsys: Printed
) -> None:
    path = tmp_path / "trace.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("test.trace", "nothing")
        archive.writestr("resources/0a.json", base64.b64encode(f"u:{SECRET}".encode()))
    assert main(["scrub", str(path), "--secret-file", secret_file, "--check"]) == 1
    printed = capsys.readouterr()
    assert printed.out == "secret found in resource: member 2 of 2, after byte 0\n"
    assert SECRET not in printed.err


def test_a_clean_file_passes(tmp_path: Path, secret_file: str, capsys: Printed) -> None:
    file = a_file(tmp_path, b"all is well")
    assert main(["scrub", file, "--secret-file", secret_file, "--check"]) == 0
    assert capsys.readouterr().out == "no secret found in 11 bytes\n"


def test_a_scrubbed_file_is_written_beside_and_the_other_stays(
    tmp_path: Path, secret_file: str, capsys: Printed
) -> None:
    file, out = a_file(tmp_path, f"token {SECRET}".encode()), tmp_path / "clean.log"
    assert main(["scrub", file, "--secret-file", secret_file, "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"1 place redacted; the scanner found no secret in {out}\n"
    assert SECRET.encode() not in out.read_bytes()
    assert Path(file).read_text() == f"token {SECRET}"
    assert main(["scrub", str(out), "--secret-file", secret_file, "--check"]) == 0


def test_a_file_is_not_scrubbed_onto_itself(
    tmp_path: Path, secret_file: str, capsys: Printed
) -> None:
    file = a_file(tmp_path, f"token {SECRET}".encode())
    assert main(["scrub", file, "--secret-file", secret_file, "--out", file]) == 2
    assert f"--out is {file}, which is FILE itself; use another file" in capsys.readouterr().err
    assert Path(file).read_text() == f"token {SECRET}"


def test_beginnings_count_where_the_secret_was_typed_letter_by_letter(
    tmp_path: Path, secret_file: str, capsys: Printed
) -> None:
    file, out = a_file(tmp_path, b"typing hunter2%2Fh"), tmp_path / "clean.log"
    words = ["scrub", file, "--secret-file", secret_file]
    assert main([*words, "--check"]) == 0
    assert main([*words, "--check", "--typed"]) == 1
    assert main([*words, "--out", str(out), "--typed"]) == 0
    assert out.read_text() == "typing *********"
    assert "secret found in file: after byte 0" in capsys.readouterr().out


def test_what_stays_in_it_is_not_written(tmp_path: Path, secret_file: str, capsys: Printed) -> None:
    file, out = a_file(tmp_path, str([*SECRET.encode()])[1:-1].encode()), tmp_path / "clean.log"
    assert main(["scrub", file, "--secret-file", secret_file, "--out", str(out)]) == 1
    assert capsys.readouterr().out == "not written: secret found in file (after byte 0)\n"
    assert not out.exists()


def test_a_key_is_one_secret(tmp_path: Path, capsys: Printed) -> None:
    key = f"-----BEGIN PRIVATE KEY-----\n{'a1b2' * 16}\n-----END PRIVATE KEY-----\n"
    secrets = a_file(tmp_path, key.encode(), "key.pem")
    file = a_file(tmp_path, f"it is {'a1b2' * 16}".encode())
    assert main(["scrub", file, "--secret-file", secrets, "--check"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["log"], "use either --check, or --out with the path of the redacted file"),
        (["log", "--check", "--out", "x"], "use either --check, or --out"),
        (["gone", "--check"], "FILE is {folder}/gone; use a readable file"),
        (["log", "--check", "--secrets", "gone"], "--secret-file is {folder}/gone; use a readable"),
        (["log", "--check", "--secrets", "short"], "--secret-file has no usable secret"),
        (["locked.zip", "--check"], "locked.zip cannot be searched: member 1 of 1 is encrypted"),
    ],
)
def test_wrong_input_is_one_sentence(
    tmp_path: Path, secret_file: str, words: list[str], says: str, capsys: Printed
) -> None:
    a_file(tmp_path, b"x", "log")
    a_file(tmp_path, b"a1\n", "short")
    _locked(tmp_path / "locked.zip")
    file, *more = words
    named = secret_file
    if "--secrets" in more:
        named = str(tmp_path / more.pop())
        more.remove("--secrets")
    assert main(["scrub", str(tmp_path / file), "--secret-file", named, *more]) == 2
    error = capsys.readouterr().err
    assert says.format(folder=tmp_path) in error
    assert "a1" not in error.replace(str(tmp_path), "")


def _locked(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", b"x")
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
