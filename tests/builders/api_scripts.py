"""A server, and what API checks with scripts that ask it run with."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from contract.assertions import Assertion, Comparison, Source
from contract.checks import ApiSpec
from contract.result import Outcome
from runners.api import ApiRunner
from runners.execute import execute
from runners.runner import RunContext
from runners.scripting.harness import Harness, open_harness
from tests.builders.context import a_context
from tests.builders.scripts import runtimes_here
from tests.builders.specs import a_job, an_api_spec, an_assertion, an_http_request
from tests.servers.http_origin import Asked, Origin, Page, http_origin, reply

JSON = reply(b'{"items":[{"name":"tea"}]}', content_type="application/json")


class Bench:
    """A server, and what API checks against it run with."""

    def __init__(self, origin: Origin, ctx: RunContext) -> None:
        self.origin = origin
        self.ctx = ctx

    async def outcome(self, spec: ApiSpec, **context: Any) -> Outcome:
        ctx = msgspec.structs.replace(self.ctx, **context)
        return await execute(a_job(spec, deadline_s=240), ApiRunner(), ctx)

    async def run(self, *, request: dict[str, Any] | None = None, **spec: Any) -> Outcome:
        asked = an_http_request(self.origin.url("/cart"), **(request or {}))
        return await self.outcome(an_api_spec(request=asked, **spec))

    @property
    def asked(self) -> Asked:
        return self.origin.asked[-1]

    @property
    def harness(self) -> Harness:
        return self.ctx.network.scripts()


@contextlib.asynccontextmanager
async def a_bench(page: Page = JSON, **context: Any) -> AsyncIterator[Bench]:
    async with (
        open_harness(runtimes_here()) as harness,
        http_origin(page) as origin,
        a_context(harness=harness) as ctx,
    ):
        assert harness is not None, "no runtime is installed: run `make test`"
        yield Bench(origin, msgspec.structs.replace(ctx, **context))


def messages(result: Outcome) -> list[str]:
    return [line.message for line in result.log]


def said(result: Outcome) -> str:
    assert result.failure is not None
    return result.failure.message


def is_text(target: str) -> Assertion:
    return an_assertion(Source.TEXT_BODY, Comparison.EQUALS, target)
