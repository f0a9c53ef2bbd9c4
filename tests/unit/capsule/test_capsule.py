"""Capsules: the same bytes each time, and nothing in them believed."""

import dataclasses
import gzip
import json
import os
import random
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from agelab.analysis.cells import CellResult
from agelab.base import process
from agelab.base.errors import InputError, Notify
from agelab.capsule import replay
from agelab.capsule import verify as capsules
from agelab.capsule.pack import pack
from agelab.capsule.replay import unpack
from agelab.capsule.verify import open_capsule
from agelab.cli import main
from agelab.data.history.profile import PROFILES, load_profile
from agelab.debian import Archive, PackagesVanished, buildroot
from agelab.kernel import debian_kernel
from agelab.machine import qemu
from agelab.machine.image import root as roots
from agelab.results.checksummed import read, write
from agelab.results.key_and_digest import inputs_key
from agelab.results.result import RunPlan
from agelab.results.run_directory import RunDirectory
from agelab.runner.execute import runner
from agelab.runner.prepare import run_manifest
from agelab.runner.prepare.run_manifest import JobFiles, RunManifest
from agelab.runner.progress import Progress
from agelab.scenario.history import Profiled
from agelab.store import parcel
from agelab.store.artefacts import Store
from agelab.store.parcel import LIST
from tests.build.capsule_builder import SMALL, contents, made_run, package, resealed, tar_of
from tests.build.cli import Cli


@pytest.fixture
def capsule(store: Store, tmp_path: Path) -> Path:
    return pack(made_run(store), store, tmp_path / "one.capsule").path


@pytest.fixture
def full(store: Store, tmp_path: Path) -> Path:
    return pack(made_run(store), store, tmp_path / "full.capsule", carry=True).path


def test_what_guests_of_a_capsule_s_kernel_make_is_kept_beside_it_and_not_in_the_store(
    store: Store, full: Path, capsule: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def run_request(request: object, store: Store, *_: object, **__: object) -> None:
        guest = store.obtain("guest", {"made": "up"}, lambda place: (place / "memory").touch())
        assert store.find("guest", guest.key) and [one.key for one in store.all("guest")] == [guest.key]
        made.append(guest.directory)

    monkeypatch.setattr(runner, "run_request", run_request)
    for has_qemu in (True, False):
        monkeypatch.setattr(replay, "_has_qemu", lambda *_, found=has_qemu: found)
        replay.run(open_capsule(full), [0], store, Progress())
        assert made[-1].is_relative_to(store.home / "cache/capsules") and not made[-1].exists()
        assert not store.all("guest")
    replay.run(open_capsule(capsule), [0], store, Progress())
    assert made[-1].is_relative_to(store.root) and store.all("guest")  # it is of Debian's kernel


def test_what_a_killed_replay_leaves_is_removed_by_doctor(store: Store) -> None:
    """Parts and saved guests are in a directory that its process holds."""
    program = (
        "import os, sys; from pathlib import Path\n"
        "from agelab.base import atomic; from agelab.store.artefacts import Store\n"
        "with atomic.temp_dir(Store(Path(sys.argv[1])).cache('capsules')) as place:\n"
        "    (place / 'parts').mkdir(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", program, str(store.home)], check=False)
    assert [*store.cache("capsules").iterdir()]
    assert main(["doctor", "--clean"]) in (0, 3)
    assert not [*store.cache("capsules").iterdir()]


def test_one_run_is_one_capsule(store: Store, tmp_path: Path) -> None:
    run = made_run(store)
    for carry in (False, True):
        one, other = (pack(run, store, tmp_path / name, carry=carry) for name in ("a", "b"))
        assert one.path.read_bytes() == other.path.read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_a_capsule_has_all_of_its_run_and_no_place_of_its_host(store: Store, capsule: Path) -> None:
    found = open_capsule(capsule)
    assert [ran.cell.variant for ran in found.cells] == ["ext4", "xfs"]
    assert found.run_manifest.kernel and found.run_manifest.kernel.package.version == "6.1.1-1"
    assert {one.name for one in found.run_manifest.guest.root} == {"coreutils", "libc6"}
    data = capsule.read_bytes()
    assert b"somebody" not in data and str(store.home).encode() not in data


