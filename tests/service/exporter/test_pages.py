import asyncio

from service.exporter.model import ResultStatus
from service.exporter.pages import KEEP_S, PageCache, ResultTallies
from service.exporter.rules import name_label, render_labels
from service.results.model import ResultType, RunStatus, Stored


def stored(check_id: str) -> Stored:
    return Stored(((ResultType.FINAL, RunStatus.PASSED, None),), (check_id,))


def test_the_check_that_had_no_result_for_longest_is_forgotten_first() -> None:
    tallies = ResultTallies(most=2)
    for check_id in ("a", "b", "a", "c"):
        tallies.count(stored(check_id))
    assert tallies.copy() == {"a": {ResultStatus.PASSING: 2}, "c": {ResultStatus.PASSING: 1}}


async def test_a_page_is_made_once_for_all_who_ask_and_anew_when_it_is_old() -> None:
    now_s, made = 100.0, 0
    cache = PageCache(monotonic=lambda: now_s)

    async def make() -> bytes:
        nonlocal made
        made += 1
        await asyncio.sleep(0)
        return b"%d" % made

    assert await asyncio.gather(*(cache.find("alice", make) for _ in range(3))) == [b"1"] * 3
    assert await cache.find("charlie", make) == b"2"
    now_s += KEEP_S - 0.1
    assert await cache.find("alice", make) == b"1"
    now_s += 0.1
    assert await cache.find("alice", make) == b"3"


def test_a_label_has_a_name_that_prometheus_takes_and_the_page_does_not_use() -> None:
    found = {key: name_label(key) for key in ("team", "a-b c", "", "1x", "__a", "status", "\u00e4")}
    assert found == {
        "team": "team",
        "a-b c": "a_b_c",
        "": "tag_",
        "1x": "tag_1x",
        "__a": "tag___a",
        "status": "tag_status",
        "\u00e4": "_",
    }


def test_values_of_labels_are_escaped() -> None:
    assert render_labels({"a": 'x"\\\n', "b": ""}) == 'a="x\\"\\\\\\n",b=""'
