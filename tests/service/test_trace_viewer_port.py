"""The trace viewer's own port."""

import socket
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.serving import listen_for_viewer
from service.settings import Settings, read_settings

PUBLIC = {"SERVICE_PUBLIC_URL": "https://picket.example.com"}


def test_the_viewer_listens_at_a_port_of_its_own() -> None:
    found = listen_for_viewer(Settings(host="127.0.0.1", trace_viewer_port=0))
    assert found is not None
    with found:
        assert found.getsockname()[1] != 0


def test_the_service_starts_without_a_viewer_if_its_port_is_taken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert listen_for_viewer(Settings(host="127.0.0.1", trace_viewer_port=port)) is None
    said = capsys.readouterr().out
    assert f"TRACE_VIEWER_PORT is {port}, but another program listens there" in said


def test_the_viewer_can_be_off() -> None:
    settings = read_settings({"TRACE_VIEWER_PORT": "off"})
    assert listen_for_viewer(settings) is None


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"TRACE_VIEWER_URL": "https://traces.example.com"}, "needs SERVICE_PUBLIC_URL"),
        (
            {**PUBLIC, "TRACE_VIEWER_URL": "https://picket.example.com:8083"},
            "which has the host of SERVICE_PUBLIC_URL; use another host name",
        ),
        ({**PUBLIC, "TRACE_VIEWER_URL": "https://a.example.com/below"}, "use a scheme and a host"),
        ({"TRACE_VIEWER_PORT": "99999"}, "TRACE_VIEWER_PORT is 99999; use 0 to 65535"),
    ],
)
def test_a_viewer_that_could_not_be_safe_is_refused(
    environ: dict[str, str], problem: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=problem):
        read_settings({**environ, "SERVICE_DATA_DIR": str(tmp_path)})
