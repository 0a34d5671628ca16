"""Reads a text for thousands of words at once, one step a character (Aho and Corasick)."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

START: Final = 0
"""Where a text is read from."""


class Automaton:
    """Knows after each character how much of a word was read, and which word ends there."""

    def __init__(self, words: Iterable[str]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._back = [START]
        """By node, that of the longest end of what was read with which a word begins too."""
        self._depth = [0]
        self._found = [0]
        """By node, how long the longest word is that ends there; 0: none does."""
        self.longest = 0
        for word in words:
            self._add(word)
        self._link()

    def read(self, node: int, text: str) -> Iterator[tuple[int, int, int]]:
        """After each character the node, how much of a word that is, and how much of it is one."""
        for char in text:
            while node and char not in self._next[node]:
                node = self._back[node]
            node = self._next[node].get(char, START)
            yield node, self._depth[node], self._found[node]

    def node_after(self, text: str) -> int:
        """Where one is once a text was read."""
        node = START
        for one in self.read(START, text[-self.longest :] if self.longest else ""):
            node = one[0]
        return node

    def _add(self, word: str) -> None:
        node = START
        for depth, char in enumerate(word, start=1):
            following = self._next[node].get(char)
            if following is None:
                following = self._next[node][char] = len(self._next)
                self._next.append({})
                self._back.append(START)
                self._depth.append(depth)
                self._found.append(0)
            node = following
        self._found[node] = len(word)
        self.longest = max(self.longest, len(word))

    def _link(self) -> None:
        """The nearer nodes first, since those further away lean on them."""
        coming = deque(self._next[START].values())
        while coming:
            node = coming.popleft()
            self._found[node] = self._found[node] or self._found[self._back[node]]
            for char, following in self._next[node].items():
                coming.append(following)
                back = self._back[node]
                while back and char not in self._next[back]:
                    back = self._back[back]
                self._back[following] = self._next[back].get(char, START)
