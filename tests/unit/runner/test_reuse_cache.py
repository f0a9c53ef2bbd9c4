"""A cache that machines share: nothing but a cell of the key comes out of it, whatever a server answers."""

import base64
import contextlib
import hashlib
import json
import os
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.base.hashing import canonical_json
from agelab.results.key_and_digest import digest
from agelab.results.result import Sample, Status
from agelab.runner.execute.answers import cell_reuse
from agelab.runner.request.options import RunOptions
from agelab.runner.reuse import cache, ended_cells
from agelab.runner.reuse.cache import DirectoryPlace
from agelab.runner.reuse.ended_cells import EndedCell, EndedCells, entry_name
from agelab.store import http, parcel
from agelab.store.http import HttpPlace
from agelab.store.parcel import PackedFile, Parcel, PlaceUnreachable, Refused
from tests.build.reuse_cells import INPUTS, KEY, MAPS, NO_RUNS, Guests, a_cell, ended, restored

pytestmark = pytest.mark.usefixtures("cache_environment")
OTHER = {"making": {"kernel": "6.2"}}


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    """A cache in a directory, without a cell."""
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


@pytest.fixture
def shared(empty: Path, tmp_path: Path) -> Path:
    """A cache in a directory that holds one cell."""
    cell, maps = a_cell(tmp_path)
    EndedCells(NO_RUNS, print, DirectoryPlace(empty)).share(KEY, cell, maps)
    return empty


def answer(shared: Path) -> tuple[EndedCell | None, list[str]]:
    """What comes out of a cache, and what is said; it is put beside the cache."""
    said: list[str] = []
    return restored(DirectoryPlace(shared), shared.parent / "there", said), said


def refusal(shared: Path) -> str:
    """The line that says why a cell is not used; nothing of it is left."""
    found, said = answer(shared)
    assert found is None and not [*(shared.parent / "there").rglob("*.gz")]
    [line] = said
    assert "\n" not in line
    return line


# ---- the list of a parcel ----


CELL = Parcel[EndedCell]


def a_list(home: Path) -> bytes:
    cell, maps = a_cell(home)
    return ended_cells.packed(cell, maps)[0].listed()


def test_every_changed_byte_of_a_list_is_refused(tmp_path: Path) -> None:
    line = a_list(tmp_path)
    assert parcel.parse(line, CELL).listed() == line
    for at in range(len(line)):
        with pytest.raises(Refused):
            parcel.parse(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :], CELL)
    for wrong in (b"", b"<html>404", line[:-1], line + b" ", line + line):
        with pytest.raises(Refused):
            parcel.parse(wrong, CELL)


def test_a_list_is_not_read_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = a_list(tmp_path)
    monkeypatch.setattr(parcel, "MAX_BLOB", len(line) - 1)
    with pytest.raises(Refused, match="its list has more than"):
        parcel.parse(line, CELL)


# ---- a directory ----


def test_a_cell_comes_back_from_a_directory_as_it_went_in(empty: Path, tmp_path: Path) -> None:
    shared = empty
    before, maps = a_cell(tmp_path)
    EndedCells(NO_RUNS, print, DirectoryPlace(shared)).share(KEY, before, maps)
    found, said = answer(shared)
    assert found and found.end == before.end and not said
    assert (found.inputs, found.samples, found.origin) == (before.inputs, before.samples, before.origin)
    for name, path in found.map_places(tmp_path / "there").items():
        assert path.read_bytes() == before.map_places(maps)[name].read_bytes()
    assert _entry(shared).is_file()
    for path in shared.glob("cas/*/*"):
        assert path.name == hashlib.sha256(path.read_bytes()).hexdigest() and path.parent.name == path.name[:2]


def test_what_its_steps_printed_comes_back_and_nothing_outside_of_the_directory(empty: Path, tmp_path: Path) -> None:
    shared, there = empty, tmp_path / "there"
    cell, directory = a_cell(tmp_path)
    (directory / "fio-1.output").write_bytes(b"printed")
    EndedCells(NO_RUNS, print, DirectoryPlace(shared)).share(KEY, cell, directory)
    assert answer(shared)[0]
    assert (there / "fio-1.output").read_bytes() == b"printed"

    _relist(shared, lambda files: files.update({"outputs/../out.output": files["outputs/fio-1.output"]}))
    assert answer(shared)[0] and not (tmp_path / "out.output").exists()


