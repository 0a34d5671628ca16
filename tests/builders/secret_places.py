"""Places that a secret leaves an agent in, and what is left of it there once all is clean."""

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from contract.result import LogLine
from contract.wire import encode
from redaction.clean import FileVerdict, LeakError, Passed
from redaction.files import clean_in_child
from redaction.policy import select_usable
from redaction.result import Scrubber
from redaction.scanner.scan import scan_bytes
from sandbox.workspace import RunFile, Workspace
from tests.builders.archives import PAGE, a_zip, lines, read_members
from tests.builders.observations import a_result, an_outcome, http_evidence
from tests.builders.secret_forms import Case

HIDDEN, WITHHELD, LEFT_OUT, LEFT = "hidden", "withheld", "left out", "LEFT"


class Member(NamedTuple):
    """A place in a trace archive."""

    begins: str
    """How its name begins."""
    ends: str
    make: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes] = bytes
    called: str = ""
    """The middle of its name, which changes when that is of its content's hash."""


def _event(around: Callable[[str], dict[str, Any]]) -> Callable[[bytes], bytes]:
    return lambda text: lines(around(_readable(text)))


def _call(text: str) -> dict[str, Any]:
    return {"type": "log", "callId": "call@1", "message": f"a {text} b"}


def _request(text: str) -> dict[str, Any]:
    request = {"url": "https://shop.example/", "headers": [{"name": "x-note", "value": text}]}
    return {"type": "resource-snapshot", "snapshot": {"request": request}}


def _snapshot(text: str) -> dict[str, Any]:
    return {"type": "frame-snapshot", "snapshot": {"pageId": PAGE, "html": ["BODY", {}, text]}}


def _frame(text: str) -> dict[str, Any]:
    return {"type": "receive", "opcode": 1, "data": text}


def _har(text: bytes) -> bytes:
    body = {"mimeType": "text/plain", "text": _readable(text)}
    return json.dumps({"log": {"entries": [{"response": {"content": body}}]}}).encode()


def _report(text: bytes) -> bytes:
    return json.dumps({"suites": [{"errors": [{"message": _readable(text)}]}]}, indent=2).encode()


def _readable(text: bytes) -> str:
    """What a program makes of it that reads text."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("latin-1")


IN_RESULT: tuple[str, ...] = ("result body", "log")
IN_TRACE: dict[str, Member] = {
    "trace event": Member("0-trace", ".trace", _event(_call)),
    "network log": Member("0-trace", ".network", _event(_request)),
    "snapshot": Member("1-trace", ".trace", _event(_snapshot)),
    "resource": Member(
        "resources/", ".html", lambda text: b"<p>" + text + b"</p>", called="0b" * 20
    ),
    "attachment": Member("attachments/note", "", lambda text: b"noted: " + text + b"\n"),
    "source": Member(
        "resources/src@", ".txt", lambda text: b"const x = '" + text + b"';\n", called="5c" * 20
    ),
    "WebSocket frame": Member("resources/", ".jsonl", _event(_frame), called="f2" * 16),
    "nested zip": Member(
        "resources/inner",
        ".zip",
        lambda text: a_zip({"a.txt": b"a " + text + b" b"}),
        lambda packed: b"\n".join(read_members(packed).values()),
    ),
    "gzip": Member(
        "resources/packed", ".gz", lambda text: gzip.compress(b"<" + text + b">"), gzip.decompress
    ),
}
FILES: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "HAR": ("network.har", _har),
    "report JSON": ("report.json", _report),
    "plain file": ("a.txt", lambda text: b"a " + text + b" b\n"),
}
PLACES: tuple[str, ...] = (*IN_RESULT, *IN_TRACE, *FILES)


async def what_is_left(case: Case, folder: Path) -> dict[str, str]:
    """What becomes of the secret in each place, by the place's name."""
    (folder / "trace").mkdir()
    trace = _file(folder / "trace", "trace.zip", a_zip(_trace_of(case.text)))
    files = [trace]
    for name, (called, make) in FILES.items():
        (folder / name).mkdir()
        files.append(_file(folder / name, called, make(case.text)))
    archive, *verdicts = await clean_in_child(files, select_usable([case.secret]))
    results = {name: _in_result(name, case) for name in IN_RESULT}
    in_trace = (
        _in_trace(case, read_members(trace.path.read_bytes()))
        if _leaves(archive)
        else dict.fromkeys(IN_TRACE, WITHHELD)
    )
    in_files = {
        name: _judged(case, [file.path.read_bytes()]) if _leaves(verdict) else WITHHELD
        for name, file, verdict in zip(FILES, files[1:], verdicts, strict=True)
    }
    return results | in_trace | in_files


def _leaves(verdict: FileVerdict) -> bool:
    if isinstance(verdict, Passed):
        return True
    assert not verdict.is_our_fault, verdict.because
    return False


def _trace_of(text: bytes) -> dict[str, bytes]:
    return {
        f"{place.begins}{place.called}{place.ends}": place.make(text) for place in IN_TRACE.values()
    }


def _file(folder: Path, name: str, content: bytes) -> RunFile:
    workspace = Workspace(folder)
    (workspace.folder / name).write_bytes(content)
    return RunFile(workspace.folder / name, workspace.artifact(name, "log"))


def _in_result(place: str, case: Case) -> str:
    text = f"a {_readable(case.text)} b"
    outcome = (
        an_outcome(log=(LogLine(after_ms=1, level="INFO", message=text),))
        if place == "log"
        else an_outcome(evidence=http_evidence(body=text))
    )
    result = a_result(outcome)
    assert _is_there(case, encode(result))
    try:
        clean = Scrubber([case.secret]).clean(result)
    except LeakError:
        return WITHHELD
    return _judged(case, [clean.body])


def _in_trace(case: Case, members: dict[str, bytes]) -> dict[str, str]:
    found = {}
    for name, place in IN_TRACE.items():
        assert _is_there(case, place.unpack(place.make(case.text))), name
        contents = [
            place.unpack(content)
            for called, content in members.items()
            if called.startswith(place.begins) and called.endswith(place.ends)
        ]
        found[name] = _judged(case, contents)
    return found


def _judged(case: Case, contents: Iterable[bytes]) -> str:
    contents = list(contents)
    if not contents:
        return LEFT_OUT
    is_left = any(
        _is_there(case, content) or scan_bytes(content, select_usable([case.secret]))
        for content in contents
    )
    return LEFT if is_left else HIDDEN


def _is_there(case: Case, content: bytes) -> bool:
    """As `grep` sees it, in bytes and as JSON has them."""
    readable = _readable(case.text)
    escaped = (json.dumps(readable, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False))
    return any(one in content for one in (case.text, *(text.encode() for text in escaped)))
