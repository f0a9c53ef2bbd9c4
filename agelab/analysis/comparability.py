"""Check that two runs measured the same thing, so that a difference of their results means something."""

from collections.abc import Iterator

from agelab.analysis.calibration import Conditions
from agelab.model.result import RunPlan


def mismatches(ours: RunPlan, theirs: RunPlan) -> Iterator[str]:
    """Yield what makes two runs' results incomparable, each with both values."""
    for name in ("scenario", "scale", "clock"):
        one, other = getattr(ours, name), getattr(theirs, name)
        if one != other:
            yield f"{name} {one} | {other}"
    if ours.clock == theirs.clock and ours.emulated != theirs.emulated:
        yield "processor " + " | ".join("emulated" if plan.emulated else "KVM" for plan in (ours, theirs))
    if not same_data(ours, theirs):
        yield "corpus " + " | ".join(min(data_hashes(plan))[:12] for plan in (ours, theirs))
    elif not corpus_seeds(ours) & corpus_seeds(theirs):
        seeds = (",".join(map(str, sorted(corpus_seeds(plan)))) for plan in (ours, theirs))
        yield f"corpus seed {' | '.join(seeds)}, none of them in both"


def wall_clock_caveats(ours: RunPlan, theirs: RunPlan) -> list[str]:
    """List conditions that may by themselves make two runs of the wall clock differ."""
    found = []
    together = [Conditions.of(plan).jobs for plan in (ours, theirs)]
    if together[0] != together[1]:
        found.append(f"cells at a time: {together[0]} | {together[1]}; in real time they disturb each other")
    hosts = [str(plan.provenance.get("host", "not stated")) for plan in (ours, theirs)]
    if hosts[0] != hosts[1]:
        found.append(f"host: {hosts[0]} | {hosts[1]}: what differs may be the host")
    return found


def same_data(ours: RunPlan, theirs: RunPlan) -> bool:
    """Return whether two runs worked on the same data, but for their corpus seeds, as far as they say.

    Runs of other corpus seeds have other data; a run of fewer histories has fewer.
    """
    one, other = data_hashes(ours), data_hashes(theirs)
    return not one or not other or bool(one & other) or not corpus_seeds(ours) & corpus_seeds(theirs)


def corpus_seeds(plan: RunPlan) -> set[int]:
    """Return the corpus seeds of a run's cells."""
    return {cell.corpus_seed for cell in plan.cells}


def data_hashes(plan: RunPlan) -> set[str]:
    """Return the hashes of the data that a run worked on, as far as it says."""
    return set(str(plan.provenance.get("corpus_sha256", "")).split("; ")) - {""}
