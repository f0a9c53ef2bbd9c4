"""Whether KVM really boots a guest here.

That /dev/kvm exists, opens and makes machines proves nothing: there are hosts where a guest then hangs
in early boot. So a kernel is booted, without a root: when it has come as far as looking for one, KVM works.
"""

import platform
from contextlib import suppress
from os import R_OK, W_OK, access
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import Field, ValidationError

from agelab import process
from agelab.doctor.finding import Finding, Status
from agelab.doctor.tools import QEMU, version_in
from agelab.errors import AgelabError, HostError
from agelab.model.base import Frozen
from agelab.store import Artefact, Store, key_of

BOOT_SECONDS = 20.0
"""How long a boot may take, in host time; one that works takes about two seconds."""

WITHOUT = "wall-clock runs are emulated (slow, and no real time); the virtual clock needs no KVM"
_BANNER = "Linux version "
_LATE = ("Unable to mount root fs", "as init process", "No working init found")


class Verdict(Frozen):
    """What one boot under KVM showed."""

    boots: bool
    detail: str = Field(description="how far the kernel came")


def judge(console: str) -> Verdict:
    """The verdict over a serial console: a banner, and then a kernel that looks for its root or init."""
    _, banner, rest = console.partition(_BANNER)
    if banner and any(mark in rest for mark in _LATE):
        return Verdict(boots=True, detail=f"booted Linux {rest.split(maxsplit=1)[0]}")
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    return Verdict(
        boots=False, detail=f"a guest hung after {lines[-1][:60]!r}" if lines else "a guest hung at once"
    )


def boot(kernel: Path, seconds: float = BOOT_SECONDS, accelerator: str = "kvm") -> Verdict:
    """Boot ``kernel`` with no root, on the host's own CPU model as wall-clock runs do.

    ``seconds`` of host time is how long it may take.
    """
    cpu = ("-cpu", "host") if accelerator == "kvm" else ()
    with TemporaryDirectory(prefix="agelab-kvm-") as directory:
        console = Path(directory, "console")
        argv = [QEMU, "-machine", "q35", "-accel", accelerator, *cpu, "-smp", "1", "-m", "256"]
        argv += [
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            f"file:{console}",
        ]
        argv += ["-kernel", str(kernel)]
        argv += ["-append", "console=ttyS0 earlyprintk=serial,ttyS0,115200 panic=-1"]
        try:
            process.run(argv, timeout=seconds)
        except process.ProcessFailed as error:
            *_, last = error.stderr.strip().splitlines() or [str(error)]
            return Verdict(boots=False, detail=f"QEMU stops: {last.removeprefix(f'{QEMU}: ')}")
        except HostError:
            pass  # too slow: the console says how far it came
        return judge(console.read_text(errors="replace") if console.exists() else "")


def finding(store: Store, device: Path = Path("/dev/kvm"), *, again: bool = False) -> Finding:
    """The finding on KVM; boots a guest when no verdict for this host is at hand, or ``again``."""
    if not device.exists():
        return _without(
            Status.MISSING,
            f"no {device}",
            "switch virtualisation on in the firmware, or load kvm_intel or kvm_amd",
        )
    if not access(device, R_OK | W_OK):
        return _without(Status.LIMITED, f"no permission on {device}", "add this user to the group kvm")
    if process.find(QEMU) is None:
        return _without(Status.UNKNOWN, "not proven: QEMU is missing")
    try:
        kernels = [found for found in store.all("kernel") if _vmlinuz(found)]
    except AgelabError as error:
        return _without(Status.UNKNOWN, f"not proven: {error}", error.hint)
    if not kernels:
        return _without(
            Status.UNKNOWN,
            "not proven: no kernel in the store yet",
            "make image brings one; then agelab doctor again",
        )
    verdict = _verdict(store, kernels[-1], again)
    if verdict.boots:
        return Finding(name="KVM", status=Status.OK, found=verdict.detail, meaning="wall-clock runs use KVM")
    return _without(Status.LIMITED, f"{device} exists, but {verdict.detail}")


def _without(status: Status, found: str, fix: str = "") -> Finding:
    return Finding(name="KVM", status=status, found=found, meaning=WITHOUT, fix=fix)


def _vmlinuz(kernel: Artefact) -> Path | None:
    return next((kernel / name for name in ("vmlinuz", "vmlinux") if (kernel / name).exists()), None)


def _verdict(store: Store, kernel: Artefact, again: bool) -> Verdict:
    image = _vmlinuz(kernel)
    assert image is not None
    host = {
        "qemu": version_in(process.run([QEMU, "--version"]).stdout),
        "host_kernel": platform.release(),
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "kernel": kernel.key,
    }
    remembered = store.cache("doctor") / f"kvm-{key_of(host)}.json"
    if not again:
        with suppress(FileNotFoundError, ValidationError):
            return Verdict.model_validate_json(remembered.read_bytes())
    verdict = boot(image)
    partial = remembered.with_suffix(".partial")
    partial.write_text(verdict.model_dump_json())
    partial.rename(remembered)
    return verdict


def cpu_model(cpuinfo: str) -> str:
    """The processor's name in /proc/cpuinfo, or nothing where it has none."""
    names = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(names, "")
