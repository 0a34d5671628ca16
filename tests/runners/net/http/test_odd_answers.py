"""Odd answers, made by chance: whatever a server sends is a verdict on it, never a fault of ours.

`ODD_ANSWERS=100000 pytest -n 0 tests/runners/net/http/test_odd_answers.py` plays as many, from
`ODD_ANSWERS_FROM` on.
"""

import asyncio
import os
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from contract.assertions import Comparison, Source
from contract.requests import HttpVersion
from contract.result import Outcome, Status
from redaction.result import Scrubber
from runners.api import ApiRunner
from runners.judging.judge import judge
from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from tests.builders.context import a_context
from tests.builders.observations import a_result
from tests.builders.specs import a_job, an_api_spec, an_assertion, an_http_request
from tests.servers.odd_http import odd_http

COUNT = int(os.environ.get("ODD_ANSWERS", "600"))
FIRST = int(os.environ.get("ODD_ANSWERS_FROM", "0"))
AT_ONCE = 24
LIMIT_S = 1.0
"""Short, because some of the servers hang."""
ASSERTIONS = (
    an_assertion(Source.TEXT_BODY, Comparison.NOT_CONTAINS, "error"),
    an_assertion(Source.JSON_BODY, Comparison.NOT_NULL, property="$"),
    an_assertion(Source.HEADERS, Comparison.NOT_EMPTY, property="x-a"),
)


async def outcome(ctx: RunContext, url: str, version: HttpVersion, number: int) -> Outcome:
    """What the agent would send of a check that gets this answer."""
    assertions = ASSERTIONS if number % 2 else ()
    request = an_http_request(f"{url}{number}", http_version=version, follow_redirects=True)
    spec = an_api_spec(request=request, assertions=assertions)
    result = a_result(judge(spec, await ApiRunner().observe(spec, ctx)))
    clean = Scrubber().clean(result, job=a_job(spec)).result
    msgspec.json.encode(clean)
    return clean.outcome


async def play(
    ctx: RunContext, url: str, version: HttpVersion, numbers: Iterator[int]
) -> tuple[Counter[Status], list[str]]:
    """The verdicts on these answers, and which of them ended as a fault of ours."""
    verdicts: Counter[Status] = Counter()
    ours: list[str] = []
    for number in numbers:
        try:
            result = await outcome(ctx, url, version, number)
        except Exception as problem:  # noqa: BLE001 - any exception is what is looked for
            ours.append(f"{number}: {problem!r}")
        else:
            verdicts[result.status] += 1
            said = "" if result.failure is None else result.failure.message
            if said and not said.isprintable():
                ours.append(f"{number}: not printable: {said!r}")
    return verdicts, ours


@pytest.mark.parametrize(
    ("version", "spoken"), [(1, HttpVersion.AUTO), (2, HttpVersion.HTTP_2)], ids=["1", "2"]
)
@pytest.mark.timeout(0)
async def test_no_answer_is_a_fault_of_ours(version: int, spoken: HttpVersion) -> None:
    numbers = iter(range(FIRST, FIRST + COUNT // 2))
    rules = EgressRules.parse(["127.0.0.0/8"], [])
    async with odd_http(version) as url, a_context(timeout_s=LIMIT_S, egress=rules) as ctx:
        played = await asyncio.gather(*[play(ctx, url, spoken, numbers) for _ in range(AT_ONCE)])
    verdicts = sum((each for each, _ in played), Counter[Status]())
    ours = [one for _, each in played for one in each]
    assert ours == []
    assert sum(verdicts.values()) == COUNT // 2
    assert verdicts[Status.PASSED] + verdicts[Status.FAILED] > 0