def test_a_command_of_several_lines_is_no_other_input_of_a_replay(store: Store, tmp_path: Path) -> None:
    made = made_run(store)
    inputs = made.recorded_inputs(0)
    inputs["making"]["run"] = "export PLACE=0\nexec test"
    made.write_inputs(0, inputs)
    end = made.end(0)
    assert end
    made.finish(0, end.model_copy(update={"inputs_key": inputs_key(inputs)}))
    packed = pack(made, store, tmp_path / "lines.capsule")
    assert packed.cells[0].inputs == made.inputs(0)


def test_another_program_lists_it_as_a_plain_tar(capsule: Path) -> None:
    with tarfile.open(capsule) as tar:
        assert tar.getnames() == list(contents(capsule))
        assert all(one.isreg() for one in tar)


def test_any_changed_byte_is_noticed(capsule: Path, full: Path) -> None:
    _change_each(capsule, 4)
    _change_each(full, 20)


@pytest.mark.full
def test_every_changed_byte_is_noticed(capsule: Path) -> None:
    _change_each(capsule, 1)


def _change_each(path: Path, step: int) -> None:
    whole = path.read_bytes()
    chance = random.Random(8)
    # Every byte that says something; of zeros, which fill up blocks and the corpus, some.
    places = [at for at, one in enumerate(whole) if one] + chance.sample(range(len(whole)), 200)
    with path.open("r+b", buffering=0) as file:
        for at in places[::step]:
            file.seek(at)
            file.write(bytes([whole[at] ^ 1 << chance.randrange(8)]))
            with pytest.raises(InputError, match="is not a valid capsule"):
                open_capsule(path)
            file.seek(at)
            file.write(whole[at : at + 1])
    assert open_capsule(path)


def test_a_capsule_cut_short_anywhere_or_with_more_behind_it_is_refused(capsule: Path) -> None:
    whole = capsule.read_bytes()
    changed = capsule.with_name("changed")
    for length in [*range(0, len(whole), 487), len(whole) - 1]:
        changed.write_bytes(whole[:length])
        with pytest.raises(InputError, match="is not a valid capsule"):
            open_capsule(changed)
    for more in (b"\0", bytes(512), bytes(10240), whole):
        changed.write_bytes(whole + more)
        with pytest.raises(InputError, match="does not end at its end marker"):
            open_capsule(changed)


