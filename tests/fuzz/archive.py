"""Tar archives, as a user's own corpus."""

import gzip
import io
import lzma
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import suppress

from agelab.base.errors import AgelabError
from agelab.data.corpus import user
from agelab.data.corpus.user import Losses
from tests.fuzz._files import directory


def one(data: bytes) -> None:
    """Unpack it: nothing but files, directories and links comes of it, and all of it below one directory."""
    path, tree = directory() / "a.tar", directory() / "tree"
    path.write_bytes(data)
    tree.mkdir()
    try:
        with suppress(AgelabError):
            user._unpack(path, tree, Losses())
        with suppress(AgelabError):
            list(user._entries(tree))
        assert {made.name for made in directory().iterdir()} == {"a.tar", "tree"}
    finally:
        shutil.rmtree(tree)


def seeds() -> Iterator[bytes]:
    """Each kind of member, in each format, plain and packed."""
    for kind in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w", format=kind) as tar:
            for name, what, link in (
                ("a", tarfile.DIRTYPE, ""),
                ("a/f", tarfile.REGTYPE, ""),
                ("a/" + "n" * 120, tarfile.REGTYPE, ""),
                ("a/hard", tarfile.LNKTYPE, "a/f"),
                ("a/soft", tarfile.SYMTYPE, "../../outside"),
                ("a/soft/file", tarfile.REGTYPE, ""),
                ("../up", tarfile.REGTYPE, ""),
                ("/abs", tarfile.REGTYPE, ""),
                ("dev", tarfile.CHRTYPE, ""),
                ("pipe", tarfile.FIFOTYPE, ""),
            ):
                member = tarfile.TarInfo(name)
                member.type, member.linkname = what, link
                member.size = 600 if what == tarfile.REGTYPE else 0
                with suppress(ValueError):
                    tar.addfile(member, io.BytesIO(b"x" * 600))
        yield made.getvalue()[:8192]
        yield gzip.compress(made.getvalue())
        yield lzma.compress(made.getvalue())
