"""The nested text in which DiskSim's descriptions of drives are written, read into plain values."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_TOKEN = re.compile(r"[{}\[\],=]|[^{}\[\],=#\n]+|#[^\n]*|\n")


class Malformed(Exception):
    """Text that breaks off or has something where it cannot be; the message names the line."""


Value: TypeAlias = "str | dict[str, Value] | list[Value]"
"""A word or number, ``kind { key = value, ... }`` without its kind, or a list."""


@dataclass
class _Reader:
    """Tokens with their lines, read from the front."""

    tokens: list[tuple[str, int]]
    at: int = 0

    def peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    @property
    def line(self) -> int:
        return self.tokens[min(self.at, len(self.tokens) - 1)][1] if self.tokens else 1

    def take(self, expected: str = "") -> str:
        word = self.peek()
        if not word or (expected and word != expected):
            raise Malformed(f"line {self.line}: {word or 'the end'!r} instead of {expected or 'a value'!r}")
        self.at += 1
        return word

    def value(self) -> Value:
        line = self.line
        if self.peek() == "[":
            return self.list()
        text = self.take()
        if text in "{}],=":
            raise Malformed(f"line {line}: {text!r} instead of a value")
        return self.block() if self.peek() == "{" else text

    def list(self) -> "list[Value]":
        self.take("[")
        values: list[Value] = []
        while self.peek() != "]":
            values.append(self.value())
            if self.peek() != "]":
                self.take(",")
        self.take("]")
        return values

    def block(self) -> "dict[str, Value]":
        self.take("{")
        entries: dict[str, Value] = {}
        while self.peek() != "}":
            key = self.take()
            self.take("=")
            entries[key] = self.value()
            if self.peek() != "}":
                self.take(",")
        self.take("}")
        return entries


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line = 1
    for token in _TOKEN.findall(text):
        word = token.strip()
        if word and not word.startswith("#"):
            yield word, line
        line += token.count("\n")


def description(text: str) -> dict[str, Value]:
    """Return the one description that a text has. Raises Malformed."""
    reader, descriptions = _Reader(list(_tokens(text))), []
    while reader.peek():
        value = reader.value()
        if not isinstance(value, dict):
            raise Malformed(f"line {reader.line}: no description of anything")
        descriptions.append(value)
    if len(descriptions) != 1:
        raise Malformed("does not describe one thing")
    return descriptions[0]
