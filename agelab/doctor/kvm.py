"""What doctor says about KVM; the proof itself is agelab.vm.kvm's."""

from pathlib import Path

from agelab.doctor.finding import Finding, ProbeStatus
from agelab.store import Store
from agelab.vm import kvm

WITHOUT_KVM = "wall-clock runs are emulated (slow, and no real time); the virtual clock needs no KVM"


def finding(store: Store, device: Path = kvm.DEVICE, *, again: bool = False) -> Finding:
    """The finding on KVM; boots a guest when no verdict for this host is at hand, or ``again``."""
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
