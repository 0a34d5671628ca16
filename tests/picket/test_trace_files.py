"""`picket trace` finds traces, and says in a sentence why it finds none."""

import asyncio
import json
import zipfile
from pathlib import Path

import pytest

from picket.errors import CommandError, ExitCode
from picket.trace import TraceFile, TraceSource, find_traces, read_trace
from picket.up.addresses import Addresses
from picket.up.data_dir import open_data_dir
from tests.servers.public_api import serve_public_api
from tests.servers.tcp import refusing_port

RESULT = "01a20a40-4108-7baf-8d51-a56385a6354d"


def a_trace(path: Path, **head: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("test.trace", json.dumps({"type": "context-options", **head}) + "\n{}\n")
    return path


async def found(wanted: object, folder: Path, **environ: str) -> tuple[TraceFile, ...]:
    source = TraceSource(data_dir=folder / "data", environ=environ)
    async with find_traces(str(wanted), source) as traces:
        return traces


def test_a_trace_says_which_playwright_wrote_it(tmp_path: Path) -> None:
    trace = a_trace(tmp_path / "trace.zip", playwrightVersion="1.65.1")
    assert read_trace(trace).playwright == "1.65.1"
    assert read_trace(a_trace(tmp_path / "old.zip")).playwright is None


def test_what_is_no_trace_is_said_with_its_name(tmp_path: Path) -> None:
    text, empty, torn = tmp_path / "a.txt", tmp_path / "empty.zip", tmp_path / "torn.zip"
    text.write_text("text")
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("index.html", "")
    with zipfile.ZipFile(torn, "w") as archive:
        archive.writestr("test.trace", "{torn")
    nested, damaged = tmp_path / "nested.zip", tmp_path / "damaged.zip"
    with zipfile.ZipFile(nested, "w") as archive:
        archive.writestr("test.trace", "[" * 100_000)
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("test.trace", "a" * 100_000)
    content = damaged.read_bytes()
    damaged.write_bytes(content[:60] + b"\xff" * 20 + content[80:])
    for path in (text, empty, torn, nested, damaged):
        with pytest.raises(CommandError, match="is not a Playwright trace") as refused:
            read_trace(path)
        assert str(path) in refused.value.message


async def test_a_folder_means_every_trace_below_it(tmp_path: Path) -> None:
    folder = tmp_path / "test-results"
    traces = [a_trace(folder / name / "trace.zip") for name in ("one", "two")]
    (folder / "one/notes.zip").write_text("another archive")
    assert [one.path for one in await found(folder, tmp_path)] == traces
    (tmp_path / "empty").mkdir()
    with pytest.raises(CommandError, match="there is no Playwright trace in"):
        await found(tmp_path / "empty", tmp_path)


async def test_the_trace_that_was_fetched_for_a_result_needs_no_service(tmp_path: Path) -> None:
    kept = a_trace(tmp_path / f"data/traces/{RESULT}.zip")
    assert [one.path for one in await found(RESULT, tmp_path)] == [kept]


@pytest.mark.parametrize("wanted", ["../../etc/passwd", "trace.zip", "a b", ""])
async def test_what_can_be_no_result_is_asked_nowhere(wanted: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="is not a file, a folder or the id of a result"):
        await found(tmp_path / "gone" / wanted, tmp_path)
    with pytest.raises(CommandError, match=r"is not a Playwright trace|or the id of a result"):
        await found(wanted, tmp_path / "gone")


async def test_who_has_no_service_is_told_which_settings_name_one(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="or set SERVICE_URL and API_KEY"):
        await found(RESULT, tmp_path)
    with refusing_port() as port, open_data_dir(tmp_path / "data", fresh=False) as folder:
        folder.make_keys()
        folder.keep_addresses(Addresses(service_url=f"http://127.0.0.1:{port}"))
        with pytest.raises(CommandError, match=r"does not answer.*start `picket up`"):
            await found(RESULT, tmp_path)


async def test_what_listens_at_the_address_of_an_ended_picket_up_gets_no_key(
    tmp_path: Path,
) -> None:
    asked: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with open_data_dir(tmp_path / "data", fresh=False) as folder:
        folder.make_keys()
        folder.keep_addresses(Addresses(service_url=f"http://127.0.0.1:{port}"))
    with pytest.raises(CommandError, match="no `picket up` is running"):
        await found(RESULT, tmp_path)
    server.close()
    await server.wait_closed()
    assert asked == []


@pytest.mark.parametrize(
    ("environ", "sentence"),
    [
        ({}, "set API_KEY, or API_KEY_FILE"),
        ({"API_KEY": "pl_secret"}, "API_KEY is an agent's key"),
        ({"API_KEY_FILE": "/nonexistent"}, "API_KEY_FILE is /nonexistent: No such file"),
    ],
)
async def test_a_key_that_reads_no_results_is_said_and_never_shown(
    environ: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        await found(RESULT, tmp_path, SERVICE_URL="http://127.0.0.1:1", **environ)
    assert "secret" not in refused.value.message


async def test_a_result_that_the_service_does_not_have_is_said(tmp_path: Path) -> None:
    async with serve_public_api(tmp_path / "service") as served:
        key = served.alice.secrets.api_key
        with pytest.raises(CommandError, match=f"has a result {RESULT}"):
            await found(RESULT, tmp_path, SERVICE_URL=served.url, API_KEY=key)
        with pytest.raises(CommandError, match="refuses the key") as refused:
            await found(RESULT, tmp_path, SERVICE_URL=served.url, API_KEY="cu_" + "w" * 40)
    assert refused.value.code is ExitCode.KEY_REFUSED
