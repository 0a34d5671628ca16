import inspect
import re

import pytest

import service.settings
from agent.settings_table import SETTINGS
from picket.__main__ import main
from picket.settings_help import SERVICE_ROWS, settings_rows


def test_the_service_page_names_every_variable_that_the_service_reads() -> None:
    read = re.findall(r'reading\.value\(\s*"(\w+)"', inspect.getsource(service.settings))
    assert sorted(name for name, _ in SERVICE_ROWS) == sorted(read)


def test_the_agent_page_names_every_variable_that_the_agent_reads() -> None:
    shown = [name for name, _ in settings_rows("agent")]
    assert shown == [*(setting.name for setting in SETTINGS), "SERVICE_SECRET_*"]


@pytest.mark.parametrize("command", ["agent", "service", "run", "up", "doctor"])
def test_help_never_shows_a_value(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("API_KEY", "FIRST_API_KEY", "HTTPS_PROXY", "SERVICE_SECRET_TOKEN", "SERVICE_URL"):
        monkeypatch.setenv(name, "hunter2-hunter2")
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert f"picket {command}" in out
    assert "hunter2" not in out
