"""The command line as a process of its own."""

import asyncio
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


async def picket(*arguments: str, **environ: str) -> str:
    """Run `picket`, which must succeed, with these settings alone; what it printed."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "picket", *arguments),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await child.communicate()
    assert child.returncode == 0, printed.decode()
    return printed.decode()
