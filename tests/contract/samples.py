"""One full value of every message of the contract; the golden files are made from these."""

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from contract.agent_api import (
    ArtifactStored,
    Claim,
    ClaimAnswer,
    ErrorEvent,
    Events,
    Hello,
    HelloAnswer,
    LocationInfo,
    Ping,
    Pings,
    RangeRefusal,
    Refusal,
    Rejected,
    Release,
    Released,
    ReleaseReason,
    Renew,
    RenewAnswer,
    StoredBytes,
    Submission,
    SubmissionAnswer,
)
from contract.assertions import Assertion, AssertionResult, Comparison, Source
from contract.checks import (
    ApiSpec,
    CheckSpec,
    CheckType,
    DnsSpec,
    HeartbeatSpec,
    IcmpSpec,
    Lane,
    TcpSpec,
    UrlSpec,
)
from contract.http_evidence import (
    Certificate,
    Hop,
    HttpEvidence,
    SeenResponse,
    SentRequest,
    TlsFacts,
)
from contract.job import ClientCertificate, Job, Lease, RunSource, Variable
from contract.requests import (
    BasicAuth,
    BodyType,
    DnsProtocol,
    DnsRequest,
    HttpMethod,
    HttpRequest,
    HttpVersion,
    IcmpRequest,
    IpFamily,
    KeyValue,
    RecordType,
    TcpRequest,
)
from contract.result import (
    Artifact,
    DnsEvidence,
    Echo,
    Evidence,
    Failure,
    FailureKind,
    HeartbeatEvidence,
    IcmpEvidence,
    LogLine,
    Outcome,
    Result,
    Status,
    TcpEvidence,
    Timings,
)
from contract.script_evidence import (
    BrowserEvidence,
    MultiStepEvidence,
    PageMetrics,
    PageSeen,
    RequestNode,
    RequestTimings,
    ScriptError,
    StepSeen,
)
from contract.scripted import AgenticSpec, BrowserSpec, Dependency, MultiStepSpec, PlaywrightSpec
from contract.suite_evidence import PlaywrightEvidence, SuiteTest, TestCounts
from contract.wire import encode

GOLDEN = Path(__file__).parent / "golden"
NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

