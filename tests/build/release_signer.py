"""Sign the index of an archive with a key of its own."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True)
class Signer:
    """A key."""

    home: Path

    @property
    def keyring(self) -> Path:
        return self.home / "keyring.gpg"

    def sign(self, suite: Path) -> None:
        """Write the suite's InRelease: its Release file, dated and signed."""
        text = "Date: Mon, 23 Nov 2026 00:00:00 UTC\n" + (suite / "Release").read_text()
        (suite / "InRelease").write_bytes(self.gpg("--clearsign", stdin=text.encode()))

    def gpg(self, *arguments: str, stdin: bytes = b"") -> bytes:
        argv = ["gpg", "--homedir", str(self.home), "--batch", "--quiet", "--passphrase", "", *arguments]
        return subprocess.run(argv, input=stdin, check=True, capture_output=True).stdout


@contextmanager
def signer() -> Iterator[Signer]:
    """Make a key for as long as this lasts."""
    with TemporaryDirectory(dir="/tmp") as home:  # the agent's socket has a short name
        one = Signer(Path(home))
        try:
            one.gpg("--quick-generate-key", "agelab <agelab@example.org>", "ed25519", "sign", "never")
            one.keyring.write_bytes(one.gpg("--export"))
            yield one
        finally:
            subprocess.run(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], check=True)
