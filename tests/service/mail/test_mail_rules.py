import pytest

from service.mail.model import Sender
from service.mail.rules import find_address_problem, parse_sender, parse_server


@pytest.mark.parametrize(
    "address", ["ann@example.com", "ann+tag@mail.example", "o'neil@example.com", "ä@bücher.example"]
)
def test_an_address_that_can_be_written_to_has_no_problem(address: str) -> None:
    assert find_address_problem(address) is None


@pytest.mark.parametrize(
    "address",
    [
        *("", "ann", "@example.com", "ann@", "ann@-a.example", "ann@exam ple.com", "a@b@c"),
        *("ann@example..com", ".ann@example.com", "a..b@example.com", "<ann@example.com>"),
        *(
            "ann@example.com\r\nBcc: eve@example.com",
            "ann,eve@example.com",
            "a" * 65 + "@b.example",
        ),
        "ann@" + ".".join(["a" * 60] * 5),
    ],
)
def test_what_is_no_address_is_refused_in_a_sentence(address: str) -> None:
    problem = find_address_problem(address)
    assert problem is not None
    assert problem.endswith("; use one as in ann@example.com")


@pytest.mark.parametrize(
    ("text", "port", "tls", "starttls"),
    [
        ("smtp://mail.example", 25, False, False),
        ("smtp://ann:pw@mail.example", 587, False, True),
        ("smtp://ann:pw@mail.example:2525", 2525, False, True),
        ("smtp://ann:pw@127.0.0.1:2525", 2525, False, False),
        ("smtp://ann:pw@localhost:2525", 2525, False, False),
        ("smtps://ann:pw@mail.example", 465, True, False),
    ],
)
def test_a_password_goes_through_tls_unless_to_the_machine_itself(
    text: str, port: int, *, tls: bool, starttls: bool
) -> None:
    server = parse_server(text)
    assert (server.port, server.is_tls_from_start, server.is_starttls_required) == (
        port,
        tls,
        starttls,
    )
    assert "pw" not in repr(server)


@pytest.mark.parametrize(
    "text",
    [
        *("mail.example:25", "http://a:hunter2@b", "smtp://", "smtp://ann@mail.example"),
        *("smtp://a:hunter2@mail.example:99999", "smtp://a:hunter2@mail.example/x"),
        *("smtp://a:hunter2@mail.example?tls=no", "smtp://[a:hunter2@b"),
    ],
)
def test_what_is_no_server_is_refused_without_its_password(text: str) -> None:
    with pytest.raises(ValueError, match="use smtp://user:password@host:587") as caught:
        parse_server(text)
    assert "hunter2" not in str(caught.value)


def test_a_sender_is_an_address_with_or_without_a_name() -> None:
    assert parse_sender("status@example.com") == Sender("status@example.com")
    assert parse_sender("Picket at Acme <status@example.com>") == Sender(
        "status@example.com", "Picket at Acme"
    )
    with pytest.raises(ValueError, match="is Picket; use an address"):
        parse_sender("Picket")