def _replace(name: str, one: str, other: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        assert one.encode() in members[name]
        members[name] = members[name].replace(one.encode(), other.encode(), 1)

    return change


def _swap(name: str) -> Callable[[dict[str, bytes]], None]:
    def change(members: dict[str, bytes]) -> None:
        one, other = f"cells/0/{name}", f"cells/1/{name}"
        members[one], members[other] = members[other], members[one]

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_replace("cells/0/samples.jsonl", "1.25", "1.26"), "cell 0: its digest does not follow"),
        (_replace("cells/1/inputs.json", '"run": 1', '"run": 2'), "cell 1: its inputs_key does not follow"),
        (_replace("cells/0/end.json", '"ok"', '"failed"'), "cell 0: its digest does not follow"),
        (_replace("cells/0/end.json", '"ok"', '"interrupted"'), "cell 0 has not ended"),
        (_swap("samples.jsonl"), "cell 0: its digest does not follow"),
        (_swap("inputs.json"), "cell 0: its inputs_key does not follow"),
        (_swap("end.json"), "cell 0: its inputs_key does not follow"),
        (_replace("made-of.json", "1.2-3", "1.2-4"), "made-of.json and image.json name other packages"),
        (_replace("made-of.json", '"gcc-12"', '"gcc-13"'), "made-of.json names packages that are not those of its"),
        (_replace("image.json", "1.2-3", "1.2-4"), "made-of.json and image.json name other packages"),
        (
            _replace("image.json", '"initramfs": "', '"initramfs": "0'),
            "image.json is not of the image that its plan names",
        ),
        (_replace("kernel.json", '"recipe": 1', '"recipe": 2'), "kernel.json is not of the image's kernel"),
        (_replace("kernel.json", "debian:6.1", "debian:6.2"), "kernel.json is not of the plan's kernel"),
        (_replace("plan.json", '"virtual"', '"wall"'), "real time or on a real disk"),
        (_replace("plan.json", "model:none", "block:/dev/sda"), "real time or on a real disk"),
        (_replace("plan.json", '"variant": "xfs"', '"variant": "ext4"'), "two of its cells are the same"),
        (_replace("plan.json", "-small", "-other"), "its plan is another run's"),
        (lambda members: members.pop("cells/1/end.json"), "it has no cells/1/end.json"),
        (lambda members: members.pop("scenario.toml"), "it has no scenario.toml"),
        (lambda members: members.update({"cells/2/end.json": b"{}"}), "cells/2/end.json is of no cell"),
        (lambda members: members.update({"cells/0/maps/aged/free": b"x"}), "is not the map that the cell's"),
        (lambda members: members.update({"cells/7/maps/aged/free": b"x"}), "is of no cell of its plan"),
        (lambda members: members.update({"logs/log": b"x"}), "its logs are not those of its histories"),
        (lambda members: members.update({"artefacts/image/initramfs": b"x"}), "and no artefacts.json"),
        (lambda members: members.update({"plan.json": b"[" * 100_000}), "plan.json: "),
        (lambda members: members.update({"cells/0/inputs.json": b'{"a":' * 9000}), "cells/0/inputs.json: "),
        (lambda members: members.update({"plan.json": b'{"a": 1' + b"0" * 9000 + b"}"}), "plan.json: "),
        (lambda members: members.update({"scenario.toml": b"\xff"}), "scenario.toml is no text"),
        (lambda members: members.update({"more.json": b"{}"}), "'more.json' is not a name of a capsule's member"),
        (_replace("made-of.json", "coreutils_1.2", "../../etc/x_1.2"), "made-of.json: "),
        (_replace("made-of.json", '"coreutils"', '"-o=x"'), "made-of.json: "),
    ],
)  # fmt: skip
def test_what_does_not_follow_from_the_rest_is_refused_whoever_sealed_it(
    capsule: Path, change: Callable[[dict[str, bytes]], None], why: str
) -> None:
    with pytest.raises(InputError, match="is not a valid capsule") as error:
        open_capsule(resealed(capsule, change))
    assert why in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    "name", ["artefacts/image/root.squashfs", "artefacts/drive/module.ko", "artefacts/tools/0", "artefacts/corpora/0"]
)
def test_an_artefact_that_is_not_the_cells_own_is_refused(full: Path, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is not what its cells ran with"):
        open_capsule(resealed(full, lambda members: members.update({name: b"evil"})))


def _entry(name: str, kind: bytes = tarfile.REGTYPE, **fields: object) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for field, value in fields.items():
        setattr(info, field, value)
    return info


@pytest.mark.parametrize(
    "whole",
    [
        b"",
        b"\0",
        bytes(1024),
        b"hello",
        b"x" * 5000,
        tar_of((_entry("../../etc/cron.d/x"), b"x")),
        tar_of((_entry("/etc/cron.d/x"), b"x")),
        tar_of((_entry(LIST, tarfile.SYMTYPE, linkname="/etc/passwd"), b"")),
        tar_of((_entry(LIST, tarfile.LNKTYPE, linkname="seal"), b"")),
        tar_of((_entry(LIST, tarfile.CHRTYPE, devmajor=1, devminor=5), b"")),
        tar_of((_entry(LIST, tarfile.FIFOTYPE), b"")),
        tar_of((_entry(LIST, tarfile.DIRTYPE), b"")),
        tar_of((_entry(LIST), b"{}"), (_entry(LIST), b"{}")),
        tar_of((_entry("x" * 150), b"x"), form=tarfile.GNU_FORMAT),
        tar_of((_entry(LIST, pax_headers={"size": "9" * 30}), b"x"), form=tarfile.PAX_FORMAT),
        tar_of((_entry(LIST, pax_headers={"GNU.sparse.realsize": "1" + "0" * 15}), b"x"),
               form=tarfile.PAX_FORMAT),
        tar_of((_entry(LIST, mode=0o4755), b"x")),
        tar_of((_entry(LIST, uid=7), b"x")),
        tar_of((_entry("seal"), b"x")),
        gzip.compress(bytes(1 << 24)),
        parcel._header(LIST, 1 << 32) + bytes(1024),
        parcel._header(LIST, parcel.MAX_MEMBER_BYTES) + bytes(1024),
        parcel._header(LIST, 0)[:124] + b"\x80" + b"\xff" * 11 + bytes(1536),
        parcel._header(LIST, 0)[:124] + b"7" * 12 + bytes(1536),
        parcel._header(LIST, 0)[:124] + b"-0000000001\0" + bytes(1536),
    ],
)  # fmt: skip
def test_hostile_archives_are_refused_in_one_line(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / "hostile.capsule"
    path.write_bytes(whole)
    with pytest.raises(InputError, match="is not a valid capsule") as error:
        open_capsule(path)
    assert "\n" not in str(error.value)
    assert os.listdir(tmp_path) == ["hostile.capsule"]  # noqa: PTH208


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("pipe", "a pipe"), (".", "a directory"), ("nothing", "No such file")):
        with pytest.raises(InputError, match=why):
            open_capsule(tmp_path / name)
    with pytest.raises(InputError, match="a character device"):
        open_capsule(Path("/dev/zero"))


def test_a_member_of_a_size_that_data_does_not_have_is_refused(capsule: Path) -> None:
    large = bytes(capsules.MAX_DATA_BYTES + 1)
    with pytest.raises(InputError, match=r"plan\.json is larger than"):
        open_capsule(resealed(capsule, lambda members: members.update({"plan.json": large})))


@pytest.mark.parametrize(
    ("of", "limit", "why"),
    [(parcel, "MAX_FILES", "more than 5 members"), (capsules, "MAX_ALL_DATA_BYTES", "data is larger than 5 bytes")],
)
def test_a_capsule_of_more_members_or_data_than_memory_has_room_for_is_refused(
    capsule: Path, monkeypatch: pytest.MonkeyPatch, of: ModuleType, limit: str, why: str
) -> None:
    monkeypatch.setattr(of, limit, 5)
    with pytest.raises(InputError, match=why):
        open_capsule(capsule)


def test_artefacts_are_unpacked_under_names_of_ours(full: Path, tmp_path: Path) -> None:
    members = contents(full)
    infos = json.loads(members["artefacts/kernel/modules.json"])
    infos[0]["path"] = "../../../../outside.ko"
    infos[1]["path"] = "/etc/passwd"
    changed = resealed(full, lambda found: found.update({"artefacts/kernel/modules.json": json.dumps(infos).encode()}))
    place = tmp_path / "parts"
    brought = unpack(open_capsule(changed), place)
    assert brought is not None
    assert not list(tmp_path.glob("**/outside.ko"))
    [ext4] = brought.served.kernel.modules.closure(["ext4"])
    assert ext4.path == place / "image" / "modules" / "0.ko" and ext4.read() == b"module ext4"
    assert brought.served.kernel.modules.has("ext2")
    assert brought.served.content == open_capsule(full).request.plan.provenance["image_content"]
    assert brought.drive and brought.drive.name == "agedrive.ko"
    assert brought.tools["extents"].read_bytes() == b"a program"
    assert brought.data[""].image.read_bytes().startswith(b"data of the run")


def test_of_a_capsule_without_artefacts_nothing_is_unpacked(capsule: Path, tmp_path: Path) -> None:
    assert unpack(open_capsule(capsule), tmp_path / "parts") is None


def _packed(store: Store, tmp_path: Path, change: Callable[[Path], None]) -> None:
    run = made_run(store)
    change(run.path)
    pack(run, store, tmp_path / "no.capsule")


def _plan(one: str, other: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        run = RunDirectory(path)
        run.write_plan(RunPlan.model_validate_json(run.plan().model_dump_json().replace(one, other)))

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_plan('"virtual"', '"wall"'), "of the wall clock"),
        (_plan("model:none", "file:/var/tmp/disk.img"), "ran on file:/var/tmp/disk.img"),
        (lambda path: (path / "cells/1/end.json").unlink(), "1 of 2 cells have not ended"),
        (lambda path: (path / "made-of.json").unlink(), "did not record"),
        (lambda path: (path / "samples.jsonl").write_text(""), "its digest does not follow"),
        (_plan('"image":"', '"image":"0'), "the store no longer has"),
    ],
)
def test_what_cannot_be_packed_is_refused_with_the_reason(
    store: Store, tmp_path: Path, change: Callable[[Path], None], why: str
) -> None:
    with pytest.raises(InputError, match=why):
        _packed(store, tmp_path, change)
    assert not list(tmp_path.glob("*.capsule")) and not list(tmp_path.glob(".*"))


