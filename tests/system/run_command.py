"""`picket run` in this process."""

import asyncio
import json
from pathlib import Path
from typing import Any

from picket.__main__ import main

CheckDocument = dict[str, Any]


async def run(document: CheckDocument, folder: Path, *options: str) -> int:
    """The real command, in a thread, so that the target's loop goes on."""
    file = folder / "check.json"
    file.write_text(json.dumps(document))
    return await asyncio.to_thread(main, ["run", "--json", *options, str(file)])
