"""The finding about KVM; agelab.vm.kvm does the test boot."""

from pathlib import Path

from agelab.doctor.finding import Finding, ProbeStatus
from agelab.store import Store
from agelab.vm import kvm

WITHOUT_KVM = "wall-clock runs are emulated (slow, and no real time); the virtual clock needs no KVM"


def finding(store: Store, device: Path = kvm.DEVICE, *, again: bool = False) -> Finding:
    """Return the finding about KVM; boots a guest if no result is cached, or with ``again``."""
    verdict = kvm.probe_kvm(store, device, again=again)
    if verdict.boots:
        return Finding(
            name="KVM", status=ProbeStatus.OK, found=verdict.detail, meaning="wall-clock runs use KVM"
        )
    status = ProbeStatus.UNKNOWN if verdict.detail.startswith("not proven") else ProbeStatus.LIMITED
    return Finding(
        name="KVM",
        status=status if device.exists() else ProbeStatus.MISSING,
        found=f"{device} exists, but {verdict.detail}" if verdict.tried else verdict.detail,
        meaning=WITHOUT_KVM,
        fix=verdict.fix,
    )