def test_show_prints_what_is_in_it(capsule: Path, cli: Cli) -> None:
    said = cli.out("capsule", "show", capsule)
    assert "debian:6.1 = 6.1.0-1-amd64 (6.1.1-1)" in said and "of 3 packages" in said
    assert open_capsule(capsule).cells[1].end.digest in said  # type: ignore[union-attr, operator]
    shown = cli.json("capsule", "show", capsule, "--json")
    assert shown["made_of"]["guest"]["root"][1]["version"] == "2:1.0~rc1+b1"


def test_nothing_in_a_capsule_moves_the_terminal(capsule: Path, cli: Cli) -> None:
    changed = resealed(capsule, _replace("made-of.json", "some data", r"\u001b[2J\u202esome data"))
    assert r"\x1b[2J\u202esome data" in cli.out("capsule", "show", changed)


def test_a_bad_capsule_is_one_line_and_exit_2(tmp_path: Path, cli: Cli) -> None:
    bad = tmp_path / "bad.capsule"
    bad.write_bytes(b"x" * 2000)
    for verb in ("show", "replay"):
        assert len(cli.err("capsule", verb, bad).splitlines()) == 1
    cli.run("capsule", "pack", "no-such-run", code=2)


def test_cells_are_named_by_their_numbers(capsule: Path, cli: Cli) -> None:
    for wrong in ("2", "x", "", "0,"):
        assert "which has 0 to 1" in cli.err("capsule", "replay", capsule, "--cells", wrong)


