"""``agelab kernel`` as a user meets it, without a network."""

from pathlib import Path

import pytest

from agelab import kernel
from agelab.kernel import debian_kernel
from agelab.kernel.debian_kernel import AvailableKernel
from agelab.machine.drive import module
from agelab.store.artefacts import Store
from tests.build.cli import Cli
from tests.build.kernel_builder import BUILT_IN, RELEASE, image, linux, package


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store, and a mirror that has two kernels."""
    offered = [
        AvailableKernel(release="6.1.0-48-amd64", version="6.1.172-1", suite="bookworm", headers=False),
        AvailableKernel(release=RELEASE, version="6.6-1", suite="sid", headers=True),
    ]
    monkeypatch.setenv("AGELAB_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(kernel, "available", lambda *_, **__: offered)
    return tmp_path


def test_what_the_mirror_and_the_store_have_is_one_list(home: Path, cli: Cli) -> None:
    store = Store(home / "home")
    deb = kernel.resolve(f"deb:{package(home, f'linux-image-{RELEASE}', linux())}", store)
    own = kernel.resolve(f"image:{image(home, BUILT_IN)}", store)
    lines = [line.split() for line in cli.out("list", "kernels").splitlines()]
    assert lines == [
        ["debian:6.1.0-48-amd64", "6.1.172-1", "bookworm", "no", "headers:", "model:none", "alone"],
        ["*", f"debian:{RELEASE}", "6.6-1", "sid"],
        ["*", RELEASE, "#1", "SMP", "today", "the", "store", "alone", own.key[:12]],
        ["*", "in", "the", "store"],
    ]
    first, second, third = cli.json("list", "kernels", "--json")
    assert (first["spec"], first["stored"], first["headers"]) == ("debian:6.1.0-48-amd64", False, False)
    assert (second["key"], second["suite"]) == (deb.key, "sid")
    assert (third["spec"], third["release"], third["key"]) == (None, RELEASE, own.key)


def test_a_kernel_says_where_it_came_from_and_what_it_serves(home: Path, cli: Cli) -> None:
    spec = f"image:{image(home, BUILT_IN + 'CONFIG_XFS_FS=y')}"
    out, err = cli.run("kernel", "show", spec)
    lines = dict(line.strip().split(maxsplit=1) for line in out.splitlines())
    assert (lines["xfs"], lines["ext4"]) == ("built in", "no module ext4")
    assert lines["compiler"] == "gcc-12 (Debian 12.2.0-14) 12.2.0"
    assert lines["suite"] == "none of Debian's"
    assert err == f"unpacking the kernel {RELEASE}\n"
    told = cli.json("kernel", "show", spec, "--json")
    assert (told["spec"], told["filesystems"]["xfs"]) == (spec, "built in")
    assert told["provenance"]["compiler"] == lines["compiler"]
    assert {path.name for path in (home / "home" / "store" / "kernel" / told["key"]).iterdir()} == {
        *("config", "manifest.json", "modules", "modules.json", "vmlinux", "vmlinuz")
    }


def test_several_kernels_are_fetched_with_what_they_need(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "obtain", lambda found, *_: home / "agedrive.ko" if found.kind == "deb" else none())
    specs = [f"deb:{package(home, f'linux-image-{RELEASE}', linux())}", f"image:{image(home, BUILT_IN)}"]
    said = cli.out("kernel", "fetch", *specs).splitlines()
    assert said[0].startswith(f"{specs[0]} is {RELEASE}, package version 6.6-1, in ")
    assert said[1] == f"  the drive's module: {home}/agedrive.ko"
    assert said[2].startswith(f"{specs[1]} is {RELEASE}, in ")
    assert said[3] == "  with model:none alone: no headers"
    told = cli.json("kernel", "fetch", "--json", *specs)
    assert [(one["drive_module"] is None, one["why_no_module"]) for one in told] == [
        (False, None),
        (True, "no headers"),
    ]


def none() -> Path:
    raise module.NoHeaders("no headers")


def test_no_such_version_is_one_line_with_the_nearest(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lists:
        suite = "bookworm"

        def versions(self, prefix: str) -> dict[str, str]:
            return {"linux-image-6.1.0-48-amd64": "6.1.172-1", "linux-image-6.12.9+deb13-amd64": "6.12.9-1"}

    monkeypatch.setattr(debian_kernel, "first_suite", lambda: "bookworm")
    monkeypatch.setattr(debian_kernel, "archives", lambda *_, **__: [Lists()])
    error, _ = cli.err("kernel", "fetch", "6.13").splitlines()
    assert "'debian:6.13'" in error and error.endswith(" debian:6.12, debian:6.1")


@pytest.mark.parametrize(
    "words",
    [
        ["kernel", "show", ""], ["kernel", "fetch", ""],
        ["image", "show", "--kernel", ""], ["image", "build", "--kernel", ""],
        ["run", "aging-ext4", "--kernel", ""],
    ],
)  # fmt: skip
def test_an_empty_name_is_no_kernel(words: list[str], home: Path, cli: Cli) -> None:
    assert "no kernel ''; there are: " in cli.err(*words)
