"""Records that a store wrote itself: beside each lies a code that takes the store's secret to make.

What a record says of itself is no reason to trust it: a run that is copied into a store, to be shown, has no code of
that store.
"""

import fcntl
import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

from agelab.base import atomic, fileio

SECRET = "secret"
"""The file below AGELAB_HOME: outside of every run, so it goes with no copy of one."""
SIZE = 32
"""Bytes of a secret."""
ENDING = ".code"
MAX_CODE = 1024


def write(path: Path, text: str, home: Path) -> None:
    """Write a record of the store at ``home``, behind its code: a record is never there without it."""
    content = f"{text}\n".encode()
    sign(path, home, content)
    atomic.write(path, content)


def sign(path: Path, home: Path, *contents: bytes) -> None:
    """Write the codes of a record that is about to have one of these contents."""
    secret = _obtain_secret(home)
    atomic.write(_code_file(path), "\n".join(_code(secret, content) for content in contents).encode())


def is_own(path: Path, home: Path, content: bytes | None = None) -> bool:
    """Return whether the store at ``home`` wrote a record as it is now; ``content`` where the file is not all of it."""
    try:
        secret = fileio.read_bytes(home / SECRET, SIZE, locked=True)
        content = fileio.read_bytes(path) if content is None else content
        codes = fileio.read_bytes(_code_file(path), MAX_CODE)
    except OSError:
        return False
    code = _code(secret, content).encode()
    return len(secret) == SIZE and any(hmac.compare_digest(recorded, code) for recorded in codes.split(b"\n"))


def _code_file(path: Path) -> Path:
    return path.with_name(path.name + ENDING)


def _code(secret: bytes, content: bytes) -> str:
    return hashlib.blake2b(content, key=secret).hexdigest()


def _obtain_secret(home: Path) -> bytes:
    """Return the store's secret, made if need be. Who may write the store may read it, and nobody else."""
    with open(home / SECRET, "ab+", opener=partial(os.open, mode=0o600)) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        secret = file.read(SIZE + 1)
        if len(secret) != SIZE:
            there = home.stat()
            if there.st_mode & stat.S_IWGRP:
                with suppress(PermissionError):
                    os.fchown(file.fileno(), -1, there.st_gid)
                    os.fchmod(file.fileno(), 0o660)
            secret = secrets.token_bytes(SIZE)
            file.truncate(0)
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
    return secret