def test_what_steps_printed_goes_with_an_entry_that_is_not_used(empty: Path, tmp_path: Path) -> None:
    """The cell runs then, and what is beside its record is what its own steps printed."""
    shared, there = empty, tmp_path / "there"
    cell, directory = a_cell(tmp_path)
    for name in ("fio-1.output", "fio-2.output"):
        (directory / name).write_bytes(name.encode())
    EndedCells(NO_RUNS, print, DirectoryPlace(shared)).share(KEY, cell, directory)
    last = hashlib.sha256(b"fio-2.output").hexdigest()
    (shared / "cas" / last[:2] / last).write_bytes(b"other")
    assert "is not used" in refusal(shared)
    assert not list(there.glob("*"))


def test_nothing_in_a_cache_is_written_twice(shared: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in shared.rglob("*")}
    cell, maps = a_cell(tmp_path)
    other = cell.model_copy(update={"origin": cell.origin.model_copy(update={"run": "later"})})
    EndedCells(NO_RUNS, print, DirectoryPlace(shared)).share(KEY, other, maps)
    assert {path: path.stat().st_mtime_ns for path in shared.rglob("*")} == before


def test_two_writers_at_once_leave_one_whole_entry(empty: Path, tmp_path: Path) -> None:
    cell, maps = a_cell(tmp_path)
    writers = [
        threading.Thread(target=EndedCells(NO_RUNS, print, DirectoryPlace(empty)).share, args=(KEY, cell, maps))
        for _ in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found, said = answer(empty)
    assert found and not said and not [*empty.rglob("*.partial")]


def test_an_entry_whose_files_are_gone_is_none_and_no_error(shared: Path, tmp_path: Path) -> None:
    for path in shared.glob("cas/*/*"):
        path.unlink()
        assert answer(shared) == (None, [])
        assert not [*(tmp_path / "there").rglob("*.gz")]


def test_what_a_cache_has_lost_of_a_cell_is_put_there_again(shared: Path, tmp_path: Path) -> None:
    before = sorted(shared.rglob("*"))
    next(shared.glob("cas/*/*")).unlink()
    found, (cell, maps) = EndedCells(NO_RUNS, print, DirectoryPlace(shared)), a_cell(tmp_path)
    assert found.restore(KEY, tmp_path / "there") is None
    found.share(KEY, cell, maps)
    assert sorted(shared.rglob("*")) == before and found.restore(KEY, tmp_path / "there")


def test_a_directory_that_is_not_there_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGELAB_CACHE", str(tmp_path / "unmounted"))
    with pytest.raises(InputError, match="unmounted is no directory"):
        cache.of_environment()


# ---- entries that are wrong ----


def _entry(shared: Path) -> Path:
    return shared / "ac" / entry_name(KEY)[:2] / entry_name(KEY)


def _replace(shared: Path, change: Callable[[bytes], bytes]) -> None:
    """Change the record in a list, whose seal fits what it then is."""
    content = _entry(shared).read_bytes().rpartition(b',"seal":')[0] + b"}"
    before, after = json.loads(content)["manifest"], b'{"files":'
    record = change(canonical_json(before))
    files = canonical_json(json.loads(content)["files"])
    whole = after + files + b',"manifest":' + record + b',"parcel":1}'
    seal = hashlib.sha256(whole).hexdigest().encode()
    _entry(shared).write_bytes(whole[:-1] + b',"seal":"' + seal + b'"}\n')


def _relist(shared: Path, change: Callable[[dict[str, PackedFile]], object]) -> None:
    """Change the files of a list."""
    before = parcel.parse(_entry(shared).read_bytes(), CELL)
    files = dict(before.files)
    change(files)
    _entry(shared).write_bytes(before.model_copy(update={"files": files}).listed())


def _edited(change: Callable[[dict[str, Any]], None]) -> Callable[[bytes], bytes]:
    def edit(data: bytes) -> bytes:
        found = json.loads(data)
        change(found)
        return json.dumps(found).encode()

    return edit


def _with_maps(found: dict[str, Any], maps: dict[str, str]) -> dict[str, Any]:
    """The end record with other maps, and the digest that fits them."""
    end = found["end"]
    samples = [Sample.model_validate(one) for one in found["samples"]]
    return {**end, "maps": maps, "digest": digest(Status(end["status"]), samples, maps)}


WRONG: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "no JSON": (lambda _: b"<html>", "its list: 'Invalid JSON"),
    "too deep": (lambda _: b"[" * 100_000, "its list: "),
    "unknown keys": (_edited(lambda found: found.update(more=1)), "its list: 'manifest.more"),
    "other inputs": (_edited(lambda found: found.update(inputs=OTHER)), "another key"),
    "another key's cell": (
        _edited(lambda found: found.update(inputs=OTHER, end={**found["end"], "inputs_key": "sha256:1"})),
        "another key",
    ),
    "another value": (_edited(lambda found: found["samples"][0].update(value=9.0)), "not those of its digest"),
    "another status": (_edited(lambda found: found["end"].update(status="failed")), "not those of its digest"),
    "no digest": (_edited(lambda found: found["end"].update(digest=None)), "no digest"),
    "a map in the place of a directory": (
        _edited(lambda found: found["end"].update(_with_maps(found, {"aged": "0" * 64, "aged.gz/free": "1" * 64}))),
        "names no maps/aged.gz",
    ),
    "NaN": (lambda data: data.replace(b'"value":1.5', b'"value":NaN'), "its list: 'manifest.samples"),
}


