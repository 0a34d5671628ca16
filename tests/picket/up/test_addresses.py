"""Addresses that jobs were given stay as they are, or their change is said."""

import socket

from picket.up.addresses import Addresses, Ports, describe_moves

OLD = Addresses(service_url="http://127.0.0.1:8080", ping_url="http://127.0.0.1:9001")


def test_the_service_gets_the_first_wanted_port_that_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        free = Ports.free(wanted=[port]).service
        assert free != port
        assert Ports.free(wanted=[port, free]).service == free


def test_the_ping_port_of_the_last_start_is_kept_unless_it_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = int(taken.getsockname()[1])
        free = Ports.free(wanted=(), ping=port).ping
        assert free != port
        kept = Ports.free(wanted=(), ping=free)
        assert kept.ping == free
        assert kept.addresses.ping_url == f"http://127.0.0.1:{free}"
        assert Ports.free(wanted=[free], ping=free).ping != free


def test_the_first_start_says_only_that_the_usual_port_was_taken() -> None:
    now = Addresses(service_url="http://127.0.0.1:27193", ping_url="http://127.0.0.1:9001")
    assert describe_moves(Addresses(), OLD, requested_port=None) == ()
    assert describe_moves(Addresses(), now, requested_port=27193) == ()
    assert describe_moves(Addresses(), now, requested_port=None) == (
        "Another program uses port 8080; this address is kept from now on.",
    )


def test_an_address_that_stays_is_not_mentioned() -> None:
    assert describe_moves(OLD, OLD, requested_port=None) == ()
    before = Addresses(service_url=OLD.service_url)  # of a release that kept no ping port
    assert describe_moves(before, OLD, requested_port=None) == ()


def test_a_moved_address_is_said_with_the_old_one_and_what_to_do() -> None:
    now = Addresses(service_url="http://127.0.0.1:27193", ping_url="http://127.0.0.1:9002")
    service, ping = describe_moves(OLD, now, requested_port=None)
    assert service == (
        "The API moved from http://127.0.0.1:8080 to http://127.0.0.1:27193: another program uses "
        "port 8080. Ping, trigger and badge URLs with the old address no longer work; update the "
        "jobs that call them. The new address is kept from now on."
    )
    assert ping == (
        "The agent's ping port moved from http://127.0.0.1:9001 to http://127.0.0.1:9002: another "
        "program uses port 9001. Ping URLs with the old address no longer work; update the jobs "
        "that call them. The new address is kept from now on."
    )


def test_a_port_of_the_command_line_moves_the_address_as_well() -> None:
    now = Addresses(service_url="http://127.0.0.1:9000", ping_url=OLD.ping_url)
    (move,) = describe_moves(OLD, now, requested_port=9000)
    assert move.startswith("The API moved from http://127.0.0.1:8080 to http://127.0.0.1:9000. ")
