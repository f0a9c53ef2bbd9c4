"""A tree such as people report trouble with: names, links, holes and modes that a copy may lose."""

import os
from pathlib import Path

MB = 1_000_000
LONGEST = 253
"""Bytes of a name that Linux reads whole in an ISO 9660 image."""


def odd_tree(root: Path) -> Path:
    """Make a tree of which an image keeps all names."""
    (root / "deep" / "er").mkdir(parents=True)
    (root / "plain").write_bytes(bytes(range(250)) * 400)
    os.link(root / "plain", root / "deep" / "again")
    os.link(root / "plain", root / "deep" / "and again")
    with (root / "sparse").open("wb") as file:
        file.truncate(7 * MB)
        file.seek(4 * MB)
        file.write(b"end")
    for name in (b" lead", b"trail ", b"new\nline", b"latin-\xe9", b"-rf", b"; * ? \"'$HOME", b"a" * LONGEST):
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("x")
    (root / "empty").touch()
    (root / "setuid").write_text("x")
    (root / "setuid").chmod(0o4755)
    (root / "private").write_text("x")
    (root / "private").chmod(0o600)
    (root / "deep" / "er").chmod(0o700)
    (root / "dangling").symlink_to("../../outside\n")
    return root


def odder_tree(root: Path) -> Path:
    """Make one of which an image cuts two names and a link."""
    odd_tree(root)
    for name in ("b" * (LONGEST + 1), "é" * 127):
        (root / name).write_text("x")
    (root / "slash").symlink_to("deep/")
    return root