@pytest.mark.parametrize("case", list(WRONG))
def test_a_record_that_is_not_of_the_key_and_its_digest_is_told_and_not_used(shared: Path, case: str) -> None:
    change, why = WRONG[case]
    _replace(shared, change)
    said = refusal(shared)
    assert f"ac/{entry_name(KEY)} is not used" in said and why in said


def test_content_that_is_not_of_its_hash_is_told_and_not_used(shared: Path) -> None:
    for path in sorted(shared.glob("cas/*/*")):
        before = path.read_bytes()
        path.write_bytes(before[:-1] + b"?")
        assert "another hash than its name says" in refusal(shared)
        path.write_bytes(before)


def _of_other_cell(shared: Path) -> None:
    _relist(shared, lambda files: files.update({"maps/aged/extents.gz": files["maps/aged/free.gz"]}))


def _not_beside_each_other(shared: Path) -> None:
    maps = {"aged": "0" * 64, "aged.gz/free": "1" * 64}
    _replace(shared, _edited(lambda found: found["end"].update(_with_maps(found, maps))))
    _relist(shared, lambda files: files.update({f"maps/{of}.gz": files["maps/aged/free.gz"] for of in maps}))


def _of_other_size(shared: Path) -> None:
    _relist(
        shared, lambda files: files.update({name: file.model_copy(update={"size": 1}) for name, file in files.items()})
    )


def _linked(place: Path) -> None:
    """A link to what would do: it is the link that is refused."""
    elsewhere = place.with_name("elsewhere")
    place.rename(elsewhere)
    place.symlink_to(elsewhere)


def _pipe(shared: Path) -> None:
    _entry(shared).unlink()
    os.mkfifo(_entry(shared))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_of_other_cell, "its map aged/extents is not that of its digest"),
        (_not_beside_each_other, "is not used"),
        (_of_other_size, "has another size than is said"),
        (lambda shared: _linked(_entry(shared)), "link"),
        (lambda shared: _linked(shared / "ac"), "link"),
        (lambda shared: _linked(_entry(shared).parent), "link"),
        (_pipe, "pipe"),
    ],
)
def test_what_cannot_be_an_entry_is_told_and_not_used(shared: Path, harm: Callable[[Path], None], why: str) -> None:
    harm(shared)
    assert why in refusal(shared)


@pytest.mark.parametrize("what", ["file", "kind", "part"])
@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_in_a_cache_is_not_followed_to_write(tmp_path: Path, what: str, dangling: bool) -> None:
    shared, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    place = {"file": _entry(shared), "kind": shared / "ac", "part": _entry(shared).parent}[what]
    place.parent.mkdir(parents=True)
    if not dangling:
        elsewhere.write_text("mine") if what == "file" else elsewhere.mkdir()
    place.symlink_to(elsewhere)
    cell, maps = a_cell(tmp_path)
    said: list[str] = []
    EndedCells(NO_RUNS, said.append, DirectoryPlace(shared)).share(KEY, cell, maps)
    if dangling:
        assert not elsewhere.exists()
    else:
        assert elsewhere.read_text() == "mine" if what == "file" else not [*elsewhere.iterdir()]
    assert what == "file" or (len(said) == 1 and "link, which is not followed" in said[0])


def test_a_cache_that_is_named_by_a_link_is_used(shared: Path) -> None:
    named = shared.with_name("named")
    named.symlink_to(shared)
    found, said = answer(named)
    assert found and not said


