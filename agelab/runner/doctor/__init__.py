"""Examine what this host can do; each finding says what it means and what to install."""

from agelab.runner.doctor import leftovers
from agelab.runner.doctor.probes import (
    TOOLS,
    Finding,
    HostReport,
    ProbeStatus,
    confinement,
    emulator,
    kvm,
    libvirt,
    memory,
    one_advice,
    other_packages,
    passthrough,
    probe,
    sources,
    space,
)
from agelab.store.artefacts import Store

__all__ = ["Finding", "HostReport", "ProbeStatus", "examine", "leftovers"]


def examine(store: Store, *, again: bool = False) -> HostReport:
    """Probe the host.

    Boots a small guest (20 s at most) if no KVM result is cached, or with ``again``.
    """
    of_programs = [probe(tool) for tool in TOOLS]
    of_programs[:0] = [emulator(store), libvirt()]
    proved = kvm(store, again=again)
    of_the_host = (space(store.home), memory(), proved, passthrough(), leftovers.finding(store))
    findings = (*of_programs, other_packages(), sources(store), confinement(store), *of_the_host)
    return HostReport(findings=one_advice(findings))
