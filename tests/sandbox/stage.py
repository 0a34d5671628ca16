"""An agent in small: plays one hostile script in the sandbox, and tells what came of it.

Run as a program of its own, so that it can be root, a container's root, or nobody at all.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec

from sandbox.processes import all_pids, read_uid
from sandbox.program import Limits, Program, ProgramExit
from sandbox.sandbox import Sandbox
from sandbox.workspace import Workspace

SCRIPTS = Path(__file__).parent / "scripts"
OPEN_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
ANNOUNCE = {
    "py": "import os,sys;os.write(3,b'{\"uid\":%d}\\n'%os.getuid());exec(open(sys.argv[1]).read())",
    "js": "require('fs').writeSync(3,`{\"uid\":${process.getuid()}}\\n`);require(process.argv[1])",
}


def program(play: dict[str, Any], workspace: Workspace) -> Program:
    script, work = SCRIPTS / play["script"], workspace.folder / "work"
    work.mkdir()
    starts = {"py": ("-I", "-c"), "js": ("--max-old-space-size=4096", "-e")}[script.suffix[1:]]
    return Program(
        argv=(play["interpreter"], *starts, ANNOUNCE[script.suffix[1:]], str(script)),
        folder=work,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(work), **play.get("env", {})},
        limits=msgspec.convert({"memory_mb": 2000, **play.get("limits", {})}, Limits),
    )


async def run(
    sandbox: Sandbox, play: dict[str, Any], workspace: Workspace
) -> tuple[ProgramExit, list[bytes]]:
    facts: list[bytes] = []

    def note(fact: bytes) -> None:
        facts.append(fact)
        if play.get("tells_facts"):
            say(f"{play['tells_facts']} {fact.decode()} {workspace.folder}")

    child = await sandbox.start(program(play, workspace), owner=workspace)
    ended = await child.wait(timeout_s=play["timeout_s"], on_fact=note)
    return ended, facts


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def nobody_else_has(uid: int, sandbox: Sandbox) -> None:
    """Another test may have been lent the user meanwhile."""
    users = sandbox._users
    while users is not None and not users.lock(uid):  # noqa: ASYNC110 -- another process's
        await asyncio.sleep(0.05)


def survivors(uid: int) -> list[str]:
    """Whatever runs as the script's user, but us."""
    ours = {os.getpid(), os.getppid()}
    living = [pid for pid in all_pids() if read_uid(pid) == uid and pid not in ours]
    return [f"{pid} {command(pid)}" for pid in living]


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def left(uid: int) -> list[str]:
    return [
        str(path)
        for folder in OPEN_FOLDERS
        for path in Path(folder).glob("*")
        if owner(path) == uid
    ]


def owner(path: Path) -> int | None:
    """None: it is gone; other tests come and go in the same folders."""
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


async def main(play: dict[str, Any]) -> None:
    before = open_files()
    sandbox, workspace, theirs = Sandbox(), Workspace(), Workspace()
    beside = play.get("neighbour")
    child = beside and await sandbox.start(program(beside, theirs), owner=theirs)
    ended, facts = await run(sandbox, play, workspace)
    if not facts:
        await sandbox.close()
        workspace.remove()
        theirs.remove()
        say("{}")
        return
    uid = json.loads(facts[0])["uid"]
    if child:
        await child.kill()
    folder = workspace.folder
    await nobody_else_has(uid, sandbox)
    workspace.remove()
    theirs.remove()
    await sandbox.close()  # its own helpers may be of the script's user
    told = {
        "ended": msgspec.to_builtins(ended),
        "facts": [fact.decode(errors="replace")[:2000] for fact in facts[1:50]],
        "fact_count": len(facts) - 1,
        "uid": uid,
        "survivors": survivors(uid),
        "left": left(uid) if uid != os.getuid() else [],
        "folder_is_there": folder.exists(),
    }
    if sandbox._users is not None:
        sandbox._users.give_back(uid)
    told["more_open_files"] = open_files() - before
    told["tasks"] = len(asyncio.all_tasks()) - 1
    say(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
