"""The established command line as people run it: in a project's folder, told the address alone."""

import asyncio
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.builders.suites import NEWEST, SUITES
from tests.clients.installation import installed, node

PROJECTS: Final = Path(__file__).with_name("projects")
_PROGRAM: Final = "node_modules/checkly/bin/run.cjs"
_LIMIT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it printed on both streams."""

    code: int
    printed: str


@dataclass(slots=True)
class Running:
    """A command that goes on."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)

    async def says(self, words: str) -> None:
        """Wait until a line with these words is printed."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_LIMIT_S):
            async for line in self.process.stdout:
                self.lines.append(line.decode())
                if words in self.lines[-1]:
                    return
        raise AssertionError(f"it ended without {words!r}:\n{''.join(self.lines)}")

    async def end(self) -> Ended:
        """Wait for the end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(_LIMIT_S):
            rest = await self.process.stdout.read()
            code = await self.process.wait()
        return Ended(code, "".join(self.lines) + rest.decode())


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The program, the project that it works in, and the variables that it is told."""

    project: Path
    environ: dict[str, str]

    async def start(self, *words: str) -> Running:
        """Start a command."""
        process = await asyncio.create_subprocess_exec(
            *(node(), installed() / _PROGRAM, *words),
            cwd=self.project,
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        return Running(process)

    async def end(self, *words: str) -> Ended:
        """Run a command to its end, however it ends."""
        running = await self.start(*words)
        try:
            return await running.end()
        finally:
            if running.process.returncode is None:
                running.process.kill()
                await running.process.wait()

    async def run(self, *words: str, code: int = 0) -> str:
        """Run a command that must end with this code; what it printed."""
        ended = await self.end(*words)
        assert ended.code == code, f"{words} ended with {ended.code}:\n{ended.printed}"
        return ended.printed


def five_variables(url: str, *, key: str, account_id: str) -> dict[str, str]:
    """What docs/moving.md has people set, all of it."""
    return {
        "CHECKLY_ENV": "local",
        "CHECKLY_API_URL": url,
        "CHECKLY_MQTT_URL": url.replace("http", "ws", 1),
        "CHECKLY_API_KEY": key,
        "CHECKLY_ACCOUNT_ID": account_id,
    }


def outside_the_project(home: Path) -> dict[str, str]:
    """What else a build job has around it; nothing is asked, and no newer release is looked for."""
    return {
        "PATH": f"{node().parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "CI": "1",
        "NO_COLOR": "1",
        "CHECKLY_SKIP_NEW_VERSION_CHECK": "true",
    }


def a_project(folder: Path, name: str) -> Path:
    """Copy a project of `projects/` there, with the libraries that `npm ci` would install.

    One without a package.json gets Playwright alone, which agents of tests have in their cache.
    """
    project = folder / name
    shutil.copytree(PROJECTS / name, project)
    (project / "node_modules").symlink_to(installed() / "node_modules")
    # Files are named as they are called in the repository.
    (project / ".git").mkdir()
    (project / ".git/HEAD").write_text("ref: refs/heads/main\n")
    if (project / "package.json").exists():
        shutil.copy(installed() / "package-lock.json", project)
    else:
        shutil.copytree(SUITES / f"versions/{NEWEST}", project, dirs_exist_ok=True)
    return project
