"""Whether two runs measured the same thing, so that a difference of their results says something."""

from collections.abc import Iterator

from agelab.model.result import RunPlan


def unlike(ours: RunPlan, theirs: RunPlan) -> list[str]:
    """What makes two runs' results incomparable, each with both values; nothing where they can be compared."""
    return list(_unlike(ours, theirs))


def _unlike(ours: RunPlan, theirs: RunPlan) -> Iterator[str]:
    for name in ("scenario", "scale", "clock"):
        one, other = getattr(ours, name), getattr(theirs, name)
        if one != other:
            yield f"{name} {one} | {other}"
    if ours.clock == theirs.clock and ours.emulated != theirs.emulated:
        yield "processor " + " | ".join("emulated" if plan.emulated else "KVM" for plan in (ours, theirs))
    one, other = data(ours), data(theirs)
    if one and other and not one & other:  # a run of fewer histories has fewer data
        yield "corpus " + " | ".join(min(words)[:12] for words in (one, other))


def data(plan: RunPlan) -> set[str]:
    """The hashes of the data that a run worked on, as far as it says."""
    return set(str(plan.provenance.get("corpus_sha256", "")).split("; ")) - {""}


def jobs(plan: RunPlan) -> int:
    """How many of its cells ran at a time; 1 where the run does not say it."""
    words = plan.command.get("words")
    said = str(words.get("jobs")) if isinstance(words, dict) else ""
    return int(said) if said.isdecimal() else 1
