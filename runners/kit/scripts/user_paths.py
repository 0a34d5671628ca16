"""Files as the author of a script knows them, in what Node and Playwright say of it. Pure.

They name files by where they are in the agent: a folder of one run, which nobody finds again, or
one of its packages. The author knows them by where they are in the check.
"""

import os.path
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from runners.kit.scripts.runtimes import HARNESS

_OF_KEPT: Final = r"(?:/[0-9a-f.]{1,100})?/node_modules/"
"""Packages that suites share lie below the key of their content."""
_REQUIRED_BY: Final = re.compile(r"\n- (?:node_modules/|node:)[^\n]*")
_NOBODY: Final = re.compile(r"\nRequire stack:(?!\n- )")
_SYNTAX: Final = re.compile(r"(?P<kind>SyntaxError: )(?P<file>\S+): (?P<said>.*) \(\d+:\d+\)")


class UserPaths:
    """Those of one run."""

    def __init__(
        self,
        root: Path,
        *,
        working_dir: Path | None = None,
        packages: Iterable[Path] = (),
        harness: Path = HARNESS,
    ) -> None:
        """`working_dir`: what the author's paths count from. None: from the root.

        `packages`: folders of the agent's that hold a `node_modules`, or several by their keys.
        `harness`: where the run's copy of our own code is.
        """
        here = root if working_dir is None else working_dir
        above = os.path.relpath(root, here)
        outside = "" if above == "." else f"{above}/"
        self._shorter = ((f"{here}/", ""), (f"{root}/", outside), (f"{harness}/", "node:picket/"))
        self._packages = _pattern(packages)

    def line(self, text: str) -> str:
        """Of a log."""
        if "/" not in text:
            return text
        for whole, short in self._shorter:
            text = text.replace(f"file://{whole}", short).replace(whole, short)
        return text if self._packages is None else self._packages.sub("node_modules/", text)

    def error(self, text: str, where: str | None = None) -> str:
        """Of an error, without the way through Playwright that led to the author's file.

        `where`: its place, as in `shop.spec.ts:5:14`, which is said behind the first line and not
        once more in it. None: nobody knows.
        """
        told = _NOBODY.sub("", _REQUIRED_BY.sub("", self.line(text)))
        if where is None:
            return told
        syntax = _SYNTAX.match(told)
        if syntax is not None and where.startswith(f"{syntax['file']}:"):
            return f"{syntax['kind']}{syntax['said']}{told[syntax.end() :]}"
        return told


def _pattern(packages: Iterable[Path]) -> re.Pattern[str] | None:
    """Of paths below these folders alone: a URL of the target's may hold `node_modules` as well.

    It begins with long fixed texts, so that a script's output cannot make it slow.
    """
    folders = "|".join(re.escape(str(folder)) for folder in packages)
    return re.compile(f"(?:file://)?(?:{folders}){_OF_KEPT}") if folders else None


def placed(text: str, where: str | None) -> str:
    """An error with its place behind its first line."""
    first, *rest = text.strip().split("\n")
    return "\n".join([f"{first} ({where})" if where else first, *rest])
