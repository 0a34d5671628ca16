"""What a run tells, without the terminal's colours."""

from runners.scripting.playwright.reporter import strip_colours


def test_colours_of_a_terminal_are_taken_out() -> None:
    assert strip_colours("\x1b[31mred\x1b[39m and \x1b[7mbold\x1b[27m") == "red and bold"
