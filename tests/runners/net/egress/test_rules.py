import pytest
from hypothesis import given
from hypothesis import strategies as st

from runners.net.egress.addresses import read_host
from runners.net.egress.rules import EgressRuleError, EgressRules, normalize_name


def rules(allow: str = "", deny: str = "") -> EgressRules:
    return EgressRules.parse(allow.split(","), deny.split(","))


METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
]
HIDING_PLACES = {
    "IPv4-mapped": "::ffff:{hex}",
    "IPv4-translated": "::ffff:0:{hex}",
    "IPv4-compatible": "::{hex}",
    "NAT64": "64:ff9b::{hex}",
    "local NAT64": "64:ff9b:1::{hex}",
    "6to4": "2002:{hex}::1",
    "Teredo server": "2001:0:{hex}::1",
}


def in_hex(address: str) -> str:
    one, two, three, four = map(int, address.split("."))
    return f"{one << 8 | two:x}:{three << 8 | four:x}"


@pytest.mark.parametrize("address", METADATA)
def test_metadata_addresses_are_refused_without_any_setting(address: str) -> None:
    refusal = EgressRules().refuses("innocent.test", address)
    assert refusal is not None
    assert "innocent.test" in refusal
    assert address in refusal


def test_a_refusal_that_recommends_a_first_allow_rule_says_that_it_shuts_the_rest() -> None:
    refusal = EgressRules().refuses_address("169.254.1.2")
    assert refusal is not None
    assert refusal.endswith(
        "; to allow it, name the address in EGRESS_ALLOW, which then lists all that checks may"
        " reach; a rule * beside it keeps the rest."
    )
    advised = rules(allow="169.254.1.2,*")
    assert advised.refuses_address("169.254.1.2") is None
    assert advised.refuses("target.test", "8.8.8.8") is None
    assert advised.refuses_address("169.254.1.3") is not None


def test_where_allow_rules_stand_already_nothing_is_said_of_the_rest() -> None:
    refusal = rules(allow="10.0.0.0/8").refuses_address("169.254.1.2")
    assert refusal is not None
    assert refusal.endswith("; to allow it, name the address in EGRESS_ALLOW.")


@pytest.mark.parametrize("address", ["127.0.0.1", "10.1.2.3", "8.8.8.8", "::1", "2001:db8::1"])
def test_everything_else_may_be_reached_without_any_setting(address: str) -> None:
    assert EgressRules().refuses("target.test", address) is None
    assert EgressRules().refuses_name("target.test") is None
    assert EgressRules().refuses_name(address) is None


@pytest.mark.parametrize("place", HIDING_PLACES)
def test_an_ipv4_address_inside_of_an_ipv6_address_is_refused_too(place: str) -> None:
    hidden = HIDING_PLACES[place].format(hex=in_hex("169.254.169.254"))
    assert EgressRules().refuses_address(hidden) is not None
    harmless = HIDING_PLACES[place].format(hex=in_hex("10.1.2.3"))
    assert EgressRules().refuses_address(harmless) is None
    assert rules(deny="10.0.0.0/8").refuses_address(harmless) is not None


@pytest.mark.parametrize(
    "hidden",
    ["64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0"],
)
def test_local_nat64_is_read_with_every_length_of_its_prefix(hidden: str) -> None:
    assert EgressRules().refuses_address(hidden) is not None


def test_the_bare_prefix_of_local_nat64_is_an_address_like_any_other() -> None:
    assert EgressRules().refuses_address("64:ff9b:1::") is None


def test_the_client_of_a_teredo_address_is_refused() -> None:
    flipped = in_hex("86.1.86.1")  # 169.254.169.254 with all bits flipped
    assert EgressRules().refuses_address(f"2001:0:102:304:0:0:{flipped}") is not None


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_the_unspecified_address_counts_as_loopback(address: str) -> None:
    assert rules(deny="127.0.0.0/8,::1").refuses_address(address) is not None
    assert EgressRules().refuses_address(address) is None


def test_a_nat64_address_is_allowed_as_the_ipv4_address_that_it_stands_for() -> None:
    egress = rules(allow="10.0.0.0/8")
    assert egress.refuses_address("64:ff9b::a01:203") is None
    assert egress.refuses_address("64:ff9b::b01:203") is not None
    assert rules(allow="::/0").refuses_address("64:ff9b::a01:203") is not None


def test_a_mapped_rule_is_a_rule_for_ipv4() -> None:
    assert rules(deny="::ffff:10.0.0.0/104").refuses_address("10.9.9.9") is not None


def test_deny_wins_over_allow_however_precise() -> None:
    egress = rules(allow="10.0.0.5", deny="10.0.0.0/8")
    assert egress.refuses_address("10.0.0.5") == (
        "10.0.0.5 is refused by the EGRESS_DENY rule 10.0.0.0/8."
    )


