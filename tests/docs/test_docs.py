"""What the pages say is what the code does."""

import re
from pathlib import Path

import pytest

from agent.settings_table import SETTINGS
from contract.checks import Lane, check_type
from contract.result import Status
from contract.runtimes import RUNTIMES
from picket.check_file.load import parse
from runners.registry import RUNNERS
from service.jobs.model import LEASE_MS
from service.settings import Settings

ROOT = Path(__file__).parents[2]
CHECKS = (ROOT / "docs/checks.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(type:.*?)```", CHECKS, re.DOTALL)


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_a_check_file(text: str) -> None:
    assert text.startswith(f"type: {check_type(parse(text, 'docs/checks.md').spec)}")


def test_each_check_type_that_runs_has_a_section_with_an_example() -> None:
    shown = {check_type(parse(text, "docs/checks.md").spec) for text in EXAMPLES}
    types = {runner.spec.__struct_config__.tag for runner in RUNNERS}
    assert shown == types
    assert types <= set(re.findall(r"^## (\w+)$", CHECKS, re.MULTILINE))


def test_each_setting_of_the_agent_stands_in_its_page_as_the_code_has_it() -> None:
    page = (ROOT / "docs/agent.md").read_text()
    for setting in SETTINGS:
        assert f"| `{setting.name}` | {setting.default or '-'} | {setting.meaning} |" in page


def test_how_long_leases_hold_is_told_with_its_figures() -> None:
    uptime_s, main_s = (LEASE_MS[lane] // 1000 for lane in (Lane.UPTIME, Lane.MAIN))
    for name in ("docs/agent.md", "docs/guarantees.md"):
        page = " ".join((ROOT / name).read_text().split())
        assert re.search(
            rf"{uptime_s} s after the last renewal for .*?checks, {main_s} s for", page
        )


def test_each_setting_of_the_service_stands_in_its_page() -> None:
    page = (ROOT / "docs/service.md").read_text()
    documented = set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE))
    source = (ROOT / "service/settings.py").read_text()
    named = set(re.findall(r'"""([A-Z_]+): ', source))
    assert documented == named
    assert len(named) == len(Settings.__dataclass_fields__.keys() - {"unknown"})


def test_each_runtime_stands_with_its_playwright_and_its_node() -> None:
    page = (ROOT / "docs/scripts.md").read_text()
    for one in RUNTIMES.values():
        assert f'| `"{one.id}"` | {one.playwright} | {one.node} |' in page


def test_each_status_is_explained() -> None:
    assert {status.value for status in Status} <= set(re.findall(r"\*\*([A-Z_]+)\*\*", CHECKS))


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", "docs/checks.md", "docs/scripts.md"]
)
def test_a_link_leads_to_a_file(page: str) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
        assert (ROOT / page).parent.joinpath(target).exists(), target
