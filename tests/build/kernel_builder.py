"""Build small kernels for tests: a bzImage, a directory of modules, a package."""

import struct
import subprocess
import zlib
from collections.abc import Mapping
from pathlib import Path

from agelab.kernel import guest_needs
from agelab.kernel.initramfs import BASE_MODULES

RELEASE = "6.6.0-own"
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


def linux(config: str = CONFIG, release: str = RELEASE, names: tuple[str, ...] = BASE_MODULES) -> dict[str, bytes]:
    """Return the files of a kernel package."""
    found = {
        f"boot/vmlinuz-{release}": bzimage(gzip(kernel())),
        f"boot/config-{release}": config.encode(),
        f"lib/modules/{release}/modules.builtin": b"",
    }
    return found | {f"lib/modules/{release}/kernel/fs/{name}.ko": module(release) for name in names}


def module_elf(modinfo_text: bytes) -> bytes:
    """A minimal ELF64 file with a ``.modinfo`` section."""
    names = b"\0.modinfo\0.shstrtab\0"
    body = modinfo_text + names
    table = 64 + len(body)

    def section(name: int, offset: int, size: int) -> bytes:
        return struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, offset, size, 0, 0, 1, 0)

    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = section(0, 0, 0) + section(1, 64, len(modinfo_text)) + section(10, 64 + len(modinfo_text), len(names))
    return header + body + sections


ELF = b"\x7fELF\x02" + bytes(range(256)) * 40


BANNER = f"Linux version {RELEASE} (me@here) (gcc-12 (Debian 12.2.0-14) 12.2.0, GNU ld (GNU Binutils) 2.40) #"


def kernel(config: str = "", *, entry: bool = True) -> bytes:
    """An ELF64 kernel with a banner, the note that QEMU looks for, and its configuration where one is given."""
    note = struct.pack("<III4sQ", 4, 8, 18 if entry else 17, b"Xen", 0)
    other = struct.pack("<III4sI", 4, 3, 256, b"Lin", 0)
    header = struct.pack("<16sHHIQQQIHHHHHH", ELF[:5], 2, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 4, 0, 120, 0, 0, len(other + note), 0, 4)
    text = f"{BANNER} SMP\0{BANNER}1 SMP today\n\0".encode()
    embedded = b"IKCFG_ST" + gzip(config.encode()) + b"IKCFG_ED" if config else b""
    return header + segment + other + note + text + embedded


def bzimage(packed: bytes, *, magic: bytes = b"HdrS", version: int = 0x20F, flags: int = 1) -> bytes:
    """A bzImage of two setup sectors whose payload starts 100 bytes into the protected-mode code."""
    setup = bytearray(3 * 512)
    said = f"{RELEASE} (me@here) #1 SMP today".encode()
    setup[0x300 : 0x300 + len(said)] = said
    struct.pack_into("<H", setup, 0x20E, 0x100)
    struct.pack_into("<H", setup, 0x236, flags)
    setup[0x1F1] = 2
    setup[0x202:0x206] = magic
    struct.pack_into("<H", setup, 0x206, version)
    struct.pack_into("<II", setup, 0x248, 100, len(packed))
    return bytes(setup) + bytes(100) + packed + bytes(333)


def gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


WHOLE = {"vmlinuz": b"bzImage", "config": b"CONFIG_PVH=y\n", "modules.json": b"[]", "modules/modules.builtin": b""}
"""What a kernel has at least."""
