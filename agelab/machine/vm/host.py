"""Host facts that the plan does not contain: processor, free memory, libvirt's binding, whether KVM boots a guest."""

import os
import platform
import sys
import time
from contextlib import suppress
from functools import cache
from os import R_OK, W_OK, access
from pathlib import Path

from pydantic import Field, ValidationError

from agelab.base import atomic, fileio, limits, process
from agelab.base.errors import AgelabError
from agelab.base.hashing import key_of
from agelab.base.plain_path import temp_parent
from agelab.base.types import Frozen
from agelab.machine import qemu
from agelab.machine.qemu import Emulator
from agelab.store.artefacts import Artefact, Store

CLOCKSOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
LIBVIRT_BINDING = Path("/usr/lib/python3/dist-packages/libvirt.py")
"""libvirt's Python binding as the distribution installs it."""


def binding_hint() -> str:
    """Return what to do when this Python cannot import libvirt's binding."""
    if not LIBVIRT_BINDING.exists():
        return process.install_hint(str(LIBVIRT_BINDING))
    environment = "make its environment with /usr/bin/python3 -m venv --system-site-packages"
    return f"{sys.executable} does not see the system's packages: {environment}"


@cache
def description() -> str:
    """Describe what determines real-time speed: kernel, processors, clock source."""
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    model = cpu_model(fileio.read_text(Path("/proc/cpuinfo"))) or "unnamed processors"
    source = fileio.read_text(CLOCKSOURCE).strip() if CLOCKSOURCE.exists() else "unknown"
    return f"{system}, {os.cpu_count()} x {model}, clocksource {source}"


def cpu_model(cpuinfo: str) -> str:
    """Return the processor's name from the text of /proc/cpuinfo, or an empty string."""
    names = (line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name"))
    return next(names, "")


def processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))


def memory(name: str, proc: Path = Path("/proc")) -> int:
    """Return a line of /proc/meminfo in bytes (proc(5)), such as MemTotal."""
    lines = fileio.read_text(proc / "meminfo").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def memory_available() -> int:
    """Return how many bytes of this host's memory are free for new programs."""
    return memory("MemAvailable")