def _replayed(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str, **of: Any
) -> tuple[int, str]:
    path = pack(made_run(store, **of), store, tmp_path / "one.capsule").path
    code = main(["capsule", "replay", str(path), *words])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ({"spec": "tree:/home/somebody/linux"}, "made of files that are not in the capsule; name it with --kernel"),
        ({"own": True}, "the corpus is missing (some data"),
        ({"words": {"crash": "copy+1"}}, "begun with --crash, which this agelab does not know"),
        ({"words": {"machine": "of-tomorrow"}}, "no machine 'of-tomorrow'"),
        ({"words": {"vcpus": "many"}}, "--vcpus 'many': input should be a valid integer"),
        ({"words": {"disks": "file:/etc/passwd"}}, "runs in real time"),
        ({"words": {"device": "/dev/../etc/passwd"}}, "name a device file"),
    ],
)
def test_what_cannot_be_rebuilt_is_said_for_each_cell(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], of: dict[str, Any], why: str
) -> None:
    code, said = _replayed(store, tmp_path, capsys, **of)
    assert code == 3
    assert said.count(f"could not be rebuilt: {said.partition('rebuilt: ')[2].splitlines()[0]}") == 2
    assert why in said
    assert not list((store.home / "cache" / "capsules").iterdir())


def test_answers_name_each_package_in_its_own_version(capsule: Path, tmp_path: Path) -> None:
    found = open_capsule(capsule)
    elsewhere = Store(tmp_path / "elsewhere", resolutions=found.run_manifest.resolutions)
    assert debian_kernel.resolve_packages("6.1", elsewhere) == found.run_manifest.kernel
    assert (
        roots.resolve_packages(roots.definition(), roots.served(roots.definition(), ()), elsewhere, refresh=True)
        == found.run_manifest.guest
    )
    assert buildroot.resolve_compiler(elsewhere, "bookworm") == found.run_manifest.tools
    assert qemu.resolve_packages(elsewhere) == found.run_manifest.qemu
    assert not list(elsewhere.cache("resolved").iterdir())  # what a capsule says is remembered by nobody


