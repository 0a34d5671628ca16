"""`picket run` with checks that have scripts."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from picket.__main__ import main
from picket.errors import ExitCode
from picket.report import trace_command
from tests.builders.archives import read_members

CHECK = """
type: API
name: Cart
request: {url: "http://127.0.0.1:9/"}
setupScript: |
  process.env.SERVICE_SECRET_KEY = 'fresh-t0ken';
  console.log(process.env.CHECK_NAME, process.env.SERVICE_SECRET_KEY);
  throw new Error('closed');
"""


@pytest.fixture
def check(tmp_path: Path) -> str:
    path = tmp_path / "check.yaml"
    path.write_text(CHECK)
    return str(path)


def test_an_api_check_with_a_script_runs(check: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", check, "--json"]) == ExitCode.FAILED
    outcome = json.loads(capsys.readouterr().out)["outcome"]
    assert outcome["failure"]["message"] == (
        "The setup script failed: Error: closed (setup.js:3:7)"
    )
    assert outcome["log"][0]["message"] == "Cart *********"


def test_a_pipe_gets_the_report(check: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", check]) == ExitCode.FAILED
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("✘ FAILED  Cart (API)")
    assert said[1].strip().startswith("The setup script failed: Error: closed (setup.js:3:7)")


TELLS_TOO_MUCH = """
const fs = require('node:fs');
for (let at = 0; at < 201; at++) {
  fs.writeSync(Number(process.env.PICKET_FACTS_FD), '{}\\n'.repeat(100));
}
process.env.SERVICE_SECRET_KEY = 'fr3sh-key';
console.log('unheard', process.env.SERVICE_SECRET_KEY);
throw new Error('unheard');
"""


def test_nothing_but_the_verdict_is_shown_of_a_run_whose_secrets_were_not_all_heard(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = tmp_path / "check.yaml"
    check.write_text(json.dumps({"type": "BROWSER", "script": TELLS_TOO_MUCH}))
    assert main(["run", str(check), "--json"]) == ExitCode.FAILED
    said = capsys.readouterr().out
    assert "unheard" not in said
    assert "fr3sh" not in said
    outcome = json.loads(said)["outcome"]
    assert outcome["status"] == "FAILED"
    assert "could not be searched for all" in str(outcome["log"])


MADE_OF_ITS_SECRET = """
type: BROWSER
script: |
  process.env.SERVICE_SECRET_KEY = 'fr3sh-key';
  const codes = [...process.env.SERVICE_SECRET_KEY].map((one) => one.charCodeAt(0));
  console.log(codes.join(','));
"""


def test_of_a_run_that_told_what_it_made_of_a_secret_the_verdict_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check = tmp_path / "check.yaml"
    check.write_text(MADE_OF_ITS_SECRET)
    assert main(["run", str(check), "--json"]) == ExitCode.OK
    outcome = json.loads(capsys.readouterr().out)["outcome"]
    assert outcome["status"] == "PASSED"
    (line,) = outcome["log"]
    assert line["message"].startswith("The details of this result are withheld: secret found in")


SHOWS = "await (await require('playwright').chromium.launch()).newPage(); throw new Error()"


def test_the_command_that_opens_a_trace_is_not_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "check.yaml").write_text(json.dumps({"type": "BROWSER", "script": SHOWS}))
    kept = tmp_path / "with a name of many letters" / "kept"
    assert main(["run", str(tmp_path / "check.yaml"), "--artifacts", str(kept)]) == ExitCode.FAILED
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == trace_command(kept / "trace-1.zip")


READS = """
type: API
name: Cart
request: {url: "http://127.0.0.1:9/"}
setupScript: |
  console.log(process.env.SERVICE_SECRET_DB.length, process.env.SERVICE_SECRET_DB);
  throw new Error(process.env.SERVICE_SECRET_DB);
"""


def test_scripts_read_the_secrets_of_the_environment_and_nothing_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("fresh-t0ken\n")
    (tmp_path / "check.yaml").write_text(READS)
    monkeypatch.setenv("SERVICE_SECRET_DB_FILE", str(tmp_path / "secret"))
    assert main(["run", str(tmp_path / "check.yaml"), "--json"]) == ExitCode.FAILED
    said = capsys.readouterr()
    assert json.loads(said.out)["outcome"]["log"][0]["message"] == "11 *********"
    assert "fresh-t0ken" not in said.out + said.err


SENDS_HEADERS = """
import { test, expect } from '@playwright/test';
test('sends headers', async ({ page, request }) => {
  const headers = { authorization: 'Bearer of-nobody', 'X-Session': 'session-of-nobody' };
  await page.setExtraHTTPHeaders(headers);
  await page.goto('SITE');
  console.log(JSON.stringify(headers), headers);
  await request.get('http://127.0.0.1:9/', { headers });
});
"""


class _Echo(BaseHTTPRequestHandler):
    """Answers with the headers of the request."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("set-cookie", "id=cookie-of-nobody")
        self.end_headers()
        self.wfile.write(str(self.headers).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Echo) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_sensitive_headers_stay_out_of_result_and_trace_where_nothing_else_is_secret(
    echo: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    check = {"type": "BROWSER", "name": "Headers", "script": SENDS_HEADERS.replace("SITE", echo)}
    (tmp_path / "check.yaml").write_text(json.dumps(check))
    monkeypatch.setenv("AGENT_SENSITIVE_HEADERS", "x-session")
    line = ["run", str(tmp_path / "check.yaml"), "--json", "--artifacts", str(tmp_path / "kept")]
    assert main(line) == ExitCode.FAILED
    said = capsys.readouterr().out
    assert "authorization: *********" in said
    assert "of-nobody" not in said
    members = read_members((tmp_path / "kept" / "trace.zip").read_bytes())
    told = b"".join(members.values()).lower()
    assert all(name in told for name in (b"authorization", b"x-session", b"set-cookie"))
    assert [name for name, content in members.items() if b"of-nobody" in content] == []


def test_without_a_runtime_what_is_missing_is_said_in_one_sentence(
    check: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PICKET_RUNTIMES", str(tmp_path))
    assert main(["run", check]) == ExitCode.OWN_FAULT
    said = capsys.readouterr().err
    assert said == (
        "picket: API checks with scripts cannot run here: there is no Node runtime for scripts on "
        "this machine; run `picket setup`, then restart the agent.\n"
    )