def memory_is_limited(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> bool:
    """Return True if this process is in a control group with less memory than the host has (cgroups(7))."""
    limit = limits.memory_limit(proc, groups)
    return limit is not None and limit < memory("MemTotal", proc)


DEVICE = Path("/dev/kvm")
SOFTWARE = Path("/sys/module/kvm_pvm")
"""There where the device is that of kvm_pvm, which does without the processor's virtualisation.

It emulates what a stock kernel does instruction by instruction, so that one crawls, up to an instruction that the
emulator does not know. A host has one such module at a time: kvm_intel, kvm_amd or this one.
"""

BOOT_SECONDS = 600.0
"""Timeout of a boot in host seconds; a successful one takes about two on an idle host."""
SILENT_SECONDS = 10.0
"""Host seconds without a word from the kernel after which no more will come: one that boots says hundreds of lines."""
KERNEL_ARGUMENTS = "console=ttyS0 earlyprintk=serial,ttyS0,115200 panic=-1"
_BANNER = "Linux version "
_LATE_BOOT_MESSAGES = ("Unable to mount root fs", "as init process", "No working init found")


class KvmProbe(Frozen):
    """Result of a test boot under KVM, or why there was none."""

    boots: bool
    detail: str = Field(description="how far the kernel came, or what is missing")
    tried: bool = Field(default=True, description="whether a guest was started")
    fix: str = Field(default="", description="what to do so that a test boot is possible")


def judge_console(console: str, ended: str = "") -> KvmProbe:
    """Judge a serial console: success is a kernel banner followed by a search for the root or init.

    ``ended`` says what ended a boot that came no further.
    """
    _, banner, rest = console.partition(_BANNER)
    if banner and any(mark in rest for mark in _LATE_BOOT_MESSAGES):
        return KvmProbe(boots=True, detail=f"booted Linux {rest.split(maxsplit=1)[0]}")
    lines = [line.strip() for line in console.splitlines() if line.strip()]
    detail = f"a guest came no further than {lines[-1][:60]!r}" if lines else "a guest said nothing"
    return KvmProbe(boots=False, detail=f"{detail}{ended}")


class _Silence:
    """True, when called, if a console has not been written to for SILENT_SECONDS."""

    def __init__(self, console: Path) -> None:
        self._console = console
        self._size, self._since = 0, time.monotonic()
        self.is_final = False

    def __call__(self) -> bool:
        size = self._console.stat().st_size if self._console.exists() else 0
        if size != self._size:
            self._size, self._since = size, time.monotonic()
        self.is_final = time.monotonic() - self._since >= SILENT_SECONDS
        return self.is_final


def try_boot(emulator: Path, kernel: Path, seconds: float = BOOT_SECONDS) -> KvmProbe:
    """Boot ``kernel`` without a root in a QEMU, on the host's own CPU model as in wall-clock runs.

    ``seconds`` is the timeout in host time.
    """
    with atomic.temp_dir(temp_parent()) as directory:
        console = directory / "console"
        machine = "-machine q35 -smp 1 -m 256 -nodefaults -no-user-config -display none -no-reboot"
        argv = [str(emulator), *machine.split(), "-accel", "kvm", "-cpu", "host", "-serial", f"file:{console}"]
        argv += ["-kernel", str(kernel), "-append", KERNEL_ARGUMENTS]
        silence, ended = _Silence(console), ""
        try:
            process.run(argv, timeout=seconds, give_up=silence)
        except process.ProcessFailed as error:
            if not silence.is_final:
                *_, last = error.stderr.strip().splitlines() or [str(error)]
                return KvmProbe(boots=False, detail=f"QEMU stops: {last.removeprefix(f'{emulator.name}: ')}")
            ended = f", and was silent for {SILENT_SECONDS:g} s"
        except process.TimedOut:
            ended = f", though it had not fallen silent, within {seconds:g} s"
        return judge_console(fileio.tail(console) if console.exists() else "", ended)


def probe_kvm(store: Store, device: Path = DEVICE, *, again: bool = False) -> KvmProbe:
    """Test whether KVM boots a guest here; that it does is remembered by host and kernel, unless ``again``.

    That it does not is not: the host may have been busy. That /dev/kvm exists, opens and creates machines is no proof:
    on some hosts a guest then crawls, or stops, in early boot. So a kernel is booted without a root; KVM works if the
    kernel gets as far as looking for one. Nothing is booted where the host's KVM is one of software, which runs no
    stock kernel.
    """
    if not device.exists():
        return _not_tried(f"no {device}", "switch virtualisation on in the firmware, or load kvm_intel or kvm_amd")
    if SOFTWARE.exists():
        return _not_tried(
            f"{device} is that of kvm_pvm, a KVM of software that runs no stock kernel",
            "for real time take a host whose processor itself has virtualisation (VT-x, AMD-V)",
        )
    if not access(device, R_OK | W_OK):
        return _not_tried(f"no permission on {device}", "add this user to the group kvm")
    try:
        emulator = qemu.find(store)
        kernels = [artefact for artefact in store.all("kernel") if _vmlinuz(artefact)]
    except AgelabError as error:
        return _not_tried(f"not proven: {error}", error.hint)
    if not kernels or not emulator:
        return _not_tried(
            f"not proven: no {'QEMU' if kernels else 'kernel'} in the store yet",
            "a run brings one, or agelab image build; then agelab doctor again",
        )
    return _cached_boot(store, emulator, kernels[-1], again)


def _not_tried(detail: str, fix: str = "") -> KvmProbe:
    return KvmProbe(boots=False, tried=False, detail=detail, fix=fix)


def _vmlinuz(kernel: Artefact) -> Path | None:
    return next((kernel / name for name in ("vmlinuz", "vmlinux") if (kernel / name).exists()), None)


def _cached_boot(store: Store, emulator: Emulator, kernel: Artefact, again: bool) -> KvmProbe:
    image = _vmlinuz(kernel)
    assert image is not None
    known = {
        "qemu": emulator.artefact.key,
        "host_kernel": platform.release(),
        "cpu": cpu_model(fileio.read_text(Path("/proc/cpuinfo"))),
        "kernel": kernel.key,
    }
    remembered = store.cache("doctor") / f"kvm-{key_of(known)}.json"
    if not again:
        with suppress(FileNotFoundError, ValidationError):
            if (verdict := KvmProbe.model_validate_json(fileio.read_bytes(remembered))).boots:
                return verdict
    verdict = try_boot(emulator.program, image)
    if verdict.boots:
        atomic.write(remembered, verdict.model_dump_json().encode())
    else:
        remembered.unlink(missing_ok=True)
    return verdict
