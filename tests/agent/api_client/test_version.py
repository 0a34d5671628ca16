"""What an agent says of itself."""

from pathlib import Path

from agent.api_client.hello import runtimes
from runners.scripting.node.runtimes import Runtime, Runtimes

NEWEST = Runtime(
    id="2026.04",
    node=Path("/node"),
    node_version="24.19.0",
    modules=Path("/node_modules"),
    playwright="1.65.1",
    compile_cache=None,
)


def test_a_light_agent_has_python_alone() -> None:
    assert list(runtimes()) == ["python"]


def test_an_agent_names_its_runtimes_and_its_browser() -> None:
    found = runtimes(Runtimes(by_id={"2026.04": NEWEST}, browser_version="156.0.8078.79"))
    assert found["2026.04"] == "24.19.0"
    assert found["chromium"] == "156.0.8078.79"


def test_an_agent_without_a_browser_names_none() -> None:
    assert "chromium" not in runtimes(Runtimes(by_id={"2026.04": NEWEST}))
