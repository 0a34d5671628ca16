"""What both sides probe: nginx plain, with TLS and with a known delay, a TCP port, knot DNS."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
from processes import free_port, running, wait_for_port

DELAY_MS = 50
NAME = "bench.picket.test"
_ECHO_MODULE = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
_NGINX = """
load_module {module};
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log warn;
worker_rlimit_nofile 65536;
events {{ worker_connections 8192; }}
http {{
    access_log off; keepalive_timeout 0; reset_timedout_connection on;
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    ssl_certificate {folder}/server.pem; ssl_certificate_key {folder}/server.key;
    ssl_session_cache off; ssl_session_tickets off; ssl_protocols TLSv1.2 TLSv1.3;
    server {{
        listen 127.0.0.1:{http} backlog=8192;
        listen 127.0.0.1:{https} ssl backlog=8192;
        location / {{ return 200 "welcome\\n"; }}
        location /slow {{ echo_sleep {delay_s}; echo welcome; }}
    }}
}}
"""
_KNOT = """
server:
    rundir: "{folder}"
    listen: 127.0.0.1@{dns}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{folder}"
zone:
  - domain: picket.test
    file: "{folder}/picket.test.zone"
    semantic-checks: off
"""
_ZONE = """
$ORIGIN picket.test.
$TTL 60
@ SOA ns hostmaster 1 3600 600 86400 60
@ NS ns
ns A 127.0.0.1
bench A 192.0.2.1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """Where the targets are."""

    http_port: int
    https_port: int
    tcp_port: int
    dns_port: int
    ca_file: Path


@contextmanager
def open_targets(folder: Path) -> Iterator[Targets]:
    """All targets, for as long as the block lasts."""
    targets = Targets(
        http_port=free_port(),
        https_port=free_port(),
        tcp_port=free_port(),
        dns_port=free_port(),
        ca_file=folder / "ca.pem",
    )
    _write_certificates(folder)
    _write_configurations(folder, targets)
    here = Path(__file__).parent
    with ExitStack() as stack:
        for name, port, command in (
            ("nginx", targets.http_port, ["nginx", "-c", folder / "nginx.conf"]),
            ("knotd", targets.dns_port, ["knotd", "-c", folder / "knot.conf"]),
            ("tcp", targets.tcp_port, [sys.executable, here / "accept.py", str(targets.tcp_port)]),
        ):
            log = folder / f"{name}.out"
            process = stack.enter_context(running(command, log=log))
            wait_for_port(port, process, log=log)
        yield targets


def _write_configurations(folder: Path, targets: Targets) -> None:
    nginx = _NGINX.format(
        module=_ECHO_MODULE,
        folder=folder,
        http=targets.http_port,
        https=targets.https_port,
        delay_s=DELAY_MS / 1000,
    )
    (folder / "nginx.conf").write_text(nginx)
    (folder / "knot.conf").write_text(_KNOT.format(folder=folder, dns=targets.dns_port))
    (folder / "picket.test.zone").write_text(_ZONE)


def _write_certificates(folder: Path) -> None:
    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    server.private_key_pem.write_to_path(folder / "server.key")
    for part in server.cert_chain_pems:
        part.write_to_path(folder / "server.pem", append=True)
