"""What a Dockerfile says, instruction by instruction."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction, its continued lines joined."""

    keyword: str
    text: str

    @property
    def words(self) -> tuple[str, ...]:
        """Its words; of the exec form, the command's."""
        if self.keyword in {"ENTRYPOINT", "CMD"}:
            return tuple(json.loads(self.text))
        return tuple(shlex.split(self.text))


@dataclass(frozen=True, slots=True)
class Stage:
    """From one FROM to the next."""

    base: str
    name: str
    """Empty for a last stage without a name."""
    instructions: tuple[Instruction, ...]

    def all(self, keyword: str) -> list[Instruction]:
        return [one for one in self.instructions if one.keyword == keyword]

    def only(self, keyword: str) -> Instruction:
        (one,) = self.all(keyword)
        return one

    @property
    def copied(self) -> set[str]:
        """What comes from the repository, as it is written."""
        copies = [one.words for one in self.all("COPY")]
        return {word for words in copies if "--from=" not in words[0] for word in words[:-1]}

    @property
    def environment(self) -> dict[str, str]:
        words = [word for one in self.all("ENV") for word in one.words]
        return dict(word.split("=", 1) for word in words)

    @property
    def labels(self) -> dict[str, str]:
        return dict(word.split("=", 1) for one in self.all("LABEL") for word in one.words)

    @property
    def health_command(self) -> list[str]:
        """Of HEALTHCHECK in its exec form."""
        return list(json.loads(self.only("HEALTHCHECK").text.partition(" CMD ")[2]))


def read_arguments(path: Path) -> dict[str, str]:
    """The build arguments that a FROM may use, with their defaults."""
    arguments: dict[str, str] = {}
    for instruction in _instructions(path.read_text()):
        if instruction.keyword == "FROM":
            break
        name, _, default = instruction.text.partition("=")
        arguments[name] = default
    return arguments


def image_stages(stages: list[Stage]) -> list[Stage]:
    """The last stage, and those of the same file that it begins with."""
    by_name = {stage.name: stage for stage in stages}
    lineage = [stages[-1]]
    while lineage[-1].base in by_name:
        lineage.append(by_name[lineage[-1].base])
    return lineage


def read_stages(path: Path) -> list[Stage]:
    stages: list[Stage] = []
    for instruction in _instructions(path.read_text()):
        if instruction.keyword == "FROM":
            base, _, name = instruction.text.partition(" AS ")
            stages.append(Stage(base, name, ()))
        elif stages:  # an ARG before the first stage belongs to none
            last = stages.pop()
            stages.append(Stage(last.base, last.name, (*last.instructions, instruction)))
    return stages


def _instructions(text: str) -> list[Instruction]:
    kept = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))
    joined = re.sub(r"\\\n\s*", "", kept)
    parts = [line.partition(" ") for line in joined.splitlines() if line]
    return [Instruction(keyword, rest.strip()) for keyword, _, rest in parts]
