"""What a script's run says of it, here and by plain `playwright test`, in one form."""

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple

from contract.checks import BrowserSpec, MultiStepSpec
from contract.evidence import ScriptEvidence
from contract.result import Outcome
from runners.browser import BrowserRunner
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from runners.runner import RunContext
from runners.scripting.node.files import UserPaths
from runners.scripting.node.runtimes import Runtime, Runtimes
from runners.scripting.playwright.reporter import strip_colours

SCRIPTS: Final = Path(__file__).parents[1] / "runners/data/verdicts.ts"
_SECTION: Final = re.compile(
    r"^// (body|file)( alone)?: (.+)\n((?:(?!// (?:body|file)).*\n)*)", re.MULTILINE
)
_IMPORT: Final = "import { test, expect } from '@playwright/test';\n"
_NEEDS_BROWSER: Final = re.compile(r"\b(?:page|browser)\b")
_ENDED: Final = re.compile(
    r"net::ERR_ABORTED; maybe frame was detached\?|Target page, context or browser has been closed"
)
"""Playwright's reasons for a call whose page ends; they vary with the moment."""
_LIMIT_S: Final = 1500


class Script(NamedTuple):
    """One script of the comparison."""

    name: str
    text: str
    is_alone: bool
    """Whether others in the same run of Playwright would not run, or get the blame."""

    @property
    def path(self) -> str:
        """The name of its file."""
        return f"{re.sub(r'[^a-z0-9]+', '-', self.name)}.spec.ts"


class Verdict(NamedTuple):
    """Whether a script failed, and its errors: the first line of each, and its place."""

    failed: bool
    errors: tuple[tuple[str, str | None], ...] = ()


def read_scripts(site: str) -> list[Script]:
    """Read the scripts, for a site."""
    return [
        Script(name, _IMPORT + _write(kind, text).replace("SITE", site), bool(alone))
        for kind, alone, name, text in _SECTION.findall(SCRIPTS.read_text())
    ]


def _write(kind: str, body: str) -> str:
    if kind == "file":
        return body
    fixtures = [name for name in ("page", "request") if re.search(rf"\b{name}\b", body)]
    return f"test('one', async ({{ {', '.join(fixtures)} }}) => {{\n{body}}});\n"


async def run_here(script: Script, ctx: RunContext, runtime_id: str) -> tuple[Verdict, Outcome]:
    """Run a script as a check."""
    needs_browser = _NEEDS_BROWSER.search(script.text) is not None
    runner, kind = (
        (BrowserRunner(), BrowserSpec) if needs_browser else (MultiStepRunner(), MultiStepSpec)
    )
    spec = kind(script=script.text, script_path=script.path, runtime_id=runtime_id)
    outcome = judge(spec, await runner.observe(spec, ctx))  # type: ignore[arg-type]
    seen = outcome.evidence
    errors = seen.errors if isinstance(seen, ScriptEvidence) else ()
    told = _once((_first_line(one.message), one.where) for one in errors)
    return Verdict(outcome.failure is not None, told), outcome


def _first_line(message: str) -> str:
    line = message.strip().split("\n", 1)[0]
    return _ENDED.sub("Test ended.", line)


async def run_plainly(
    scripts: Iterable[Script], folder: Path, runtimes: Runtimes, runtime: Runtime
) -> dict[str, Verdict]:
    """Run scripts by the runtime's own `playwright test`, in one run as far as they allow it."""
    (folder / "node_modules").symlink_to(runtime.modules)
    known = list(scripts)
    together = [one for one in known if not one.is_alone]
    verdicts: dict[str, Verdict] = {}
    for number, group in enumerate([together, *([one] for one in known if one.is_alone)]):
        place = folder / str(number)
        place.mkdir()
        for script in group:
            (place / script.path).write_text(script.text)
        report = await _run_playwright(place, runtimes, runtime)
        verdicts |= {one.name: _read_verdict(one, report, place) for one in group}
    return verdicts


async def _run_playwright(place: Path, runtimes: Runtimes, runtime: Runtime) -> dict[str, Any]:
    config = {
        "testDir": str(place),
        "outputDir": str(place / "results"),
        "workers": 2,
        "reporter": [["json", {"outputFile": str(place / "report.json")}]],
        "use": {
            "navigationTimeout": 30_000,
            "launchOptions": {"executablePath": str(runtimes.browser)},
        },
    }
    (place / "playwright.config.js").write_text(f"module.exports = {json.dumps(config)};")
    program = await asyncio.create_subprocess_exec(
        runtime.node,
        runtime.modules / "@playwright/test/cli.js",
        "test",
        cwd=place,
        env={"PATH": f"{runtime.node.parent}:/usr/bin:/bin", "HOME": str(place)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    await asyncio.wait_for(program.wait(), _LIMIT_S)
    report: dict[str, Any] = json.loads((place / "report.json").read_bytes())
    return report


def _read_verdict(script: Script, report: Mapping[str, Any], place: Path) -> Verdict:
    files = [one for one in report["suites"] if one["file"] == script.path]
    tests = [test for file in files for test in _list_tests(file)]
    bad = [test for test in tests if test["status"] == "unexpected"]
    inside = [error for test in bad for result in test["results"] for error in result["errors"]]
    outside = [one for one in report["errors"] if not files or _is_in(script, one)]
    return Verdict(bool(bad or outside), _once(_tell(one, place) for one in inside + outside))


def _once(errors: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, str | None], ...]:
    """Count an error that is repeated once.

    Whether the rejection of a call that ends before its `await` is reported too depends on the
    moment, here and there.
    """
    return tuple(one for one, _ in groupby(errors))


def _tell(error: Mapping[str, Any], folder: Path) -> tuple[str, str | None]:
    message, where = strip_colours(error["message"]), _place_of(error, folder)
    return _first_line(UserPaths(folder).error(message, where)), where


def _is_in(script: Script, error: Mapping[str, Any]) -> bool:
    return bool(error.get("location")) and Path(error["location"]["file"]).name == script.path


def _list_tests(suite: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for spec in suite.get("specs", ()):
        yield from spec["tests"]
    for inner in suite.get("suites", ()):
        yield from _list_tests(inner)


def _place_of(error: Mapping[str, Any], folder: Path) -> str | None:
    """Find the place that Playwright gives, or the first of its frames in the folder."""
    given = error.get("location") or {"file": "", "line": 0, "column": 0}
    told = f"{given['file']}:{given['line']}:{given['column']}\n{error['message']}"
    found = re.search(rf"{re.escape(str(folder))}/(\S+?:\d+:\d+)", told)
    return found[1] if found else None