def test_a_capsule_with_its_guest_runs_with_todays_qemu_where_no_mirror_has_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    progress = cast(Progress, SimpleNamespace(stage=told.append))

    def obtain(store: Store, notify: Notify) -> None:
        if store.resolutions:
            raise PackagesVanished("the mirror of Debian bookworm has no qemu-system-x86 1:7.2 (any more)")

    monkeypatch.setattr(qemu, "obtain", obtain)
    assert replay._has_qemu(Store(tmp_path), progress) and told == []
    assert not replay._has_qemu(Store(tmp_path, resolutions={"key": {}}), progress)
    assert told == [
        "the mirror of Debian bookworm has no qemu-system-x86 1:7.2 (any more): "
        "the cells run with today's QEMU, which is another input"
    ]


def _ran(run: CellResult, **changed: Any) -> CellResult:
    return dataclasses.replace(run, **changed)


def test_the_verdict_names_the_input_else_the_sample_that_differs(store: Store, capsule: Path) -> None:
    found = open_capsule(capsule)
    here = found.cells[0]
    assert here.end is not None
    same = replay.compare_cells(found, [0, 1], RunDirectory(next(store.runs.glob("*/"))))
    assert [one.outcome for one in same] == ["identical"] * 2
    inputs = {**here.inputs, "making": {**here.inputs["making"], "image": "other"}}
    other_input = replay.compare_cell(0, here, _ran(here, read_inputs=lambda: inputs))
    assert (
        other_input.outcome == "differs" and other_input.why == "other inputs: making.image; every sample is the same"
    )
    samples = (here.samples[0].model_copy(update={"value": 2.5}), *here.samples[1:])
    ended = here.end.model_copy(update={"digest": "sha256:" + "0" * 64})
    other_sample = replay.compare_cell(0, here, _ran(here, samples=samples, end=ended))
    assert other_sample.why == "the inputs are the same, 1 of 2 samples are not"
    assert [row.place for row in other_sample.samples] == ["copy 1 elapsed"]
    assert replay.compare_cell(0, here, _ran(here, end=None)).why == "it did not end: interrupted"


