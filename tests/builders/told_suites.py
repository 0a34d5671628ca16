"""What a run of a suite told, and suites that are changed a little."""

from typing import Any

import msgspec

from contract.checks import PlaywrightSpec
from contract.evidence import PlaywrightEvidence
from runners.runner import Observation


def told(observation: Observation) -> PlaywrightEvidence:
    assert isinstance(observation.evidence, PlaywrightEvidence)
    return observation.evidence


def words(observation: Observation) -> str:
    """The failure's sentence, with a plain sign between the titles."""
    assert observation.failure is not None
    return observation.failure.message.replace("\u203a", ">")


def said(observation: Observation) -> list[str]:
    return [line.message for line in observation.log]


def changed(spec: PlaywrightSpec, **changes: Any) -> PlaywrightSpec:
    return msgspec.structs.replace(spec, **changes)