def test_with_allow_rules_the_rest_is_refused() -> None:
    egress = rules(allow="10.0.0.0/8,2001:db8::/32")
    assert egress.refuses("a.test", "10.1.1.1") is None
    assert egress.refuses("a.test", "2001:db8::5") is None
    assert egress.refuses("a.test", "192.168.0.1") == (
        "a.test (192.168.0.1) matches no rule of EGRESS_ALLOW."
    )


def test_an_allowed_name_allows_its_addresses() -> None:
    egress = rules(allow="db.internal,*.shop.test")
    assert egress.refuses_name("DB.internal.") is None
    assert egress.refuses("db.internal", "203.0.113.9") is None
    assert egress.refuses("eu.api.shop.test", "203.0.113.9") is None
    assert egress.refuses_name("shop.test") == "shop.test matches no rule of EGRESS_ALLOW."
    assert egress.refuses("evil.test", "203.0.113.9") is not None
    assert egress.refuses_address("203.0.113.9") is not None


def test_a_name_waits_for_its_address_when_networks_are_allowed() -> None:
    egress = rules(allow="db.internal,10.0.0.0/8")
    assert egress.refuses_name("other.test") is None
    assert egress.refuses("other.test", "10.0.0.1") is None
    assert egress.refuses("other.test", "11.0.0.1") is not None


def test_an_allowed_name_does_not_open_metadata() -> None:
    assert rules(allow="*.test").refuses("x.test", "169.254.169.254") is not None


def test_a_denied_name_is_refused_before_and_after_it_resolves() -> None:
    egress = rules(deny="*.prod.test,admin.test")
    assert egress.refuses_name("a.prod.test") == (
        "a.prod.test is refused by the EGRESS_DENY rule *.prod.test."
    )
    assert egress.refuses_name("prod.test") is None
    assert egress.refuses("admin.test", "10.0.0.1") is not None
    assert egress.refuses("other.test", "10.0.0.1") is None


def test_names_compare_by_idna() -> None:
    assert rules(deny="bücher.test").refuses_name("xn--bcher-kva.test") is not None
    assert rules(deny="xn--bcher-kva.test").refuses_name("BÜCHER.test") is not None
    assert normalize_name("\u200d.test") == "\u200d.test"


def test_a_star_speaks_of_everything() -> None:
    assert rules(deny="*").refuses_address("10.0.0.1") is not None
    assert rules(deny="*").refuses_name("a.test") is not None
    assert rules(allow="*").refuses_address("10.0.0.1") is None
    assert rules(allow="*").refuses("a.test", "10.0.0.1") is None
    assert rules(allow="*").refuses("a.test", "169.254.169.254") is not None


def test_metadata_opens_only_for_a_rule_inside_of_its_network() -> None:
    assert rules(allow="0.0.0.0/0,::/0").refuses_address("169.254.169.254") is not None
    opened = rules(allow="0.0.0.0/0,169.254.169.254")
    assert opened.refuses_address("169.254.169.254") is None
    assert opened.refuses_address("169.254.170.2") is not None
    assert opened.refuses_address("8.8.8.8") is None


@pytest.mark.parametrize(
    "host",
    ["0xa9fea9fe", "2852039166", "0251.0376.0251.0376", "169.254.43518", "169.254.169.254."],
)
def test_odd_spellings_of_an_address_are_read_like_the_kernel_reads_them(host: str) -> None:
    assert EgressRules().refuses_name(host) is not None


@pytest.mark.parametrize(
    "host",
    ["example.test", "1.2.3.4.5", "1.2.3.256", "300.1", "0x", "0xzz.1", "1_0", "09", "a.1", ""],
)
def test_what_is_no_address_is_a_name(host: str) -> None:
    assert read_host(host) is None or host == "0x"


def test_what_is_no_address_cannot_be_connected_to() -> None:
    assert EgressRules().refuses("a.test", "nonsense") == (
        "a.test (nonsense) is refused: that is no IP address."
    )
    assert EgressRules().refuses("nonsense", "nonsense") is not None


def test_bad_rules_are_told_all_at_once() -> None:
    with pytest.raises(EgressRuleError) as caught:
        rules(allow="10.0.0.1/8,http://a.test, ok.test ,", deny="10.0.0.256,a..b,-x.test,1.2.3/8")
    assert len(caught.value.problems) == 6
    assert "'10.0.0.1/8': 10.0.0.1 lies inside the network; write 10.0.0.0/8." in str(caught.value)
    assert "EGRESS_DENY has the rule '10.0.0.256'" in str(caught.value)


def test_a_label_that_is_too_long_is_no_name() -> None:
    with pytest.raises(EgressRuleError):
        rules(allow="a" * 64 + ".test")


@given(st.ip_addresses(v=4).filter(lambda address: int(address) > 1))
def test_a_denied_address_is_refused_in_every_hiding_place(address: object) -> None:
    egress = EgressRules.parse([], [str(address)])
    for place in HIDING_PLACES.values():
        hidden = place.format(hex=in_hex(str(address)))
        assert egress.refuses_address(hidden) is not None, hidden
