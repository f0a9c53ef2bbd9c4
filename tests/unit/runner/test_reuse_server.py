"""The cache on a real bazel-remote: it takes what is put, gives it back, and checks who asks."""

import base64
import hashlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agelab.runner.reuse.artefacts import CachedArtefacts
from agelab.runner.reuse.ended_cells import EndedCells, entry_name
from agelab.store.artefacts import Store
from agelab.store.http import HttpPlace
from agelab.store.parcel import PlaceUnreachable
from tests import capabilities
from tests.build.reuse_cells import KEY, NO_RUNS, a_cell, restored

PROGRAM = shutil.which("bazel-remote", path=f"{os.environ['PATH']}:{Path.home() / 'go/bin'}")
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=capabilities.lacks("bazel-remote")),
    pytest.mark.usefixtures("cache_environment"),
]


@contextmanager
def bazel_remote(directory: Path, *words: str, plain: bool = True) -> Iterator[str]:
    """Start the server on a free port of this host, and yield its host and port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{free.getsockname()[1]}"
    fixed = ["--dir", str(directory), "--max_size", "1", "--http_address", place, "--grpc_address", "none"]
    fixed += ["--disable_http_ac_validation"] * plain
    assert PROGRAM
    log = directory.with_suffix(".log")
    with (
        log.open("wb") as file,
        subprocess.Popen([PROGRAM, *fixed, *words], stdout=file, stderr=file) as child,
    ):
        try:
            _wait_for(place, child, log)
            yield place
        finally:
            child.terminate()


def _wait_for(place: str, child: "subprocess.Popen[bytes]", log: Path) -> None:
    host, _, port = place.partition(":")
    for _ in range(600):
        assert child.poll() is None, log.read_text()
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(log.read_text())


def test_a_cell_comes_back_as_it_went_in(tmp_path: Path) -> None:
    cell, maps = a_cell(tmp_path)
    with bazel_remote(tmp_path / "server") as place:
        said: list[str] = []
        shared = EndedCells(NO_RUNS, said.append, HttpPlace(f"http://{place}"))
        assert shared.restore(KEY, tmp_path / "there") is None
        shared.share(KEY, cell, maps)
        found = shared.restore(KEY, tmp_path / "there")
        assert found == cell and not said
        for name, path in found.map_places(tmp_path / "there").items():
            assert path.read_bytes() == cell.map_places(maps)[name].read_bytes()
    with bazel_remote(tmp_path / "server") as place:  # what it keeps, it keeps on its disk
        assert restored(HttpPlace(f"http://{place}"), tmp_path / "later", said) == cell and not said


def test_a_server_that_takes_messages_of_bazel_alone_is_told_with_what_to_do(tmp_path: Path) -> None:
    with bazel_remote(tmp_path / "server", plain=False) as place:
        blobs = HttpPlace(f"http://{place}")
        with pytest.raises(PlaceUnreachable, match=r"answers PUT with 400 .*--disable_http_ac_validation"):
            blobs.put("ac", entry_name(KEY), b"no message")
        with pytest.raises(Exception, match="answers PUT with"):
            blobs.put("cas", hashlib.sha256(b"one").hexdigest(), b"another")


def test_an_entry_whose_files_the_server_has_not_is_no_entry(tmp_path: Path) -> None:
    cell, maps = a_cell(tmp_path)
    with bazel_remote(tmp_path / "server") as place:
        blobs = HttpPlace(f"http://{place}")
        EndedCells(NO_RUNS, print, blobs).share(KEY, cell, maps)
        entry = blobs.get("ac", entry_name(KEY))
    assert entry
    with bazel_remote(tmp_path / "empty") as place:
        blobs = HttpPlace(f"http://{place}")
        blobs.put("ac", entry_name(KEY), entry)
        said: list[str] = []
        assert restored(blobs, tmp_path / "there", said) is None and not said


def test_only_who_has_the_password_gets_in(tmp_path: Path) -> None:
    cell, maps = a_cell(tmp_path)
    hashed = base64.b64encode(hashlib.sha1(b"p@ss").digest()).decode()
    (tmp_path / "htpasswd").write_text(f"me:{{SHA}}{hashed}\n")
    with bazel_remote(tmp_path / "server", "--htpasswd_file", str(tmp_path / "htpasswd")) as place:
        said: list[str] = []
        EndedCells(NO_RUNS, said.append, HttpPlace(f"http://me:p%40ss@{place}")).share(KEY, cell, maps)
        assert restored(HttpPlace(f"http://me:p%40ss@{place}"), tmp_path / "there", said) == cell and not said
        assert restored(HttpPlace(f"http://me:wrong@{place}"), tmp_path / "there", said) is None
    assert said == [f"cache http://{place}: it answers GET with 401; the run goes on without it"]


def _certificates(directory: Path) -> None:
    """Make an authority, and a certificate of it for the server and for a client."""

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True)

    fresh = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl("req", "-x509", *fresh, "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt")
    (directory / "ext").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", *fresh[:3], "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "ext")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")


def test_server_and_client_know_each_other_by_certificates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _certificates(tmp_path)
    cell, maps = a_cell(tmp_path)
    files = {"cert": "server.crt", "key": "server.key", "ca": "ca.crt"}
    words = [word for name, file in files.items() for word in (f"--tls_{name}_file", str(tmp_path / file))]
    said: list[str] = []
    with bazel_remote(tmp_path / "server", *words) as place:
        assert restored(HttpPlace(f"https://{place}"), tmp_path / "there", said) is None
        monkeypatch.setenv("AGELAB_CACHE_CA", str(tmp_path / "ca.crt"))
        assert restored(HttpPlace(f"https://{place}"), tmp_path / "there", said) is None
        monkeypatch.setenv("AGELAB_CACHE_CERT", str(tmp_path / "client.crt"))
        monkeypatch.setenv("AGELAB_CACHE_KEY", str(tmp_path / "client.key"))
        assert len(said) == 2 and "its certificate is not trusted" in said[0] and "GET with 401" in said[1]
        EndedCells(NO_RUNS, said.append, HttpPlace(f"https://{place}")).share(KEY, cell, maps)
        assert restored(HttpPlace(f"https://{place}"), tmp_path / "there", said) == cell and len(said) == 2


def test_an_artefact_comes_back_from_the_server_as_it_went_in(tmp_path: Path) -> None:
    """In several pieces, each less than the server takes at once."""
    with bazel_remote(tmp_path / "server") as place:

        def store(home: str, said: list[str]) -> Store:
            return Store(tmp_path / home, shared=CachedArtefacts(said.append, HttpPlace(f"http://{place}")))

        def build(directory: Path) -> None:
            (directory / "vmlinux").write_bytes(os.urandom(20 << 20))

        def refuse(directory: Path) -> None:
            raise AssertionError("made, though the cache has it")

        first, second = list[str](), list[str]()
        made = store("first", first).obtain("kernel", {"package": "linux-image"}, build, shared=True)
        taken = store("second", second).obtain("kernel", {"package": "linux-image"}, refuse, shared=True)
        assert taken.manifest == made.manifest and not taken.damage()
        assert first == [f"kernel {made.key[:12]} is put into the cache"]
        assert second == [f"kernel {made.key[:12]} is taken from the cache, 21.0 MB"]
