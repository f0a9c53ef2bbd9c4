"""Lines about power cuts and recoveries."""

from collections.abc import Iterator, Sequence

from agelab.model.result import Sample

PROMISED = ("files_intact", "files_damaged", "files_missing")
CHANGED = tuple(f"unsynced_{what}" for what in ("whole", "older", "short", "zeros", "garbage", "missing"))


def recovery_lines(samples: Sequence[Sample]) -> Iterator[str]:
    """Yield a line for each cut, recovery and check, and for the files that were checked."""
    for one in samples:
        whole, seconds = ("?", "?") if one.value is None else (f"{one.value:.0f}", f"{one.value:.6f}")
        match one.metric:
            case "cut_after":
                after = "?" if one.value is None else f"{one.value:.3f}"
                yield f"{one.step} {one.repetition}: power cut {after} s after its begin"
            case "mount_status" if one.value:
                yield f"{one.step}: the mount failed, exit {whole}"
            case "recovery_time":
                yield f"{one.step}: mounted again after {seconds} s"
            case "fsck_status":
                yield f"{one.step}: " + (f"exit {whole}" if one.value else "clean")
            case "files_synced":
                yield f"{one.step}: {whole} files were synced: {_split(samples, one, PROMISED)}"
            case "files_unsynced":
                yield f"{one.step}: {whole} files had changed since: {_split(samples, one, CHANGED)}"


def _split(samples: Sequence[Sample], of: Sample, metrics: Sequence[str]) -> str:
    """Format how many files each metric counts."""
    place = of.step, of.repetition
    counts = {one.metric: one.value for one in samples if (one.step, one.repetition) == place}
    words = (f"{counts.get(metric) or 0:.0f} {metric.partition('_')[2]}" for metric in metrics)
    return ", ".join(words)
