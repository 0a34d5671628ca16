"""`picket run` with checks that have scripts."""

import json
from pathlib import Path

import pytest

from picket.__main__ import main
from picket.errors import ExitCode

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


def test_without_a_runtime_what_is_missing_is_said_in_one_sentence(
    check: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PICKET_RUNTIMES", str(tmp_path))
    assert main(["run", check]) == ExitCode.OWN_FAULT
    said = capsys.readouterr().err
    assert said == "picket: There is no Node runtime for scripts on this machine.\n"