def test_maps_are_not_unpacked_without_end(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them would be small enough alone."""
    each = max(map(len, MAPS.values()))
    monkeypatch.setattr(fileio, "MAP", sum(map(len, MAPS.values())) - 1)
    assert each < fileio.MAP
    assert "cannot be unpacked" in refusal(shared)


def test_the_files_of_a_cell_are_not_fetched_without_end(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended_cells, "MOST_BYTES", 1 << 20)
    more = {f"outputs/{number}.output": PackedFile(sha256="0" * 64, size=2000) for number in range(900)}
    _relist(shared, lambda files: files.update(more))
    assert "its files have more than 1 MiB" in refusal(shared)
    _relist(shared, lambda files: files.update(dict.fromkeys([*more, *map(str, range(200))], more["outputs/1.output"])))
    assert "it names more than 1000 files" in refusal(shared)


# ---- a server ----


class _Server(ThreadingHTTPServer):
    answer: "Callable[[_Handler], None]"
    kept: dict[str, bytes]
    asked: list[tuple[str, str]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        self.server.asked.append((self.command, self.path))
        self.server.answer(self)

    do_HEAD = do_PUT = do_GET

    def send(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


def _keeps(handler: _Handler) -> None:
    """Answer as a plain store does."""
    kept = handler.server.kept
    if handler.command == "PUT":
        kept[handler.path] = handler.rfile.read(int(handler.headers["Content-Length"]))
        handler.send(201)
    elif handler.path in kept:
        handler.send(200, kept[handler.path])
    else:
        handler.send(404)


@contextlib.contextmanager
def server(answer: Callable[[_Handler], None]) -> Iterator[_Server]:
    found = _Server(("127.0.0.1", 0), _Handler)
    found.daemon_threads = True
    found.answer, found.kept, found.asked = answer, {}, []
    threading.Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield found
    finally:
        found.shutdown()
        found.server_close()


def url(of: _Server, user: str = "") -> str:
    return f"http://{user}127.0.0.1:{of.server_port}"


def test_a_cell_comes_back_from_a_server_as_it_went_in(tmp_path: Path) -> None:
    cell, maps = a_cell(tmp_path)
    with server(_keeps) as there:
        EndedCells(NO_RUNS, print, HttpPlace(url(there) + "/some/path/")).share(KEY, cell, maps)
        assert [path for method, path in there.asked if method == "PUT"][-1] == f"/some/path/ac/{entry_name(KEY)}"
        said: list[str] = []
        assert restored(HttpPlace(url(there) + "/some/path"), tmp_path / "there", said) and not said
        there.asked.clear()
        EndedCells(NO_RUNS, print, HttpPlace(url(there) + "/some/path")).share(KEY, cell, maps)
        assert [method for method, _ in there.asked] == ["HEAD"]


def _slowly(handler: _Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"x")
            time.sleep(0.05)


def _endlessly(handler: _Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    with contextlib.suppress(OSError):
        while True:
            handler.wfile.write(b"x" * 65536)


UNUSABLE: dict[str, tuple[Callable[[_Handler], None], str]] = {
    "an error": (lambda handler: handler.send(500), "answers GET with 500"),
    "no permission": (lambda handler: handler.send(401), "answers GET with 401"),
    "another place": (
        lambda handler: handler.send(302, Location="http://127.0.0.1:1/elsewhere"),
        "answers GET with 302",
    ),
    "silence": (lambda handler: time.sleep(3), "does not answer in time"),
    "a byte now and then": (_slowly, "does not answer in time"),
    "an endless body": (_endlessly, "more than"),
    "no HTTP": (lambda handler: (handler.wfile.write(b"SSH-2.0-OpenSSH\r\n\r\n") and None) or None, ""),
    "a cut body": (
        lambda handler: (handler.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nx") and None) or None,
        "",
    ),
}


@pytest.mark.parametrize("case", list(UNUSABLE))
def test_a_server_that_is_of_no_use_is_told_once_and_the_run_goes_on(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MAX_BLOB", 1 << 20)
    answer, why = UNUSABLE[case]
    cell, maps = a_cell(tmp_path)
    said: list[str] = []
    with server(answer) as there:
        found = EndedCells(NO_RUNS, said.append, HttpPlace(url(there, "user:secret@"), silence=0.5, patience=1.0))
        assert found.restore(KEY, tmp_path / "there") is None
        asked = len(there.asked)
        assert found.restore(KEY, tmp_path / "there") is None
        found.share(KEY, cell, maps)
        assert len(there.asked) == asked
    assert len(said) == 1 and why in said[0] and said[0].endswith("the run goes on without it")
    assert "secret" not in said[0] and "\n" not in said[0]


@pytest.mark.parametrize("content", [b"<html>welcome</html>", b"", b"{}"])
def test_a_server_that_answers_nonsense_to_a_key_has_no_cell(tmp_path: Path, content: bytes) -> None:
    said: list[str] = []
    with server(lambda handler: handler.send(200, content)) as there:
        assert restored(HttpPlace(url(there)), tmp_path / "there", said) is None
    assert len(said) == 1 and "is not used" in said[0]


def test_a_server_that_is_down_is_told_once(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    said: list[str] = []
    assert restored(HttpPlace(f"http://127.0.0.1:{port}"), tmp_path, said) is None
    assert said == [f"cache http://127.0.0.1:{port}: Connection refused; the run goes on without it"]


@pytest.mark.parametrize("by", ["url", "netrc"])
def test_a_password_comes_from_the_url_or_from_netrc(tmp_path: Path, by: str) -> None:
    seen: list[str | None] = []

    def note(handler: _Handler) -> None:
        seen.append(handler.headers["Authorization"])
        handler.send(404)

    if by == "netrc":
        netrc = tmp_path / ".netrc"
        netrc.write_text("machine 127.0.0.1 login me password p@ss\n")
        netrc.chmod(0o600)
    with server(note) as there:
        assert restored(HttpPlace(url(there, "me:p%40ss@" if by == "url" else "")), tmp_path, []) is None
    assert seen == [f"Basic {base64.b64encode(b'me:p@ss').decode()}"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("s3://bucket", "s3:// is not spoken here"),
        ("https://", "a server is"),
        ("http://host:port", "AGELAB_CACHE: "),
        ("http://host/?a=b", "a server is"),
    ],
)
def test_what_names_no_cache_is_refused(value: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGELAB_CACHE", value)
    with pytest.raises(InputError, match=why):
        cache.of_environment()


@pytest.mark.parametrize("name", ["AGELAB_CACHE_CA", "AGELAB_CACHE_CERT", "AGELAB_CACHE_KEY"])
def test_certificates_that_cannot_be_read_are_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, str(tmp_path / "missing.pem"))
    with pytest.raises(InputError, match=name):
        HttpPlace("https://127.0.0.1")


def test_server_and_client_know_each_other_by_certificates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = str(tmp_path / "cert"), str(tmp_path / "key")
    made = [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
    ]  # fmt: skip
    made += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    context.load_verify_locations(cert)
    context.verify_mode = ssl.CERT_REQUIRED
    cell, maps = a_cell(tmp_path)
    said: list[str] = []
    with server(_keeps) as there:
        there.socket = context.wrap_socket(there.socket, server_side=True)

        def place() -> HttpPlace:
            return HttpPlace(f"https://127.0.0.1:{there.server_port}")

        assert restored(place(), tmp_path, said) is None
        assert len(said) == 1 and "its certificate is not trusted" in said[0]
        monkeypatch.setenv("AGELAB_CACHE_CA", cert)
        assert restored(place(), tmp_path, said) is None and len(said) == 2 and not there.asked
        monkeypatch.setenv("AGELAB_CACHE_CERT", cert)
        monkeypatch.setenv("AGELAB_CACHE_KEY", key)
        EndedCells(NO_RUNS, said.append, place()).share(KEY, cell, maps)
        assert restored(place(), tmp_path / "there", said) == cell and len(said) == 2


def test_what_a_cache_cannot_do_does_not_reach_a_caller() -> None:
    with pytest.raises(PlaceUnreachable, match="Connection refused"):
        HttpPlace("http://127.0.0.1:1").get("ac", "0" * 64)


# ---- a run with a cache ----


def test_a_cell_that_one_machine_ran_is_reused_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agelab.runner.plan import cell_inputs

    monkeypatch.setattr(cell_inputs, "collect", lambda *_: INPUTS)
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("AGELAB_CACHE", str(tmp_path / "cache"))
    options = RunOptions(name="aging-reiserfs", directory="/")
    for name, boots in (("one", True), ("other", False)):
        home = tmp_path / name
        guests = Guests(home)
        end = guests.carry_out(cell_reuse(options, home / "runs", print)).end(0)
        assert end and bool(guests.boots) == boots and bool(end.reused) != boots


def test_a_run_that_is_not_for_everybody_is_not_put_into_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").mkdir()
    monkeypatch.setenv("AGELAB_CACHE", str(tmp_path / "cache"))
    said: list[str] = []
    found = cell_reuse(RunOptions(name="aging-reiserfs", directory="/"), tmp_path / "runs", said.append)
    run = ended(tmp_path)
    end = run.end(0)
    assert found and end
    run.path.chmod(0o700)
    for _ in range(2):
        found.share(run, 0, end, run.samples()[0])
    assert not [*(tmp_path / "cache").iterdir()]
    assert said == ["nothing is put into the cache: not everybody may read what this run is made of"]
    run.path.chmod(0o755)
    found.share(run, 0, end, run.samples()[0])
    assert [*(tmp_path / "cache").iterdir()]
