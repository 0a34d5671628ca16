"""What a check needs that is a script's alone, or a model's: one Spec per type.

API checks, whose scripts run beside a request of their own, stand with the others in
`contract.checks`.
"""

from typing import Annotated, Literal

import msgspec

from contract.specs import ScriptSpec, Spec
from contract.wire import Wire


class Dependency(Wire, frozen=True, kw_only=True):
    """A further file that a script imports."""

    path: Annotated[str, msgspec.Meta(min_length=1, max_length=1000)]
    content: str


RuntimeId = Literal["2026.04", "2025.04", "2024.09", "2024.02", "2023.09", "2023.02", "2022.10"]


class BrowserSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="BROWSER"):
    """A script that drives a browser."""

    noun = "browser check"
    needs_browser = True

    script: str
    script_path: str | None = None
    """None: the script came from an editor and is called /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; paths as in `snippets/login.js`, from the
    folder of the script."""
    runtime_id: RuntimeId | None = None
    """None: the newest runtime of the agent."""
    ssl_check_domain: str | None = None
    """Host whose certificate alerts on expiry are to watch; no run looks at it. None: none."""
    playwright_config: dict[str, object] | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. None: defaults."""


class MultiStepSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="MULTI_STEP"):
    """A script of several API requests."""

    noun = "multi-step check"

    script: str
    script_path: str | None = None
    """None: the script came from an editor and is called /script.js."""
    dependencies: tuple[Dependency, ...] = ()
    snippets: tuple[Dependency, ...] = ()
    """Files that scripts import from `./snippets/`; paths as in `snippets/login.js`, from the
    folder of the script."""
    runtime_id: RuntimeId | None = None
    """None: the newest runtime of the agent."""
    playwright_config: dict[str, object] | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. None: defaults."""


class PlaywrightSpec(ScriptSpec, frozen=True, kw_only=True, tag_field="type", tag="PLAYWRIGHT"):
    """A whole Playwright test suite."""

    noun = "Playwright suite"
    needs_browser = True

    bundle_sha256: str
    """Content address of the suite's tar.gz at the service."""
    test_command: str = "npx playwright test"
    install_command: str = ""
    browsers: tuple[str, ...] = ()
    playwright_version: str | None = None
    """None: as the suite's lock file says."""
    working_dir: str | None = None
    """None: the bundle's root."""
    cache_hash: str | None = None
    """Packages that were kept under another one are not used. None: what they are installed from
    says it all."""
    engine: Literal["node", "bun"] | None = None
    """None: node."""
    engine_version: str | None = None
    """None: the Node of the runtime."""
    runtime_id: RuntimeId | None = None
    """Whose Node runs the suite, which brings everything else. None: the agent's newest."""
    refresh_cache: bool = False


class AgenticSpec(Spec, frozen=True, kw_only=True, tag_field="type", tag="AGENTIC"):
    """A goal in plain words that a model tries to reach in a browser."""

    noun = "agentic check"
    is_run_by_agents = False
    is_main = True

    prompt: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
    skills: tuple[str, ...] = ()
