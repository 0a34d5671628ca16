"""Lines that a change made no JSON become empty objects; all others stay as they are."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from redaction.archives.json_lines import with_valid_lines
from redaction.archives.limits import UnsearchableFileError
from tests.builders.archives import a_zip, hidden, lines, read_members

LINES = b'{"a":"b"}\n{"c":"d"}\n'


@pytest.mark.parametrize(
    ("after", "left"),
    [
        (LINES, LINES),
        (b'{"a":"*"}\n{"c":"d"}\n', b'{"a":"*"}\n{"c":"d"}\n'),
        (b'{"a":"*}\n{"c":"d"}\n', b'{}\n{"c":"d"}\n'),
        (b'{"a":"*d"}\n', b'{"a":"*d"}\n'),
        (b'{"a":**"d"}\n', b"{}\n"),
        (b"**\n", b"{}\n"),
        (b'{"a":"\\ud83d"}\n{"c":"d"}\n', b'{"a":"\\ud83d"}\n{"c":"d"}\n'),
    ],
)
def test_only_lines_that_are_no_json_any_more_become_empty(after: bytes, left: bytes) -> None:
    assert with_valid_lines(LINES, after) == left


def test_lines_stay_that_were_no_json_before() -> None:
    assert with_valid_lines(b"secret=a\n{}\n", b"secret=*\n{}\n") == b"secret=*\n{}\n"


@pytest.mark.parametrize("secret", ['"},{"', '"],["', '":{"x', 'pw"}', '","v'])
def test_a_trace_stays_json_around_secrets_made_of_its_signs(tmp_path: Path, secret: str) -> None:
    events = [
        {"type": "log", "message": "first"},
        {"list": [{"name": "b", "value": "c"}, {"n": {"x": ["a"]}}, ["a"], ["b"]], "pw": "my pw"},
        {"type": "log", "message": "last"},
    ]
    told = b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in events)
    left = hidden(tmp_path, a_zip({"0-trace.trace": told}), secret)
    (content,) = read_members(left.file.path.read_bytes()).values()
    assert secret.encode() not in content
    assert [json.loads(line) for line in content.splitlines()] == [events[0], {}, events[2]]


def test_a_typed_secret_that_ends_a_text_leaves_json(tmp_path: Path) -> None:
    secret = '+-%>a-!~:}"}+'
    archive = a_zip({"0-trace.trace": lines({"a": {"b": secret[:10]}}, {"c": "d"})})
    left = hidden(tmp_path, archive, secret, typed=(secret,))
    (content,) = read_members(left.file.path.read_bytes()).values()
    assert [json.loads(line) for line in content.splitlines()] == [{}, {"c": "d"}]


HAR = {"log": {"entries": [{"a": "b", "c": "d"}, {"e": 1.25}], "list": [["a"], ["b"]]}}
BREAKING = ('","c":"', '"],["', '"},{"e', "1.25}", '{"entries')


def whole(size: int) -> bytes:
    """Such a file; a long one is cut anywhere while it is cleaned."""
    return json.dumps({**HAR, "filler": "x" * size}, separators=(",", ":")).encode()


@pytest.mark.parametrize("size", [0, 9 << 20])
@pytest.mark.parametrize("secret", BREAKING)
def test_a_file_of_json_stays_json_or_does_not_leave(
    tmp_path: Path, secret: str, size: int
) -> None:
    assert secret.encode() in whole(size)
    with suppress(UnsearchableFileError):
        left = hidden(tmp_path, whole(size), secret, name="network.har")
        json.loads(left.file.path.read_bytes())


def test_why_a_file_of_json_does_not_leave_is_said(tmp_path: Path) -> None:
    with pytest.raises(UnsearchableFileError, match="would make it invalid JSON"):
        hidden(tmp_path, whole(0), '"],["', name="network.har")


@pytest.mark.parametrize("size", [0, 2 << 20])
@pytest.mark.parametrize("name", ["report.json", "attachment"])
@pytest.mark.parametrize("secret", BREAKING)
def test_a_file_of_json_in_an_archive_stays_json_or_is_left_out(
    tmp_path: Path, secret: str, name: str, size: int
) -> None:
    archive = a_zip({name: whole(size), "b.txt": b"text"})
    left = hidden(tmp_path, archive, secret)
    members = read_members(left.file.path.read_bytes())
    assert members.pop("b.txt") == b"text"
    assert all(json.loads(content) for content in members.values())
    assert bool(left.left_out) is not bool(members)


def test_a_line_of_a_trace_that_is_too_long_to_be_held_stays_json_or_is_left_out(
    tmp_path: Path,
) -> None:
    archive = a_zip({"0-trace.trace": whole(17 << 20) + b"\n" + lines({"type": "log"})})
    left = hidden(tmp_path, archive, '"],["')
    members = read_members(left.file.path.read_bytes())
    assert (list(members), left.left_out) == (
        [],
        ("1 x file: removing a secret made of JSON syntax would make it invalid JSON",),
    )


def test_json_around_a_usual_secret_leaves(tmp_path: Path) -> None:
    left = hidden(tmp_path, whole(0).replace(b"filler", b"hunter22"), "hunter22", name="a.har")
    assert b"hunter22" not in left.file.path.read_bytes()
    assert json.loads(left.file.path.read_bytes())["log"] == HAR["log"]
