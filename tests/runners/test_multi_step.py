"""Multi-step checks: each request of the script is a node, and no browser is started."""

from typing import Any

import pytest

from contract.checks import MultiStepSpec
from contract.evidence import MultiStepEvidence
from contract.job import Variable
from contract.result import FailureKind, Outcome, Status
from runners.judging.judge import judge
from runners.multi_step import MultiStepRunner
from runners.net.egress.rules import EgressRules
from runners.runner import RunContext
from tests.builders.scripts import a_scripted_context
from tests.servers.recording_proxy import RecordingProxy
from tests.servers.tcp import refusing_port, swallowing_port

ENOUGH_S = (6.0, 20.0, 60.0)
"""Time limits to try in turn, where a script is to come to some step before time is up."""


async def looked(body: str, **ctx: Any) -> Outcome:
    async with a_scripted_context(**ctx) as given:
        return await watched(body, given)


async def watched(body: str, given: RunContext) -> Outcome:
    script = (
        "import { test, expect } from '@playwright/test'\n"
        f"test('steps', async ({{ request }}) => {{\n{body}\n}})\n"
    )
    spec = MultiStepSpec(script=script, playwright_config={"timeout": 0})
    return judge(spec, await MultiStepRunner().observe(spec, given))


def evidence(outcome: Outcome) -> MultiStepEvidence:
    assert isinstance(outcome.evidence, MultiStepEvidence)
    return outcome.evidence


async def test_each_request_is_a_node_with_its_answer_and_phases(site: str) -> None:
    outcome = await looked(
        f"const made = await request.post('{site}/orders', {{ data: {{ tea: 1 }} }})\n"
        "expect(made.status()).toBe(201)\n"
        "await Promise.all([1, 2].map((n) =>"
        f" request.get('{site}/away', {{ params: {{ n }} }})))"
    )
    assert outcome.failure is None
    made, *away = evidence(outcome).requests
    assert (made.method, made.url, made.status_code) == ("POST", f"{site}/orders", 201)
    assert (made.status_text, made.remote_address) == ("Created", "127.0.0.1")
    assert made.body_bytes == len('{"asked": {"tea": 1}}')
    phases = made.timings
    assert phases.tcp is not None
    assert phases.first_byte is not None
    assert phases.total is not None
    assert phases.tcp + phases.first_byte <= phases.total + 1
    assert [(node.url, node.status_code) for node in away] == [(f"{site}/plain", 200)] * 2


async def test_the_checks_own_variables_win_over_those_that_tell_of_its_run() -> None:
    names = ("CHECK_NAME", "RUNTIME_VERSION", "PATH", "HOME")
    outcome = await looked(
        f"for (const name of {list(names)}) console.log(name, process.env[name] === 'mine')",
        environment={"CHECK_NAME": "Cart"},
        variables=tuple(Variable(key=name, value="mine") for name in names),
    )
    assert [line.message for line in outcome.log] == [
        "CHECK_NAME true",
        "RUNTIME_VERSION true",
        "PATH false",
        "HOME false",
    ]


async def test_the_locations_secrets_are_read_and_the_checks_own_variables_win() -> None:
    body = (
        "expect(process.env.SERVICE_SECRET_DB).toBe('of-the-location')\n"
        "expect(process.env.SERVICE_SECRET_OWN).toBe('of-the-check')\n"
        "expect(process.argv.join() + process.execArgv.join()).not.toContain('of-the-')"
    )
    names = ("SERVICE_SECRET_DB", "SERVICE_SECRET_OWN")
    async with a_scripted_context(
        location_secrets=dict.fromkeys(names, "of-the-location"),
        variables=(Variable(key="SERVICE_SECRET_OWN", value="of-the-check"),),
    ) as given:
        outcome = await watched(body, given)
        assert outcome.failure is None
        assert given.workspace.secrets == ()


async def test_a_request_that_gets_no_answer_says_why() -> None:
    with refusing_port() as port:
        outcome = await looked(f"await request.get('http://127.0.0.1:{port}/')")
    assert outcome.status is Status.FAILED
    (node,) = evidence(outcome).requests
    assert node.status_code is None
    assert "ECONNREFUSED" in (node.error or "")


async def test_a_script_that_starts_a_browser_is_told_what_to_do_instead() -> None:
    outcome = await looked("const { chromium } = require('playwright')\nawait chromium.launch()")
    assert outcome.failure is not None
    assert outcome.failure.kind is FailureKind.SCRIPT
    assert "A multi-step check starts no browser: use the `request`" in outcome.failure.message


@pytest.mark.parametrize("rules", [EgressRules(), EgressRules.parse(["127.0.0.1"], [])])
async def test_requests_do_not_take_the_locations_proxy(site: str, rules: EgressRules) -> None:
    async with RecordingProxy() as proxy:
        outcome = await looked(
            f"await request.get('{site}/plain')", proxy_url=proxy.url, egress=rules
        )
    assert outcome.failure is None
    assert proxy.seen == []


async def test_a_time_out_names_the_request_that_the_run_hung_in() -> None:
    with swallowing_port() as port:
        hangs = f"await request.get('http://127.0.0.1:{port}/', {{ timeout: 0 }})"
        for timeout_s in ENOUGH_S:
            outcome = await looked(hangs, timeout_s=timeout_s)
            if str(port) in str(outcome.failure):
                break
    assert outcome.status is Status.TIMED_OUT
    assert outcome.failure is not None
    assert outcome.failure.detail["where"] == "script.js:3:15"


async def test_what_a_script_assigns_to_a_secrets_name_is_told_to_the_agent() -> None:
    body = (
        "process.env.SERVICE_SECRET_LOGIN = 'fresh-' + 't0ken/ü'\n"
        "process.env['SERVICE_SECRET_LONG'] = 'k'.repeat(120000) + 'end'\n"
        "process.env.SERVICE_SECRET_EMPTY = ''\n"
        "process.env.OTHER = 'no secret'\n"
        "expect(process.env.SERVICE_SECRET_LOGIN).toBe('fresh-t0ken/ü')"
    )
    async with a_scripted_context() as given:
        outcome = await watched(body, given)
        assert outcome.failure is None
        assert set(given.workspace.secrets) == {"fresh-t0ken/ü", "k" * 120_000 + "end"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "process.env.SERVICE_SECRET_LONG = 'k'.repeat(131073)",
            "SERVICE_SECRET_LONG has 131073 bytes; a secret may have 131072",
        ),
        (
            "for (let n = 0; n < 21; n++) process.env[`SERVICE_SECRET_${n}`] = `value ${n}`",
            "SERVICE_SECRET_20 is one secret too many; a script may set at most 20",
        ),
    ],
)
async def test_what_could_not_be_scrubbed_is_refused_with_a_sentence(line: str, says: str) -> None:
    async with a_scripted_context() as given:
        outcome = await watched(line, given)
    assert says in evidence(outcome).errors[0].message
    assert "kkkk" not in evidence(outcome).errors[0].message.partition("\n")[0]
