"""What the API needs to know of a check type, and the models that follow from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Literal

from pydantic import create_model

from contract.checks import SPEC_TYPES, CheckType
from contract.result import Outcome
from service.analytics.measures import Analytics
from service.checks.fields import KeptScript
from service.checks.schemas import CheckShown, CheckWrite
from service.http.schema import RequestModel

PLACES: Final[Mapping[str, Any]] = {"privateLocations": ["default"], "frequency": 10}
"""Where and when the checks of examples run."""


class _KeepsScript(RequestModel):
    """What a check of any type has at the paths that take all types."""

    script: KeptScript = None
    """Kept for clients that send it with every type. Only types that consist of a script run it."""


@dataclass(frozen=True, kw_only=True)
class TypeDefinition:
    """A check type in the API."""

    write: type[CheckWrite]
    """The body of its two operations; called as in `DnsCheckWrite`."""
    purpose: str
    """What it does, for whoever chooses between types."""
    start: Mapping[str, Any] = field(default_factory=dict)
    """What a form for a new one starts with, besides defaults."""
    example: Mapping[str, Any]
    """A body for the OpenAPI document; a test sends it."""
    shown: type[CheckShown] | None = None
    """The answer, where it has fields of its own. None: it has not."""
    operation: str | None = None
    """The ending of its operations' names. None: as in `dns_check`."""
    refusals: tuple[int, ...] = ()
    """Statuses that its operations answer beside those of all types."""
    remark: str = ""
    """A further sentence on creating one."""
    analytics: Analytics | None = None
    """What is measured of its runs. None: nothing is."""
    render_seen: Callable[[Outcome], Mapping[str, Any]] | None = None
    """What was asked and seen, as the established service's command line prints it of monitors
    without HTTP. None: it prints nothing of the kind."""

    @property
    def kind(self) -> CheckType:
        """The type."""
        return self.write.kind

    @property
    def operation_name(self) -> str:
        """The ending of its operations' names."""
        return self.operation or f"{self.kind.value.lower()}_check"

    @property
    def noun(self) -> str:
        """One check of the type, as in "a DNS monitor"."""
        noun = SPEC_TYPES[self.kind].noun
        return f"{'an' if noun[0] in 'AEIaeio' else 'a'} {noun}"

    @cached_property
    def response(self) -> type[CheckWrite]:
        """The answer, as in `DnsCheckShown`."""
        if self.shown is not None:
            return self.shown
        return self._tagged(f"{self._name}Shown", (CheckShown, self.write))

    @cached_property
    def typed(self) -> type[CheckWrite]:
        """The body that says its type itself, as in `TypedDnsCheck`."""
        has_script = "script" in self.write.model_fields
        bases: tuple[Any, ...] = (self.write,) if has_script else (self.write, _KeepsScript)
        return self._tagged(f"Typed{self._name}", bases)

    def _tagged(self, name: str, bases: tuple[Any, ...]) -> type[CheckWrite]:
        tag: Any = Literal[self.kind.value]
        return create_model(
            name,
            __base__=bases,
            __doc__=f"{self.noun[0].upper()}{self.noun[1:]}.",
            __module__=self.write.__module__,
            check_type=(tag, ...),
        )

    @property
    def _name(self) -> str:
        return self.write.__name__.removesuffix("Write")