SPECS: dict[CheckType, CheckSpec] = {
    CheckType.URL: UrlSpec(
        request=HttpRequest(
            url="https://shop.example/health",
            skip_ssl=True,
            follow_redirects=False,
            ip_family=IpFamily.IPV6,
            http_version=HttpVersion.HTTP_2,
        ),
        assertions=(
            Assertion(source=Source.STATUS_CODE, comparison=Comparison.EQUALS, target="200"),
        ),
        should_fail=True,
        degraded_after_ms=None,
        failed_after_ms=30_000,
    ),
    CheckType.API: ApiSpec(
        request=HttpRequest(
            url="https://shop.example/orders/{{ORDER}}",
            method=HttpMethod.POST,
            body='{"id": "{{ORDER}}"}',
            body_type=BodyType.JSON,
            headers=(KeyValue(key="x-tenant", value="{{TENANT}}", locked=True),),
            query_parameters=(KeyValue(key="dry", value="1"),),
            basic_auth=BasicAuth(username="probe", password="{{PASSWORD}}"),
        ),
        assertions=(
            Assertion(
                source=Source.JSON_BODY,
                comparison=Comparison.GREATER_THAN,
                property="$.items.length",
                target="0",
            ),
            Assertion(
                source=Source.HEADERS,
                comparison=Comparison.CONTAINS,
                property="content-type",
                target="json",
                regex="^([^;]+)",
            ),
        ),
        group_setup_script="process.env.SHOP = 'corner'",
        setup_script="request.headers['x-run'] = '1'",
        setup_script_path="setup.ts",
        teardown_script="response.body = ''",
        teardown_script_path="teardown.ts",
        group_teardown_script="console.log(response.statusCode)",
        snippets=(Dependency(path="snippets/sign.js", content="exports.sign = (x) => x"),),
        runtime_id="2025.04",
    ),
    CheckType.TCP: TcpSpec(
        request=TcpRequest(hostname="mail.example", port=465, data="EHLO x\r\n", tls=True),
        assertions=(
            Assertion(source=Source.RESPONSE_DATA, comparison=Comparison.CONTAINS, target="220"),
        ),
    ),
    CheckType.DNS: DnsSpec(
        request=DnsRequest(
            query="shop.example",
            record_type=RecordType.MX,
            name_server="10.0.0.53",
            port=5353,
            protocol=DnsProtocol.TCP,
        ),
        assertions=(
            Assertion(source=Source.RESPONSE_CODE, comparison=Comparison.EQUALS, target="NOERROR"),
        ),
    ),
    CheckType.ICMP: IcmpSpec(
        request=IcmpRequest(hostname="gateway.example", ping_count=5),
        assertions=(
            Assertion(
                source=Source.LATENCY,
                comparison=Comparison.LESS_THAN,
                property="avg",
                target="20",
            ),
        ),
        degraded_loss_percent=20,
        failed_loss_percent=40,
    ),
    CheckType.HEARTBEAT: HeartbeatSpec(
        period_s=3600, grace_s=600, ping_token="0d9c7d0e", silent_for_s=12.5
    ),
    CheckType.BROWSER: BrowserSpec(
        script="await page.goto('https://shop.example')",
        script_path="checks/shop.spec.js",
        dependencies=(Dependency(path="checks/login.js", content="export const x = 1"),),
        snippets=(Dependency(path="snippets/basket.js", content="exports.empty = true"),),
        runtime_id="2026.04",
        ssl_check_domain="shop.example",
        playwright_config={"use": {"locale": "de-DE"}},
    ),
    CheckType.MULTI_STEP: MultiStepSpec(
        script="await request.get('https://shop.example')",
        snippets=(Dependency(path="snippets/sign.js", content="exports.sign = (x) => x"),),
        runtime_id="2026.04",
        playwright_config={"use": {"baseURL": "https://shop.example"}},
    ),
    CheckType.PLAYWRIGHT: PlaywrightSpec(
        bundle_sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        browsers=("chromium",),
        engine="node",
        engine_version="24",
        runtime_id="2026.04",
        working_dir="e2e",
        cache_hash="c0ffee",
        playwright_version="1.58.2",
    ),
    CheckType.AGENTIC: AgenticSpec(prompt="Put a lamp into the basket.", skills=("browser",)),
}


def job(kind: CheckType) -> Job:
    """A job of the given type with every field set."""
    return Job(
        job_id="1042",
        fence=3,
        lease_s=60,
        run_id="7b0e",
        check_id="c-1",
        check_name="Shop",
        account_id="c6a6f1ab-52f1-4ff4-8f0a-1f6a7a2bb2a0",
        location="berlin",
        run_source=RunSource.TRIGGER_API,
        attempt=2,
        scheduled_for=NOON,
        lag_s=0.25,
        deadline_s=30,
        spec=SPECS[kind],
        variables=(Variable(key="ORDER", value="17", locked=True, secret=True),),
        client_certificates=(
            ClientCertificate(
                host="*.shop.example", cert="CERT", key="KEY", ca="CA", passphrase="open"
            ),
        ),
        proxy_url="http://user:pass@proxy.example:3128",
    )


_TLS = TlsFacts(
    version="TLSv1.3",
    cipher="TLS_AES_256_GCM_SHA384",
    verified=False,
    verify_error="the certificate ran out on 2026-11-20",
    days_to_expiry=-1,
    chain=(
        Certificate(
            subject="CN=shop.example",
            issuer="CN=Example CA",
            serial="0a1b",
            not_before=NOON,
            not_after=NOON,
            names=("shop.example",),
            fingerprint_sha256="ab" * 32,
        ),
    ),
)

REQUEST_NODE = RequestNode(
    method="POST",
    url="https://api.example.com/login",
    started_after_ms=410.5,
    status_code=201,
    status_text="Created",
    remote_address="192.0.2.7",
    body_bytes=512,
    timings=RequestTimings(dns=1.5, tcp=2, tls=9.25, first_byte=40, download=1, total=55),
    error="socket hang up",
)
STEP = StepSeen(
    title='Click locator("#buy")',
    category="pw:api",
    where="script.js:8:12",
    started_after_ms=500,
    took_ms=30.5,
    error="Timeout 30ms exceeded.",
)
SCRIPT_ERROR = ScriptError(
    message="Error: expect(received).toBe(expected)", where="script.js:9:3", is_soft=True
)
PAGE = PageSeen(
    index=0,
    url="https://shop.example.com/",
    metrics=PageMetrics(
        ttfb_ms=104,
        fcp_ms=136,
        lcp_ms=1236,
        cls=0.15625,
        tbt_ms=300,
        content_loaded_ms=140,
        load_ms=1240,
    ),
    console_errors=5,
    network_errors=3,
    document_errors=2,
)

