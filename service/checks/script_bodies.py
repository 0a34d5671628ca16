"""What the checks that are one script have in common."""

from pydantic import Field, model_validator

from contract.scripted import Dependency
from contract.scripts import dependencies_problem
from service.checks.bodies import MinuteCheckWrite, VariablesWrite
from service.checks.fields import Listing
from service.checks.rules import NO_PHASES, SCRIPT_DECIDES
from service.checks.script_fields import DependencyWrite, PlaywrightConfig, Script, ScriptPath
from service.http.strict import field_error


class ScriptCheckWrite(VariablesWrite, MinuteCheckWrite):
    """Fields of the types that are one script, with the files that it imports."""

    refused = NO_PHASES | SCRIPT_DECIDES
    script: Script
    """Node.js or TypeScript code: a Playwright Test file, or a plain script."""
    script_path: ScriptPath = None
    """Where the script stands among its files, as in checks/shop.spec.ts. Null: script.js."""
    dependencies: Listing[DependencyWrite] = Field(default_factory=list)
    """Files that the script imports."""
    playwright_config: PlaywrightConfig | None = None
    """The parts `timeout`, `use` and `expect` of a Playwright configuration. Null: defaults."""

    @model_validator(mode="after")
    def _files_fit(self) -> "ScriptCheckWrite":
        files = [Dependency(path=one.path, content=one.content) for one in self.dependencies or ()]
        if found := dependencies_problem(files, script_path=self.script_path):
            raise field_error(f"dependencies{found[0]}", found[1])
        self.hold_runtime()
        return self
