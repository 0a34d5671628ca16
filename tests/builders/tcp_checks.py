"""TCP checks of one peer, and what they saw."""

from contract.assertions import Comparison, Source
from contract.checks import TcpRequest
from contract.result import FailureKind, TcpEvidence
from runners.runner import Observation
from runners.tcp import TcpRunner
from tests.builders.context import a_context
from tests.builders.specs import a_tcp_spec, an_assertion

READS = (an_assertion(Source.RESPONSE_DATA, Comparison.NOT_EMPTY),)


async def look(
    port: int,
    *,
    hostname: str = "127.0.0.1",
    reads: bool = False,
    context: dict[str, object] | None = None,
    **request: object,
) -> Observation:
    spec = a_tcp_spec(
        request=TcpRequest(hostname=hostname, port=port, **request),  # type: ignore[arg-type]
        assertions=READS if reads else (),
    )
    async with a_context(**(context or {})) as ctx:  # type: ignore[arg-type]
        return await TcpRunner().observe(spec, ctx)


def evidence(seen: Observation) -> TcpEvidence:
    assert isinstance(seen.evidence, TcpEvidence)
    return seen.evidence


def kind(seen: Observation) -> FailureKind | None:
    return None if seen.failure is None else seen.failure.kind
