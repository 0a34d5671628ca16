"""Where the files of runs lie: agents put them there, people read them."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file of one attempt of a run."""

    location_id: str
    run_id: int
    fence: int
    """Of the claim under which it was made: each attempt keeps its own files."""
    name: str
    """One that `contract.agent_api.ARTIFACT_NAME` lets through."""

    def path(self, folder: Path) -> Path:
        """The file, once it is whole."""
        return self._run(folder) / str(self.fence) / self.name

    def unfinished(self, folder: Path) -> Path:
        """What came of it so far; each claim has its own, so that no two mix their bytes."""
        return self._run(folder) / f"{self.name}.{self.fence}.part"

    def _run(self, folder: Path) -> Path:
        return folder / self.location_id / str(self.run_id)
