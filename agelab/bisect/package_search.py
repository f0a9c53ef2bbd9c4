"""Binary search through an ordered list of kernels, passing over those that cannot be judged."""

from collections.abc import Callable, Sequence

from agelab.base.errors import InputError, Notify
from agelab.bisect.verdict import Decision, FoundChange
from agelab.kernel import available, canonical
from agelab.kernel.debian_kernel import numbers, release_of
from agelab.store.artefacts import Store

DEBIAN = "debian:"


def search(kernels: Sequence[str], judge: Callable[[str], Decision]) -> FoundChange:
    """Find the last good and the first bad of a list whose first is good and whose last is bad.

    Each step judges the middle of the kernels neither judged nor skipped: with s skipped of n + 1 kernels at most
    ceil(log2 n) + s are judged.
    """
    good, bad = 0, len(kernels) - 1
    skipped: set[int] = set()
    while untested := [place for place in range(good + 1, bad) if place not in skipped]:
        middle = untested[len(untested) // 2]
        decision = judge(kernels[middle])
        if decision is Decision.GOOD:
            good = middle
        elif decision is Decision.BAD:
            bad = middle
        else:
            skipped.add(middle)
    return FoundChange(kernels[good], kernels[bad], tuple(kernels[good + 1 : bad + 1]))


def kernels_between(
    good: str, bad: str, named: Sequence[str], store: Store, progress: Notify, *, headers: bool
) -> list[str]:
    """Return the specs from good to bad, both included: of ``named``, or of all kernels on the mirror.

    ``headers`` leaves out kernels without headers, for which no module can be built. Raises InputError for an unknown
    version, equal ends, and a list that does not go from good to bad.
    """
    ends = [pin(spec, store, progress) for spec in (good, bad)]
    if ends[0] == ends[1]:
        raise InputError(f"good and bad are the same kernel: {ends[0]}")
    if named:
        every = list(dict.fromkeys(pin(spec, store, progress) for spec in named))
        every = [*([] if ends[0] in every else ends[:1]), *every, *([] if ends[1] in every else ends[1:])]
    else:
        every = _kernels_of_mirror(ends, store, progress, headers=headers)
    first, last = (every.index(end) for end in ends)
    if first > last:
        if named:
            raise InputError(
                f"--kernels: {bad} comes before {good}", hint="name them in the order from good to bad"
            )
        every.reverse()
        first, last = (every.index(end) for end in ends)
    return every[first : last + 1]


def pin(spec: str, store: Store, progress: Notify) -> str:
    """Return a spec of an exact version. Raises InputError for an unknown version."""
    spec = canonical(spec)
    if not spec.startswith(DEBIAN):
        return spec
    return DEBIAN + release_of(spec.removeprefix(DEBIAN), store, progress=progress)


def _kernels_of_mirror(ends: Sequence[str], store: Store, progress: Notify, *, headers: bool) -> list[str]:
    """Return all kernels of the mirror and the two ends, in the order of their versions."""
    if others := [end for end in ends if not end.startswith(DEBIAN)]:
        raise InputError(
            f"{others[0]}: only Debian's kernels have a known order",
            hint='name the kernels between good and bad in their order: --kernels "A B C"',
        )
    there = [one.spec for one in available(store, progress=progress) if one.headers or not headers]
    return sorted({*there, *ends}, key=lambda spec: (numbers(spec), spec))
