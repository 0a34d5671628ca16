"""One full value of every kind of evidence."""

from datetime import UTC, datetime

from contract.evidence import (
    BrowserEvidence,
    Certificate,
    Hop,
    HttpEvidence,
    MultiStepEvidence,
    PageMetrics,
    PageSeen,
    PlaywrightEvidence,
    RequestNode,
    RequestTimings,
    ScriptError,
    ScriptTest,
    SeenResponse,
    SentRequest,
    SnapshotSeen,
    StepSeen,
    SuiteTest,
    TestCounts,
    TlsFacts,
)
from contract.result import (
    DnsEvidence,
    Echo,
    Evidence,
    HeartbeatEvidence,
    IcmpEvidence,
    TcpEvidence,
)

NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

_TLS = TlsFacts(
    version="TLSv1.3",
    cipher="TLS_AES_256_GCM_SHA384",
    verified=False,
    verify_error="the certificate ran out on 2026-11-20",
    days_to_expiry=-1,
    expires_first="CN=shop.example",
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
    message="Error: expect(received).toBe(expected)",
    where="script.js:9:3",
    is_soft=True,
    test="buys tea",
    frame="> 9 |   expect(1).toBe(2);\n    |   ^",
)
SCRIPT_TEST = ScriptTest(title="buys tea", status="failed", outcome="unexpected", took_ms=812.5)
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
        tests=(SCRIPT_TEST,),
        errors=(SCRIPT_ERROR,),
        user_script_errors=1,
        pages=(PAGE,),
        ssl_check_domain="shop.example",
        tls=_TLS,
        snapshots=(
            SnapshotSeen(
                path="checks/shop.spec.js-snapshots/front-linux.png", artifact="snapshot-1.png"
            ),
        ),
    ),
    "multiStep": MultiStepEvidence(
        runtime_id="2026.04",
        playwright="1.65.1",
        requests=(REQUEST_NODE,),
        steps=(STEP,),
        steps_left_off=1,
        tests=(SCRIPT_TEST,),
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
        reading_ended="limit",
        tls=_TLS,
    ),
    "dns": DnsEvidence(
        query="shop.example",
        record_type="MX",
        name_server="10.0.0.53:5353",
        protocol="TCP",
        queries=2,
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
