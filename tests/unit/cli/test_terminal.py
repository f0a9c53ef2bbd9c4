"""A guest's console on this terminal."""

import os
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from agelab.cli.terminal import connected


def test_what_is_typed_waits_for_the_prompt_and_goes_both_ways(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    read, write = os.pipe()
    os.write(write, b"ls\n")
    os.close(write)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(fileno=lambda: read))
    with socket.socket(socket.AF_UNIX) as listening, connected(tmp_path / "terminal"):
        listening.bind(str(tmp_path / "terminal"))
        listening.listen()
        guest, _ = listening.accept()
        guest.settimeout(0.5)
        guest.sendall(b"booting\n")
        with pytest.raises(TimeoutError):
            guest.recv(10)
        guest.sendall(b"# ")
        assert guest.recv(10) == b"ls\n"
        guest.sendall(b"A B C\n")
        guest.close()
    os.close(read)
    assert capfdbinary.readouterr().out == b"booting\n# A B C\n"