EVIDENCE: dict[str, Evidence] = {
    "browser": BrowserEvidence(
        runtime_id="2026.04",
        playwright="1.65.1",
        requests=(REQUEST_NODE,),
        steps=(STEP,),
        steps_left_off=1,
        errors=(SCRIPT_ERROR,),
        user_script_errors=1,
        pages=(PAGE,),
    ),
    "multiStep": MultiStepEvidence(
        runtime_id="2026.04",
        playwright="1.65.1",
        requests=(REQUEST_NODE,),
        steps=(STEP,),
        steps_left_off=1,
        errors=(SCRIPT_ERROR,),
        user_script_errors=1,
    ),
    "http": HttpEvidence(
        request=SentRequest(
            method="POST", url="https://shop.example", headers={"accept": "*/*"}, body="{}"
        ),
        response=SeenResponse(
            status_code=200,
            status_text="OK",
            http_version="2",
            headers={"content-type": "image/png"},
            body="iVBOR",
            body_encoding="base64",
            body_bytes=70_000,
            truncated=True,
            note="The body is of type image/png and larger than 50 KB; it is not stored.",
        ),
        hops=(
            Hop(
                url="http://shop.example",
                status_code=301,
                location="https://shop.example",
                remote_address="10.0.0.7",
                total_ms=4.5,
            ),
        ),
        tls=_TLS,
        remote_address="10.0.0.7",
    ),
    "tcp": TcpEvidence(
        hostname="mail.example",
        port=465,
        remote_address="10.0.0.8",
        response="220 ready",
        truncated=True,
        tls=_TLS,
    ),
    "dns": DnsEvidence(
        query="shop.example",
        record_type="MX",
        name_server="10.0.0.53:5353",
        protocol="TCP",
        response_code="NOERROR",
        answer={"Status": 0, "Answer": [{"name": "shop.example.", "data": "10 mx."}]},
        text="shop.example. 60 IN MX 10 mx.",
    ),
    "icmp": IcmpEvidence(
        hostname="gateway.example",
        resolved_ip="10.0.0.1",
        ip_family="IPv4",
        packets_sent=2,
        packets_received=1,
        packet_size=64,
        packet_loss=50,
        dns_ms=1.5,
        latency={"avg": 0.5, "min": 0.5, "max": 0.5, "stdDev": 0},
        echoes=(
            Echo(sequence=1, success=True, rtt_ms=0.5, ttl=64),
            Echo(sequence=2, success=False, error="host-unreachable"),
        ),
    ),
    "playwright": PlaywrightEvidence(
        playwright_version="1.58.2",
        node_version="24.19.0",
        counts=TestCounts(planned=6, passed=1, failed=1, flaky=1, skipped=1, did_not_run=2),
        tests=(
            SuiteTest(
                project="chromium",
                title="basket keeps a lamp",
                file="tests/basket.spec.ts",
                line=7,
                status="failed",
                outcome="unexpected",
                took_ms=1250.5,
                retries=2,
                errors=("Error: expect(received).toBe(expected)",),
            ),
        ),
        errors=("playwright.config.ts:3: the web server did not start",),
        truncated=True,
    ),
    "heartbeat": HeartbeatEvidence(silent_for_s=12.5, period_s=3600, grace_s=600),
}


