"""The kernel modules and options that a guest needs, and the kernels that have them.

A user's own kernel may come without its list of built-in modules; its configuration then says what is built in.
"""

from collections.abc import Sequence
from pathlib import Path

from debian.debian_support import NativeVersion

from agelab.base import fileio
from agelab.base.errors import InputError
from agelab.kernel import recipes
from agelab.kernel.elf import canonical_name
from agelab.kernel.initramfs import BASE_MODULES
from agelab.kernel.modules import CONFIG, MissingModule, MissingOption, Modules
from agelab.kernel.recipes import NEEDED, SMALL, set_options
from agelab.kernel.stored_kernel import Kernel, release_and_version
from agelab.store.artefacts import Store

MODULE_OPTIONS = {
    "aes_generic": "CRYPTO_AES",
    "ahci": "SATA_AHCI",
    "bcache": "BCACHE",
    "bcachefs": "BCACHEFS_FS",
    "bfq": "IOSCHED_BFQ",
    "btrfs": "BTRFS_FS",
    "crc32c_generic": "CRYPTO_CRC32C",
    "dm_cache": "DM_CACHE",
    "dm_cache_smq": "DM_CACHE_SMQ",
    "dm_crypt": "DM_CRYPT",
    "dm_integrity": "DM_INTEGRITY",
    "dm_mod": "BLK_DEV_DM",
    "dm_snapshot": "DM_SNAPSHOT",
    "exfat": "EXFAT_FS",
    "ext4": "EXT4_FS",
    "f2fs": "F2FS_FS",
    "fuse": "FUSE_FS",
    "i6300esb": "I6300ESB_WDT",
    "isofs": "ISO9660_FS",
    "jfs": "JFS_FS",
    "kyber_iosched": "MQ_IOSCHED_KYBER",
    "libnvdimm": "LIBNVDIMM",
    "loop": "BLK_DEV_LOOP",
    "mq_deadline": "MQ_IOSCHED_DEADLINE",
    "nd_btt": "ND_BTT",
    "nd_pmem": "BLK_DEV_PMEM",
    "nfit": "ACPI_NFIT",
    "nls_ascii": "NLS_ASCII",
    "nilfs2": "NILFS2_FS",
    "nls_cp437": "NLS_CODEPAGE_437",
    "nls_iso8859_1": "NLS_ISO8859_1",
    "nls_utf8": "NLS_UTF8",
    "ntfs3": "NTFS3_FS",
    "nvme": "BLK_DEV_NVME",
    "overlay": "OVERLAY_FS",
    "raid0": "MD_RAID0",
    "raid1": "MD_RAID1",
    "raid456": "MD_RAID456",
    "reiser4": "REISER4_FS",
    "reiserfs": "REISERFS_FS",
    "sd_mod": "BLK_DEV_SD",
    "squashfs": "SQUASHFS",
    "ufs": "UFS_FS",
    "vfat": "VFAT_FS",
    "virtio_blk": "VIRTIO_BLK",
    "virtio_net": "VIRTIO_NET",
    "virtio_pci": "VIRTIO_PCI",
    "xfs": "XFS_FS",
    "xts": "CRYPTO_XTS",
}
"""Every module that guests load by name, and the option (without CONFIG_) that builds it."""

BUILTIN_OPTIONS = (
    *("64BIT", "ACPI", "BINFMT_ELF", "BINFMT_SCRIPT", "BLK_DEV_INITRD", "DEVTMPFS", "PROC_FS"),
    *("SERIAL_8250_CONSOLE", "SQUASHFS_ZLIB", "SYSFS", "TMPFS", "UNIX98_PTYS"),
)
"""Options that cannot be modules and that a guest needs to mount its root."""


def builtin_list(config: str) -> str:
    """Write the text of a modules.builtin with the modules of MODULE_OPTIONS that a configuration builds in."""
    set_to = set_options(config)
    return "".join(f"kernel/{name}.ko\n" for name, option in MODULE_OPTIONS.items() if set_to.get(option) == "y")


