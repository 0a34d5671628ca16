"""A secret counts as typed from its first letters on, whoever knew by then that it is one."""

from redaction.policy import TypedTexts

SECRET = "Zebra+Quartz"


def test_letters_of_one_process_are_put_together() -> None:
    texts = TypedTexts()
    for letter in "to Zebr":
        texts.note(1, letter)
    assert texts.among([SECRET, "Yellow+Topaz"]) == (SECRET,)


def test_letters_of_several_processes_are_not() -> None:
    texts = TypedTexts()
    texts.note(1, "Ze")
    texts.note(2, "br")
    assert texts.among([SECRET]) == ()


def test_where_nobody_heard_what_was_typed_all_were() -> None:
    texts = TypedTexts()
    texts.note_unknown()
    assert texts.among([SECRET, "abcd"]) == (SECRET,)


def test_what_is_typed_takes_a_bounded_room_and_counts_as_anything_beyond() -> None:
    texts = TypedTexts()
    for _ in range(300):
        texts.note(1, "x" * 4000)
    assert texts.among([SECRET]) == (SECRET,)


def test_what_was_taken_off_may_have_been_of_the_same_field_or_of_another() -> None:
    for letters in ("Zex\bbra", "\b\bZe\bbra"):
        texts = TypedTexts()
        for letter in letters:
            texts.note(1, letter)
        assert texts.among([SECRET, "Yellow+Topaz"]) == (SECRET,)
