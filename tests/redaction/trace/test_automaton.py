"""All words are read at once, and what it takes does not grow with their number."""

from hypothesis import given
from hypothesis import strategies as st

from redaction.trace.typed import START, Automaton

WORDS = st.lists(st.text("ab\u00fc", min_size=1, max_size=6), max_size=6)


@given(words=WORDS, text=st.text("ab\u00fc", max_size=30))
def test_after_each_letter_is_known_how_much_of_a_word_was_read_and_which_ends(
    words: list[str], text: str
) -> None:
    for at, (_, depth, found) in enumerate(Automaton(words).read(START, text), start=1):
        read = text[:at]
        limit_backslashes = [word[:size] for word in words for size in range(1, len(word) + 1)]
        assert depth == max(
            (len(one) for one in limit_backslashes if read.endswith(one)), default=0
        )
        assert found == max((len(one) for one in words if read.endswith(one)), default=0)


@given(words=WORDS, text=st.text("ab\u00fc", max_size=30), more=st.text("ab\u00fc", max_size=9))
def test_a_text_that_was_read_before_goes_on_where_it_ended(
    words: list[str], text: str, more: str
) -> None:
    automaton = Automaton(words)
    at_once = [*automaton.read(START, text + more)]
    assert [*automaton.read(automaton.node_after(text), more)] == at_once[len(text) :]


def test_beginnings_of_a_word_take_no_further_nodes() -> None:
    word = "".join(map(chr, range(97, 197)))
    beginnings = [word[:size] for size in range(4, 100)]
    alone, with_all = Automaton([word]), Automaton([word, *beginnings])
    assert with_all.node_after(word) == alone.node_after(word) == len(word)
