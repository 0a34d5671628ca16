"""Names under which a run's files are kept: fit for artifacts, and without pieces of secrets."""

import re
from pathlib import Path
from typing import Final, Self

from runners.kit.runner import RunContext
from runners.kit.secrets.job_secrets import is_secret, usable
from runners.kit.secrets.pattern import SecretPattern

_MOST_CHARS: Final = 150
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]+")


class FileNames:
    """Makes paths of a run's files into names.

    A secret in a name is hidden with all other texts, but only where it is whole: what was cut, or
    has other characters than it had, is not known any more. Such a file has a number for a name.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._secrets = usable(secrets)
        self._pattern: SecretPattern | None = None
        """None: it was not needed yet, as it takes a while to make."""

    @classmethod
    def of(cls, ctx: RunContext) -> Self:
        """Those of a run, with what it came upon."""
        own = (one.value for one in ctx.variables if is_secret(one))
        return cls((*own, *ctx.location_secrets.values(), *ctx.workspace.secrets))

    def fit(self, path: Path, *parts: str) -> str | None:
        """The parts of the path as one name. None: it would be too long, or tell of a secret."""
        name = _UNUSUAL.sub("-", "-".join(parts)).lstrip(".-")
        return name if name and len(name) <= _MOST_CHARS and self._may_tell(path) else None

    def _may_tell(self, path: Path) -> bool:
        text = str(path)
        is_changed = _UNUSUAL.search(text.replace("/", "")) is not None
        if not is_changed and not any("/" in secret for secret in self._secrets):
            return True
        return not (self._secrets and self._known().hide_in_text(text)[1])

    def _known(self) -> SecretPattern:
        if self._pattern is None:
            self._pattern = SecretPattern(self._secrets)
        return self._pattern
