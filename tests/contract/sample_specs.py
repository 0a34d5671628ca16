"""One full spec of every type of check."""

from contract.assertions import Assertion, Comparison, Source
from contract.checks import (
    AgenticSpec,
    ApiSpec,
    BrowserSpec,
    CheckSpec,
    CheckType,
    Dependency,
    DnsRequest,
    DnsSpec,
    HeartbeatSpec,
    IcmpRequest,
    IcmpSpec,
    MultiStepSpec,
    PlaywrightSpec,
    Snapshot,
    TcpRequest,
    TcpSpec,
    UrlSpec,
)
from contract.requests import (
    BasicAuth,
    BodyType,
    DnsProtocol,
    HttpMethod,
    HttpRequest,
    HttpVersion,
    IpFamily,
    KeyValue,
    RecordType,
)

SPECS: dict[CheckType, CheckSpec] = {
    CheckType.URL: UrlSpec(
        request=HttpRequest(
            url="https://shop.example/health",
            skip_ssl=True,
            follow_redirects=False,
            ip_family=IpFamily.IPV6,
            http_version=HttpVersion.HTTP_2,
            accepted_status_codes=("200-299", "429"),
            connect_to="[2001:db8::7]:8443",
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
        snapshots=(
            Snapshot(
                path="checks/shop.spec.js-snapshots/front-linux.png",
                sha256="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
        ),
        update_snapshots=True,
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
