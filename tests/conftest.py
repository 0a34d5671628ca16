"""What every test needs: the root on the path, so that `tests.builders` imports; no stop-watch.

Laws are tried on the same examples each time, so that a run is red for what was changed alone;
with `HYPOTHESIS_PROFILE=explore` they are tried on new ones, with `quick` on a fifth of them.
"""

import gc
import os
import sys
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

ROOT = str(Path(__file__).resolve().parent.parent)
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from tests import leftovers  # noqa: E402 - found by the path above
from tests.closed_home import open_to_other_users  # noqa: E402

# A busy machine is no broken law: no example may fail for taking long, or for being slow to make.
EXPLORE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", EXPLORE)
STEADY = settings(EXPLORE, derandomize=True)
settings.register_profile("steady", STEADY)
settings.register_profile("quick", STEADY, max_examples=20)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "steady")
settings.load_profile(PROFILE)


def _none_of_ours() -> Constants:
    return Constants()


if PROFILE != "explore":
    # Else literals of whatever modules are loaded by then are drawn from as well: other examples
    # in another order of tests, and after every change of a literal.
    providers._get_local_constants = _none_of_ours

# As a program writes them; the library's own choice draws each traceback in a frame, in 30 ms.
structlog.configure(
    processors=[
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback),
    ]
)


def pytest_configure(config: pytest.Config) -> None:
    """Blame tests for what they leave open; let the users of scripts reach this folder.

    The latter comes before there are workers, which inherit it.
    """
    config.pluginmanager.register(leftovers)
    if not hasattr(config, "workerinput"):
        open_to_other_users(Path(ROOT))


def pytest_collection() -> None:
    """What is loaded and collected stays to the end: nobody looks through it for garbage."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


FIRST = (
    "tests/house",
    "tests/service/http/test_contract",
    "tests/system",
    "tests/clients/test_",
    "tests/docs/test_api_walk",
    "tests/faults",
    "tests/soak",
    "tests/runners/test_",
    "tests/picket",
    "tests/service/test_",
)
"""What takes seconds a test. A tail of short tests is shared out to the last second."""

SLOW = (
    "tests/system",
    "tests/clients/test_",
    "tests/faults",
    "tests/soak",
    "tests/deploy/test_alive",
    "tests/deploy/test_images",
    "tests/deploy/test_full_images",
    "tests/deploy/test_replicas",
    "tests/docs/test_api_walk",
    "tests/service/http/test_contract",
    "tests/service/test_app",
    "tests/service/test_folders",
    "tests/service/test_main",
    "tests/runners/test_browser",
    "tests/runners/test_hanging",
    "tests/runners/test_masked_pictures",
    "tests/runners/test_multi_step",
    "tests/runners/test_nothing_left",
    "tests/runners/test_playwright",
    "tests/runners/test_script_h",
    "tests/runners/test_script_helpers",
    "tests/runners/test_secrets_in_traces",
    "tests/runners/test_several_tests",
    "tests/runners/test_suite_reports",
    "tests/runners/test_typed_secrets",
    "tests/redaction/trace/test_trace.py",
    "tests/runners/scripting/proxy/test_presenting.py",
    "tests/runners/scripting/playwright/test_spares",
    "tests/runners/scripting/playwright/test_warming",
    "tests/runners/scripting/node/test_installed_runtimes",
    "tests/redaction/test_following",
    "tests/runners/scripting/suites/test_node_modules",
    "tests/runners/scripting/trust/test_roots",
    "tests/agent/test_boot",
    "tests/docs/test_readme_walk",
    "tests/picket/test_suite_folder",
    "tests/picket/test_trace_viewer",
    "tests/runners/scripting/suites/test_lending",
    "tests/runners/scripting/test_harness",
    "tests/service/http/test_docs_page",
    "tests/sandbox",
    "tests/conformance",
    "tests/docs/test_secret_table",
    "tests/redaction/test_beginnings",
    "tests/redaction/test_cores",
    "tests/redaction/test_encoded_secrets",
    "tests/redaction/test_pattern",
    "tests/service/jobs/test_queue_machine",
    "tests/service/scheduling/test_week",
    "tests/agent/telemetry/test_observability",
    "tests/agent/test_bundles",
    "tests/agent/test_work",
    "tests/house/test_leftovers",
    "tests/redaction/test_files",
    "tests/redaction/scanner/test_scan",
    "tests/picket/test_status_page_export",
    "tests/service/agents/test_artifacts",
    "tests/service/web/forms/test_unchanged_forms",
    "tests/service/store_migration/test_migration",
    "tests/service/live/test_live_sign_out",
    "tests/picket/test_run",
    "tests/runners/test_api_script_failures",
)
"""What `make test-quick` leaves out: whole systems, faults, suites, images, and long searches for a
secret that survives or an order of events that loses a run. Browsers and PostgreSQL as well: see
`_is_slow`."""


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is slow, before `-m` chooses."""
    if item.nodeid.startswith(SLOW) or _is_slow(item):
        item.add_marker("slow")


def _is_slow(item: pytest.Item) -> bool:
    """Whether a test runs in a browser, or repeats on PostgreSQL what it says of SQLite."""
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return "browser" in item.fixturenames or parameters.get("postgresql_url") == "postgresql"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What mostly waits comes first, to one process, while the others compute."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    turns = (turn for turn, place in enumerate(FIRST) if item.nodeid.startswith(place))
    return next(turns, len(FIRST))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--every-playwright",
        action="store_true",
        help="run suites with each Playwright of tests/suites/versions, and what npm starts today; "
        "compare each script of tests/runners/data/verdicts.ts with plain Playwright",
    )