def result(evidence: str) -> Result:
    """A result with the given kind of evidence and every field set."""
    return Result(
        job_id="1042",
        fence=3,
        run_id="7b0e",
        check_id="c-1",
        check_type=CheckType.API,
        agent_id="a-1",
        attempt=2,
        started_at=NOON,
        started_after_s=0.002,
        took_s=0.25,
        outcome=Outcome(
            status=Status.FAILED,
            response_time_ms=250,
            over_max_response_time=True,
            timings=Timings(
                wait=0.1, dns=1, tcp=2, tls=3, first_byte=240, download=4, data=5, total=250
            ),
            failure=Failure(
                kind=FailureKind.ASSERTION,
                message="$.items.length is 0, which is not greater than 0.",
                detail={"code": "ECONNREFUSED", "port": 80, "address": None},
            ),
            degraded_because="It took 250 ms; above 200 ms it is degraded.",
            assertions=(
                AssertionResult(
                    source=Source.JSON_BODY,
                    comparison=Comparison.GREATER_THAN,
                    property="$.items.length",
                    target="0",
                    regex="(.*)",
                    order=0,
                    actual="0",
                    error="$.items.length is 0, which is not greater than 0.",
                ),
            ),
            evidence=EVIDENCE[evidence],
            artifacts=(
                Artifact(
                    name="trace.zip",
                    kind="trace",
                    size_bytes=12,
                    sha256="ab" * 32,
                    content_type="application/zip",
                ),
            ),
            log=(
                LogLine(after_ms=1, level="INFO", message="sent"),
                LogLine(after_ms=2, level="WARN", message="odd", phase="teardown"),
            ),
        ),
    )


_LEASE = Lease(job_id="1042", fence=3)

MESSAGES: dict[str, msgspec.Struct] = {
    **{f"job_{kind}": job(kind) for kind in CheckType},
    **{f"result_{kind}": result(kind) for kind in EVIDENCE},
    "hello": Hello(
        agent_id="a-1",
        version="0.1.0",
        platform="linux-x86_64",
        runtimes={"python": "3.11.7"},
        check_types=(CheckType.URL, CheckType.DNS),
        slots={Lane.UPTIME: 256, Lane.MAIN: 1},
    ),
    "hello_answer": HelloAnswer(
        location=LocationInfo(id="l-1", slug_name="berlin", proxy_url="http://proxy.example:3128"),
        lease_s={Lane.UPTIME: 60, Lane.MAIN: 300},
        min_agent_version="0.1.0",
    ),
    "claim": Claim(
        claim_id="k-1", slots={Lane.UPTIME: 32}, check_types=(CheckType.URL,), wait_s=25
    ),
    "claim_answer": ClaimAnswer(
        jobs=(msgspec.Raw(encode(_LEASE)),), next_poll_s=0.5, say_hello=True
    ),
    "renew": Renew(leases=(_LEASE,)),
    "renew_answer": RenewAnswer(lost=(_LEASE,), cancel=(_LEASE,)),
    "release": Release(
        jobs=(
            Released(
                job_id="1042", fence=3, reason=ReleaseReason.DRAINING, message="The agent stops."
            ),
        )
    ),
    "submission": Submission(results=(result("heartbeat"),)),
    "submission_answer": SubmissionAnswer(
        accepted=(_LEASE,),
        duplicates=(_LEASE,),
        rejected=(Rejected(job_id="9", fence=1, reason="There is no job 9."),),
    ),
    "pings": Pings(
        pings=(
            Ping(
                ping_id="p-1",
                token="0d9c7d0e",
                received_at=NOON,
                age_s=1.5,
                method="POST",
                source="https://cron.example",
                user_agent="curl/8",
            ),
        )
    ),
    "events": Events(
        events=(
            ErrorEvent(
                message="KeyError",
                stack_trace="agent/dispatcher.py:10 run",
                agent_version="0.1.0",
                platform="linux-x86_64",
                runtime_version="python 3.11.7",
            ),
        )
    ),
    "artifact_stored": ArtifactStored(offset=5_242_880, complete=False),
    "refusal": Refusal(status_code=401, error="Unauthorized", message="Bad Token"),
    "range_refusal": RangeRefusal(
        status_code=416,
        error="Requested Range Not Satisfiable",
        message="The part begins at 0, but 1000 bytes are stored; go on there.",
        attributes=StoredBytes(offset=1000),
    ),
}


def written(message: msgspec.Struct) -> str:
    """The message as its golden file holds it."""
    return msgspec.json.format(encode(message), indent=2).decode() + "\n"


if __name__ == "__main__":
    for name, message in MESSAGES.items():
        (GOLDEN / f"{name}.json").write_text(written(message))
