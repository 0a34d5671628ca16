"""Bodies of the checks that are code or words: scripts, suites and prompts."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from contract.checks import CheckType
from contract.scripted import Dependency
from contract.scripts import dependencies_problem
from service.checks.bodies import MinuteCheckWrite
from service.checks.fields import Listing, MinuteFrequency, Region
from service.checks.script_fields import (
    DEFAULT_REGION,
    AgentRuntime,
    Browser,
    BundlePath,
    Command,
    DependencyWrite,
    Domain,
    Engine,
    Label,
    MaybeAgentRuntime,
    PlaywrightConfig,
    Prompt,
    Script,
    ScriptPath,
    somewhere,
)
from service.http.strict import field_error
from service.variables.bodies import EnvironmentVariables


class ScriptCheckWrite(MinuteCheckWrite):
    """Fields of the types that are one script, with the files that it imports."""

    script: Script
    """Node.js or TypeScript code: a Playwright Test file, or a plain script."""
    script_path: ScriptPath = None
    """Where the script stands among its files, as in checks/shop.spec.ts. Null: script.js."""
    dependencies: Listing[DependencyWrite] = Field(default_factory=list)
    """Files that the script imports."""
    playwright_config: PlaywrightConfig | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. Null: defaults."""
    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """Win over those of the group and the account, for this check."""

    @model_validator(mode="after")
    def _files_fit(self) -> "ScriptCheckWrite":
        files = [Dependency(path=one.path, content=one.content) for one in self.dependencies or ()]
        if found := dependencies_problem(files, script_path=self.script_path):
            raise field_error(f"dependencies{found[0]}", found[1])
        self.hold_runtime()
        return self


class BrowserCheckWrite(ScriptCheckWrite):
    """A browser check: a script that drives a browser."""

    kind = CheckType.BROWSER
    ssl_check_domain: Domain = None
    """Host whose certificate alerts on expiry are to watch; kept, without effect until there are
    alerts. Null: none."""


class MultiStepCheckWrite(ScriptCheckWrite):
    """A multi-step check: a script of several API requests."""

    kind = CheckType.MULTI_STEP


class PlaywrightCheckWrite(MinuteCheckWrite):
    """A Playwright suite: tests, configuration and packages of a whole project."""

    kind = CheckType.PLAYWRIGHT
    double_check: bool = False
    """Not followed: a suite retries as its own configuration says."""
    code_bundle_path: BundlePath
    """The SHA-256 of a tar.gz that was sent to `/v1/code-bundles`."""
    test_command: Command = "npx playwright test"
    """With options as the suite needs them, as in --project=chromium --grep=@smoke."""
    install_command: Command = ""
    """Empty: by the lock file of the suite."""
    browsers: Listing[Browser] = Field(default_factory=list)
    """Those that the suite's projects use; empty: not said."""
    playwright_version: Label = None
    """Said in the log where the lock file says otherwise, which is what runs."""
    working_dir: ScriptPath = None
    """Folder of the bundle that commands run in. Null: its root."""
    cache_hash: Label = None
    """Another one has packages installed anew, beside what a lock file changes by itself."""
    engine: Engine = None
    """Null: node."""
    engine_version: Label = None
    """A Node that the agent has. Null: that of the check's runtime."""
    environment_variables: EnvironmentVariables = Field(default_factory=list)
    """Win over those of the group and the account, for this check."""

    @model_validator(mode="after")
    def _runs_on_something(self) -> "PlaywrightCheckWrite":
        self.hold_runtime()
        return self


class AgenticCheckWrite(MinuteCheckWrite):
    """A goal in plain words that a model tries to reach. No agent runs these yet: runs are missed.

    It runs in regions, at one after the other, in no group and without retries.
    """

    kind = CheckType.AGENTIC
    double_check: bool = False
    """Not followed: there are no retries."""
    locations: Annotated[Listing[Region], AfterValidator(somewhere)] = Field(
        default=[DEFAULT_REGION]
    )
    """Regions, each of which takes a private location with its name. Null or empty: us-east-1."""
    prompt: Prompt
    """What to do, and what must be so in the end; `{{NAME}}` stands for a variable."""
    agent_runtime: MaybeAgentRuntime = AgentRuntime()
    """Null: without skills."""
    frequency: MinuteFrequency = 30
    """Minutes between runs."""
