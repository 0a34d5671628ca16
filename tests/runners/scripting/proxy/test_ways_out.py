"""What a browser asks for reaches its target as it was written."""

import pytest

from runners.scripting.proxy.egress_routes import ProxyRequest


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("http://shop.test", "/"),
        ("http://shop.test?x=1", "/?x=1"),
        ("http://shop.test/a?", "/a?"),
        ("http://shop.test:81/a;b//c?d=http://e/#f", "/a;b//c?d=http://e/#f"),
        ("HTTP://me:secret@[::1]:81//a", "//a"),
    ],
)
def test_a_target_is_asked_for_its_path_as_the_browser_wrote_it(target: str, path: str) -> None:
    assert ProxyRequest(host="shop.test", port=80, method="GET", target=target).path == path
