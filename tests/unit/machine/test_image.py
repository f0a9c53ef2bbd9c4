"""Sealed images without a guest: identity, the proof's plan, assembly, and what a failing Packer says."""

import json
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import pytest

from agelab.base import process
from agelab.base.errors import AgelabError, HostError, InputError
from agelab.debian import Archive
from agelab.machine.image import DoesNotBoot, assemble, packer, proof, sealed_image, tools
from agelab.machine.image import root as roots
from agelab.scenario import selection
from agelab.scenario.filesystem import Filesystem
from agelab.scenario.toml_files import read_all
from agelab.store.artefacts import Store
from tests.build.image_builder import FILESYSTEMS, PACKAGE, filesystem, kernel, store
from tests.build.waiting import until
from tests.capabilities import needs_root

__all__ = ["store"]
QEMU, PACKER = "qemu-system-x86_64", "packer"


def test_an_image_holds_what_a_cell_boots_and_what_was_proved(store: Store) -> None:
    image = sealed_image.build(kernel(store), store, FILESYSTEMS)
    assert image.root.read_bytes() == b"root"
    assert image.boot_image.read_bytes() == b"kernel"
    assert image.initramfs.read_bytes().startswith(b"070701")
    assert {key: found.status for key, found in image.proof.items()} == {
        ("ext4", "period"): "ok",
        ("ext4", "today"): "ok",
        ("reiser4", "period"): "unsupported",
        ("reiser4", "today"): "unsupported",
    }
    assert str(image.proof["reiser4", "today"].reason).endswith("no module reiser4; it needs a patch")
    assert sorted(path.name for path in image.artefact.directory.iterdir()) == [
        *("image.json", "initramfs", "manifest.json", "root.squashfs", "vmlinuz")
    ]
    assert [found.key for found in sealed_image.find(image.kernel, store)] == [image.key]