def test_packages_that_the_mirror_has_no_more_are_named(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there, older, gone = package("coreutils"), package("libc6", "2:1.0"), package("bash")

    def run(argv: list[str], **how: Any) -> process.Completed:
        if "download" in argv:
            raise process.ProcessFailed(argv, 100, "E: Version '2:1.0' for 'libc6' was not found")
        assert "madison" in argv
        return process.Completed(0, "coreutils | 1.2-3 | mirror\n libc6 | 2:1.1 | mirror\n", "")

    monkeypatch.setattr(process, "run", run)
    (store.cache("apt") / "bookworm").mkdir()
    (store.cache("apt") / "bookworm" / "updated").touch()
    with pytest.raises(PackagesVanished, match=r"bookworm has no libc6 2:1\.0, bash 1\.2-3 \(any more\)$") as error:
        Archive(store, "bookworm").download([there, older, gone])
    assert error.value.suite == "bookworm"


def test_lists_that_are_older_than_the_run_are_renewed_once(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run_request(*_: object, **__: object) -> None:
        asked.append("run")
        raise PackagesVanished("the mirror of Debian bookworm has no bash 1.2-3 (any more)", suite="bookworm")

    monkeypatch.setattr(runner, "run_request", run_request)
    monkeypatch.setattr(Archive, "update", lambda archive: asked.append(f"update {archive.suite}"))
    code, said = _replayed(store, tmp_path, capsys, words={"disks": "model:none"})
    assert asked == ["run", "update bookworm", "run"]
    assert code == 3 and said.count("could not be rebuilt: the mirror of Debian bookworm has no bash 1.2-3") == 2


PROGRAM = """
[[steps]]
name = "fio"
program = "fio"
job = "job.fio"
origin = "estimated"
"""


def test_a_capsule_has_the_job_files_of_its_programs_and_pins_their_packages(store: Store, tmp_path: Path) -> None:
    made = made_run(store)
    (made.path / run_manifest.SCENARIO).write_text(SMALL.read_text() + PROGRAM)
    jobs = JobFiles.model_construct(jobs={"job.fio": b"[one]\nrw=read\n"})
    write(made.path / run_manifest.JOBS, jobs.model_dump_json())
    found = pack(made, store, tmp_path / "jobs.capsule")
    source = replay.selection_of(open_capsule(found.path))
    assert source.workload.jobs == {"job.fio": b"[one]\nrw=read\n"} and source.workload.packages == ("fio",)


READING = """
[[unstated]]
says = "whether it was cold"
name = "cold"
called = "a cold cache"
instead = { memory = { dirty_percent = { value = 33, origin = "estimated" } } }
"""


def test_a_replay_reads_the_scenario_as_the_run_did(store: Store, tmp_path: Path) -> None:
    made = made_run(store, words={"instead": "cold"})
    (made.path / run_manifest.SCENARIO).write_text(SMALL.read_text() + READING)
    found = pack(made, store, tmp_path / "cold.capsule")
    assert replay.selection_of(open_capsule(found.path)).scenario.memory.dirty_percent.value == 33


def test_a_capsule_has_the_aging_profiles_that_its_histories_name_by_their_paths(store: Store, tmp_path: Path) -> None:
    made = made_run(store)
    own = (PROFILES / "agrawal-2007.toml").read_bytes()
    text = SMALL.with_name("small-history.toml").read_text().replace("small-history", "small")
    text = text.replace('"agrawal-2007"', '"./mine.toml"')
    (made.path / run_manifest.SCENARIO).write_text(text)
    jobs = JobFiles.model_construct(jobs={"profiles/profile": own})
    write(made.path / run_manifest.JOBS, jobs.model_dump_json())
    found = pack(made, store, tmp_path / "profile.capsule")
    [history] = replay.selection_of(open_capsule(found.path)).scenario.histories
    assert isinstance(history, Profiled) and history.profile == load_profile("agrawal-2007")


def test_a_run_that_brought_files_is_not_packed_and_a_capsule_names_none(store: Store, tmp_path: Path) -> None:
    made = made_run(store)
    text = SMALL.read_text().replace("[citation]", 'bring = ["/etc/shadow"]\n[citation]', 1)
    (made.path / run_manifest.SCENARIO).write_text(text)
    hostile = pack(made, store, tmp_path / "hostile.capsule")
    with pytest.raises(InputError, match="bring: this scenario came from elsewhere, and names files of this host"):
        replay.selection_of(hostile)
    of = read(made.path / run_manifest.MADE_OF, RunManifest).model_copy(update={"brings": True})
    write(made.path / run_manifest.MADE_OF, of.model_dump_json())
    with pytest.raises(
        InputError, match="brought more of its user's files into its guests than a capsule carries, 32 MiB"
    ):
        pack(made, store, tmp_path / "brought.capsule")
