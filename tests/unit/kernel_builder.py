"""Build small kernels for tests: a bzImage, a directory of modules, a package."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from agelab.kernel import guest_needs
from agelab.kernel.initramfs import BASE_MODULES
from tests.unit.test_kernel_modules import module_elf
from tests.unit.test_kernel_vmlinux import RELEASE, bzimage, gzip, kernel

CONFIG = "".join(f"CONFIG_{option}=y\n" for option in guest_needs.BUILTIN_OPTIONS) + (
    'CONFIG_CC_VERSION_TEXT="gcc-12 (Debian 12.2.0-14) 12.2.0"\nCONFIG_HZ=250\nCONFIG_EXT4_FS=m\n'
    "# CONFIG_XFS_FS is not set\n"
)
BUILT_IN = CONFIG + "".join(f"CONFIG_{guest_needs.MODULE_OPTIONS[name]}=y\n" for name in BASE_MODULES)


def module(release: str = RELEASE) -> bytes:
    return module_elf(f"license=GPL\0vermagic={release} SMP preempt mod_unload\0".encode())


def modules(tree: Path, release: str = RELEASE, names: tuple[str, ...] = (*BASE_MODULES, "ext4")) -> Path:
    """A directory of modules, with one of them built in."""
    for name in names:
        file = tree / "kernel" / "fs" / f"{name}.ko"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(module(release))
    (tree / "modules.builtin").write_text("kernel/fs/btrfs.ko\n")
    return tree


def image(directory: Path, config: str = "", name: str = "bzImage") -> Path:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bzimage(gzip(kernel(config))))
    return path


def package(directory: Path, name: str, files: Mapping[str, bytes], version: str = "6.6-1") -> Path:
    """A .deb with these files."""
    tree = directory / name
    for path, data in {
        **files,
        "DEBIAN/control": f"Package: {name}\nVersion: {version}\nArchitecture: amd64\n"
        "Maintainer: nobody <n@example.org>\nDescription: test\n".encode(),
    }.items():
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_bytes(data)
    target = directory / f"{name}.deb"
    subprocess.run(["dpkg-deb", "--build", tree, target], check=True, stdout=subprocess.DEVNULL)
    return target


def linux(
    config: str = CONFIG, release: str = RELEASE, names: tuple[str, ...] = BASE_MODULES
) -> dict[str, bytes]:
    """Return the files of a kernel package."""
    found = {
        f"boot/vmlinuz-{release}": bzimage(gzip(kernel())),
        f"boot/config-{release}": config.encode(),
        f"lib/modules/{release}/modules.builtin": b"",
    }
    return found | {f"lib/modules/{release}/kernel/fs/{name}.ko": module(release) for name in names}