def test_concurrent_builds_do_the_work_once(store: Store) -> None:
    one = kernel(store)
    lines: list[str] = []
    keys: list[str] = []

    def build() -> None:
        keys.append(sealed_image.build(one, store, FILESYSTEMS, progress=lines.append).key)

    threads = [threading.Thread(target=build) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 6 and len(set(keys)) == 1
    assert sum("proving" in line for line in lines) == 1


def test_a_suite_out_of_reach_is_told_with_the_file_that_asks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(archive: Archive, names: Sequence[str], owners: object) -> None:
        raise HostError(f"cannot fetch the package lists of Debian {archive.suite}", "check the network")

    monkeypatch.setattr(Archive, "require", unreachable)
    mine = filesystem("mine", "mine").model_copy(update={"suite": "sid"})
    own = roots.own_definition(roots.definition(), (), [mine])
    with pytest.raises(HostError, match=r"/mine\.toml: suite: cannot fetch the package lists of Debian sid$"):
        roots.resolve_packages(own, [mine], Store(tmp_path))
    with pytest.raises(HostError, match=r"^cannot fetch the package lists of Debian bookworm$"):
        roots.resolve_packages(roots.definition(), [], Store(tmp_path))


def test_a_root_of_another_suite_serves_the_scenarios_filesystems_alone() -> None:
    today = selection.select("today").scenario
    definition, served = roots.of_scenario(today.model_copy(update={"suite": "trixie"}), ())
    assert definition.suite == "trixie"
    assert {one.name for one in served} == {variant.filesystem for variant in today.variants}


def test_the_guest_inserts_the_modules_of_each_filesystem_for_its_proof(store: Store) -> None:
    modules = kernel(store).modules
    plan = proof.plan_proof(FILESYSTEMS, modules)
    assert plan.items[0].modules == (("ext4", False),)
    assert plan.module_files(modules) == {"modules/ext4.ko": b"ext4"}


def test_a_root_whose_programs_lack_a_library_is_refused_with_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(arguments: Sequence[str], work: Path, **_: object) -> None:
        (work / "installed").write_text("busybox-static 1\n")
        (work / "lacking").write_text("/usr/sbin/mkfs.mine lacks libmine.so.1\n")

    monkeypatch.setattr(roots, "_mmdebstrap", build)
    with pytest.raises(AgelabError, match=r"lack libraries: /usr/sbin/mkfs\.mine lacks") as raised:
        roots._tree(roots.definition(), [PACKAGE], [], tmp_path / "work")
    assert "guest.toml removes them" in raised.value.hint


def test_the_plan_names_real_places(store: Store) -> None:
    plan = proof.plan_proof(FILESYSTEMS, kernel(store).modules)
    assert plan.modules == ("ext4",)
    assert plan.items[0].mkfs == ("mkfs", "-U", proof.UUID, "/dev/pmem1")
    assert plan.items[0].mount == (
        "mount", "-t", "ext4", "-o", "strictatime,barrier=0", "/dev/pmem1", "/run/proof",
    )  # fmt: skip
    assert plan.items[1].mount == ("mount", "-t", "ext4", "/dev/pmem1", "/run/proof")
    assert plan.items[0].mount_read_only[4] == "strictatime,barrier=0,ro"
    assert plan.items[0].umount == ("umount", "/run/proof")
    assert set(json.loads(plan.for_guest())) == {"device", "items"}


def test_what_the_kernel_says_of_a_broken_one_is_no_part_of_an_images_identity(store: Store) -> None:
    more = [one.model_copy(update={"gone": ("shut down",)}) for one in FILESYSTEMS]
    modules = kernel(store).modules
    assert proof.plan_proof(more, modules) == proof.plan_proof(FILESYSTEMS, modules)


UFS = filesystem("ufs", "ufs").model_copy(
    update={"kernel_config": ("UFS_FS_WRITE",), "tools": ("make", "check"), "modules_why": "Debian's only reads"}
)


def test_a_module_that_was_built_to_do_less_is_unsupported(store: Store) -> None:
    image = sealed_image.build(kernel(store), store, [*FILESYSTEMS, UFS])
    assert image.proof["ufs", "period"].status == "unsupported"
    assert str(image.proof["ufs", "period"].reason).endswith("_UFS_FS_WRITE; Debian's only reads")


def test_programs_that_a_proof_needs_are_made_and_part_of_the_identity(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = kernel(store, "CONFIG_UFS_FS_WRITE=y\n")
    asked: list[Path] = []
    given: list[dict[str, bytes]] = []
    real = sealed_image._prove

    def prove(*arguments: Any) -> None:
        given.append(arguments[6])
        real(*arguments)

    def programs(_: Store, __: object, sources: Path) -> dict[str, Path]:
        asked.append(sources)
        return {name: tmp_path / name for name in (*UFS.tools, "another")}

    monkeypatch.setattr(tools, "obtain", programs)
    monkeypatch.setattr(sealed_image, "_prove", prove)
    for name in UFS.tools:
        (tmp_path / name).write_text(name)
    image = sealed_image.build(writes, store, [*FILESYSTEMS, UFS])
    assert image.proof["ufs", "today"].status == "ok" and asked == [tools.FILESYSTEMS]
    assert given == [{"busybox": b"busybox", "tools/make": b"make", "tools/check": b"check"}]
    (tmp_path / "check").write_text("another")
    assert sealed_image.build(writes, store, [*FILESYSTEMS, UFS]).key != image.key
    sealed_image.build(writes, store, FILESYSTEMS)
    assert len(asked) == 2


def test_every_filesystem_of_the_project_fits_on_the_scratch_disk() -> None:
    assert max(one.minimum_mib for one in read_all("filesystems", Filesystem)) << 20 <= proof.SCRATCH


def test_a_root_that_changed_while_it_was_proved_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").write_bytes(b"changed")
    (tmp_path / "proof.json").write_text("[]")
    description = assemble.Description(
        kernel=assemble.ImageKernel(release="6.1", version="1", key="k"), root="0" * 64, template="t", packages=()
    )
    assembly = assemble.Assembly(
        target=tmp_path, files={"root.squashfs": tmp_path / "root"}, description=description, unsupported=()
    )
    (tmp_path / "assembly.json").write_text(assembly.model_dump_json())
    with pytest.raises(AgelabError, match="root has changed"):
        assemble.assemble(tmp_path)


@pytest.mark.parametrize(
    "build", [lambda work: packer.build(work, work / PACKER, work / QEMU, {}), lambda work: roots._mmdebstrap([], work)]
)
def test_a_builder_that_finds_no_room_is_told_in_a_line(
    build: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It goes on after that, and says much."""
    line = f"copying /{'x' * 400}/disk: no space left on device"

    def run(argv: list[str], **_: object) -> process.Completed:
        raise process.ProcessFailed(argv, 1, f"{line}\n" + "cleaning up\n" * 30, "the command")

    monkeypatch.setattr(process, "run", run)
    with pytest.raises(HostError) as raised:
        Store(tmp_path / "home").obtain("image", {}, build)
    said = str(raised.value)
    assert said.startswith(f"cannot write below {tmp_path / 'home/store'}: ") and said.endswith(line[-80:])
    assert len(said.splitlines()) == 1


LOOK = """#!/usr/bin/python3
import pathlib, socket
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 5).close()
try:
    socket.create_connection(("127.0.0.1", {port}), 5).close()
except OSError as error:
    pathlib.Path("{said}").write_text(type(error).__name__)
"""


def test_packer_and_its_guest_reach_each_other_and_nothing_of_the_host(tmp_path: Path) -> None:
    """The guest, whose kernel may be anybody's, has a network card, and QEMU takes it wherever Packer could go."""
    said = tmp_path / "said"
    with socket.create_server(("127.0.0.1", 0)) as service:
        (tmp_path / PACKER).write_text(LOOK.format(port=service.getsockname()[1], said=said))
        (tmp_path / PACKER).chmod(0o755)
        packer.build(tmp_path, tmp_path / PACKER, tmp_path / QEMU, {})
    assert said.read_text() == "ConnectionRefusedError"


PANIC = "Kernel panic - not syncing: VFS: Unable to mount root fs"
FAILED, SLOW = process.ProcessFailed(["packer"], 1, "Timeout waiting for SSH.\n"), process.TimedOut("packer")


@pytest.mark.parametrize(
    ("console", "error", "panicked", "words"),
    [
        ("init: cannot insert nfit.ko\n", FAILED, "", ["console ends: init: cannot insert nfit.ko", "waiting for SSH"]),
        (f"BUG: oh\n{PANIC}\n", FAILED, f"{PANIC} (BUG: oh)", [PANIC]),
        (f"BUG: oh\n{PANIC}\n", SLOW, f"{PANIC} (BUG: oh)", []),
        ("all is well\n", SLOW, "", []),
        ("all is well\n", process.ProcessFailed(["packer"], 1, "the VM exited\n"), None, ["the VM exited"]),
    ],
    ids=["no login", "panic", "panic, too slow", "too slow", "Packer alone"],
)  # fmt: skip
def test_a_kernel_that_does_not_boot_is_told_from_a_packer_that_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    console: str,
    error: Exception,
    panicked: str | None,
    words: list[str],
) -> None:
    """Its panic is empty where it has none; where Packer alone fails the kernel is not to blame."""

    def run(argv: list[str], **_: object) -> process.Completed:
        raise error

    monkeypatch.setattr(process, "run", run)
    (tmp_path / "console.log").write_text(console)
    with pytest.raises(HostError) as raised:
        packer.build(tmp_path, tmp_path / PACKER, tmp_path / QEMU, {})
    assert all(text in str(raised.value) for text in words)
    assert isinstance(raised.value, DoesNotBoot) is (panicked is not None)
    if isinstance(raised.value, DoesNotBoot):
        assert (raised.value.panicked or "") == panicked


PACKS = """
import sys
from pathlib import Path
from agelab.machine.image import root
root._pack(Path(sys.argv[1]), Path(sys.argv[2]))
"""


@needs_root
def test_a_root_is_the_same_bytes_whoever_packs_it() -> None:
    """Its top belongs to root, not to the user: the image of a plain user is root's."""
    with TemporaryDirectory(dir="/var/tmp") as name:
        place, user = Path(name), f"agelab-{secrets.token_hex(3)}"
        place.chmod(0o777)
        subprocess.run(["useradd", "--no-create-home", "--home-dir", name, user], check=True)
        try:
            (place / "file").write_text("content")
            subprocess.run(["tar", "-C", name, "-cf", str(place / "tar"), "file"], check=True)
            become = ("setpriv", "--reuid", user, "--regid", user, "--init-groups", "--")
            for number, before in enumerate(((), become)):
                words = [*before, sys.executable, "-c", PACKS, str(place / "tar"), str(place / str(number))]
                subprocess.run(words, cwd="/", check=True)
        finally:
            subprocess.run(["userdel", user], check=True)
        assert (place / "0").read_bytes() == (place / "1").read_bytes()


def test_a_store_may_have_a_long_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """apt names a list after its source's whole path, in one name of 255 bytes, and writes ж as %d0%b6."""
    work = tmp_path / ("ж" * 100) / ("x" * 200) / "work"
    sources = []

    def build(arguments: Sequence[str], work: Path, **_: object) -> None:
        sources.append(arguments[-1])
        (work / "installed").write_text("busybox-static 1\n")
        (work / "lacking").write_text("")

    monkeypatch.setattr(roots, "_mmdebstrap", build)
    roots._tree(roots.definition(), [PACKAGE], [], work)
    [source] = sources
    assert len(quote(source)) < 150


def test_what_is_in_memory_is_seen_by_its_program_alone(tmp_path: Path) -> None:
    script = 'touch "$0/file"; stat -f -c %T "$0"'
    done = process.run(["sh", "-c", script, str(tmp_path)], isolated=True, in_memory=tmp_path)
    assert done.stdout == "tmpfs\n" and not list(tmp_path.iterdir())


def test_what_a_builder_mounts_and_starts_ends_with_it(tmp_path: Path) -> None:
    """A builder that is killed unmounts nothing, and whoever removes its tree would walk into the host's /sys."""
    (tmp_path / "on").mkdir()
    helper = '(sh -c "while :; do sleep 0.1; done" "$0/helper") &'
    script = f'mount -t tmpfs none "$0/on" || exit; {helper} touch "$0/on/mounted" "$0/ready"; sleep 60'
    with pytest.raises(process.ProcessFailed):
        process.run(["sh", "-c", script, str(tmp_path)], isolated=True, give_up=(tmp_path / "ready").exists)
    assert not (tmp_path / "on" / "mounted").exists()
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    # Its processes have been killed, and the kernel ends them a moment later.
    until(lambda: not process.run(["pgrep", "-f", str(tmp_path)], ok=(0, 1)).stdout)


def test_an_images_key_has_what_is_to_be_proved_and_what_guests_boot_has_not(store: Store, tmp_path: Path) -> None:
    """So a cell has one key, whether its image was proved for its own filesystem or for all, and in any store."""
    every = sealed_image.build(kernel(store), store, FILESYSTEMS)
    other = Store(tmp_path / "elsewhere")
    same = sealed_image.build(kernel(other), other, FILESYSTEMS)
    assert (same.key, same.content) == (every.key, every.content)
    third = Store(tmp_path / "third")
    some = sealed_image.build(kernel(third), third, FILESYSTEMS, proved=FILESYSTEMS[:1])
    assert some.key != every.key and some.content == every.content


def test_an_image_that_has_proved_more_serves_unless_it_is_damaged(store: Store, tmp_path: Path) -> None:
    def build(proved: list[Filesystem]) -> sealed_image.Image:
        found = Store(store.home)
        return sealed_image.build(kernel(found), found, FILESYSTEMS, proved=proved)

    first = build(FILESYSTEMS[:1])
    every = build(FILESYSTEMS)
    assert every.key != first.key and len(every.proof) > len(first.proof)
    assert build(FILESYSTEMS[1:]).key == every.key
    every.initramfs.write_bytes(b"another")
    again = build(FILESYSTEMS[1:])
    assert again.key not in (first.key, every.key)
    assert {name for name, _ in again.proof} == {FILESYSTEMS[1].name}
    other = FILESYSTEMS[1].model_copy(update={"modules": ("ufs",)})
    assert build([other]).key not in (first.key, every.key, again.key)


def test_the_root_has_the_packages_and_the_newest_suite_of_what_asks_for_them() -> None:
    plain = roots.definition()
    definition, served = roots.of_scenario(selection.select("aging").scenario, ())
    assert definition == plain and sorted(one.name for one in served) == sorted(plain.filesystems)
    mine = filesystem("mine", "mine").model_copy(update={"packages": ("mine-tools",), "suite": "sid"})
    own = roots.own_definition(plain, (), [*served, mine])
    assert own != plain and "/etc/mdadm" in own.remove
    assert not any("libgnutls" in path for path in own.remove)
    assert "mine-tools" in roots.question(own, [*served, mine])["packages"]
    assert "mine-tools" not in roots.question(plain, served)["packages"]
    for made, asked, suite in (
        ([*served, mine], "", "sid"), ([mine], "trixie", "sid"), ([], "trixie", "trixie"), ([], "", plain.suite),
    ):  # fmt: skip
        assert roots.own_definition(plain, (), made, asked).suite == suite
    old = mine.model_copy(update={"suite": "bullseye"})
    for asked, made in (("bullseye", []), ("", [old])):
        with pytest.raises(InputError, match="suite 'bullseye' is older than bookworm"):
            roots.own_definition(plain, (), made, asked)
