"""A package manager is told to keep to the run's folder, and gets its share of the time."""

from pathlib import Path

import pytest

from runners.scripting.suites.install import (
    build_manager_environment,
    build_proxy_environment,
    compute_deadline_s,
)
from runners.scripting.suites.package_manager import Manager


@pytest.mark.parametrize("manager", list(Manager))
def test_package_managers_keep_to_the_runs_own_folder(manager: Manager) -> None:
    told = build_manager_environment(Path("/run/home"), manager)
    assert told["npm_config_cache"] == "/run/home/npm"
    assert all(value.startswith("/run/home/") for value in told.values() if "/" in value)


def test_package_managers_learn_of_the_agents_proxies_in_their_own_words() -> None:
    proxies = {"HTTPS_PROXY": "http://a:1", "NO_PROXY": ".corp"}
    assert build_proxy_environment(Manager.NPM, proxies) == proxies
    assert build_proxy_environment(Manager.YARN_BERRY, proxies) == {
        **proxies,
        "YARN_HTTPS_PROXY": "http://a:1",
    }


@pytest.mark.parametrize(
    ("now_s", "run_ends_s", "until_s"),
    [(10, 1195, 310), (10, 115, 115), (200, 115, 115)],
)
def test_the_installations_of_a_run_have_five_minutes_together_and_no_more_than_the_run(
    now_s: float, run_ends_s: float, until_s: float
) -> None:
    assert compute_deadline_s(now_s, run_ends_s=run_ends_s) == until_s