def require_root_support(spec: str, release: str, directory: Path, hint: str, *, known: bool = True) -> None:
    """Raise InputError, naming what is missing, for an unpacked kernel that cannot mount the guest's root.

    ``known`` is False when nothing says which modules are built in.
    """
    modules, config = Modules.of(release, directory), directory / "config"
    missing = [f"{name} (CONFIG_{MODULE_OPTIONS[name]})" for name in BASE_MODULES if not modules.has(name)]
    if config.exists():
        set_to = set_options(fileio.read_text(config, errors="replace"))
        missing += [f"CONFIG_{option}=y" for option in BUILTIN_OPTIONS if set_to.get(option) != "y"]
    if missing:
        unsure = "" if known else ", and what it has built in is not known"
        raise InputError(
            f"kernel {spec!r}: {release} lacks what a guest needs to mount its root: {', '.join(missing)}{unsure}",
            hint=hint,
        )


def cannot_stop_itself(kernel: str, config: str | None) -> str:
    """Return why a kernel's guest cannot stop itself to be saved (harness/saved.py); nothing where it can.

    A kernel whose configuration is unknown is taken to have what every distribution has.
    """
    if config is None or set_options(config).get("DEVPORT") == "y":
        return ""
    return f"kernel {kernel} was built without CONFIG_DEVPORT"


def require_probes(kernel: str, config: str | None, machine: str) -> None:
    """Raise InputError for a kernel that cannot charge a machine's byte_price (harness/drive/price.c).

    A kernel whose configuration is unknown is taken to have what every distribution has.
    """
    if config is not None and set_options(config).get("KPROBES") != "y":
        raise InputError(
            f"kernel {kernel} was built without CONFIG_KPROBES, which the byte_price of machine {machine} needs",
            hint="take a kernel that has it, or a machine file without byte_price (docs/machines.md)",
        )


def describe_support(modules: Modules, names: tuple[str, ...]) -> str:
    """Describe how a kernel has these modules: "module", "built in", or the names it lacks."""
    absent = [name for name in names if not modules.has(name)]
    if absent:
        return f"no module {', '.join(absent)}"
    return "built in" if all(canonical_name(name) in modules.builtin for name in names) else "module"


def why_not(kernel: Modules, modules: Sequence[str], options: Sequence[str]) -> str:
    """Say what a kernel lacks of these modules and options (without ``CONFIG_``); nothing where it has all."""
    try:
        kernel.closure(modules)
        kernel.require(options)
    except (MissingModule, MissingOption) as error:
        return str(error)
    return ""


def kernels_with(kernel: Kernel, modules: Sequence[str], options: Sequence[str], store: Store) -> list[str]:
    """Name the kernels that have these modules and options, the newest first, as ``--kernel`` takes them.

    Recipes follow: those that switch on all that ``kernel`` lacks.
    """
    stored = []
    for artefact in store.all("kernel"):
        release, version = release_and_version(artefact)
        if "package" in artefact.manifest.inputs and not why_not(
            Modules.of(release, artefact.directory), modules, options
        ):
            stored.append((NativeVersion(version), release))
    lacking = _lacking(kernel, modules, options)
    made = [name for name in recipes.list_recipes() if _makes(name, lacking)]
    return [release for _, release in sorted(stored, reverse=True)] + [f"recipe:{name}" for name in made]


def _lacking(kernel: Kernel, modules: Sequence[str], options: Sequence[str]) -> set[str]:
    there = kernel.modules
    absent = {MODULE_OPTIONS.get(canonical_name(name), name) for name in modules if not there.has(name)}
    config = kernel.directory / CONFIG
    known = set_options(fileio.read_text(config)) if config.exists() else {}
    return absent | {option for option in options if option not in known}


def _makes(recipe: str, lacking: set[str]) -> bool:
    """Return True where a recipe is made for one of these options, and its configuration has the rest."""
    try:
        built = recipes.parse(f"recipe:{recipe}")
    except InputError:  # a patch is not there
        return False
    own, rest = "\n".join(built.lines), built.base or SMALL
    known = set_options("\n".join([fileio.read_text(NEEDED), fileio.read_text(rest), own])).keys()
    return not lacking.isdisjoint(set_options(own)) and lacking <= known
