"""All metrics with unit and definition. Add to them; do not rename any."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A measured or derived quantity."""

    unit: str
    meaning: str
    better: Literal["lower", "higher"] | None = None
    """The better direction, given the same data and work; None where neither is better."""
    speed: bool = False
    """True for a metric of speed: one is then called faster, not higher or lower."""

    def word(self, higher: bool) -> str:
        """Return the word for the higher, or the lower, of two values: slower, faster; higher, lower."""
        if self.speed:
            return "faster" if higher == (self.better == "higher") else "slower"
        return "higher" if higher else "lower"


METRICS: dict[str, Metric] = {
    "elapsed": Metric(
        "s",
        "guest time of the step's own command, from fork to the end of its process",
        better="lower",
        speed=True,
    ),
    "sync_elapsed": Metric(
        "s", "guest time of the sync after the step, where the step asks for one", better="lower", speed=True
    ),
    "throughput": Metric("B/s", "bytes that the step moves / elapsed", better="higher", speed=True),
    "throughput_ratio": Metric("1", "throughput of the last repetition / throughput of the first", better="higher"),
    "cpu_user": Metric("s", "whole-machine CPU time in user mode, nice included (proc(5))", better="lower"),
    "cpu_system": Metric("s", "whole-machine CPU time in the kernel, interrupts included (proc(5))", better="lower"),
    "cpu_iowait": Metric("s", "time idle while a request was outstanding (proc(5))", better="lower"),
    "cpu_idle": Metric("s", "time idle with no request outstanding (proc(5))"),
    # Sums over the members of a RAID-0: requests to the drives, not to the array.
    "requests": Metric("1", "block requests that the disk under test completed (iostats.rst)", better="lower"),
    "bytes_read": Metric("B", "bytes read from the disk under test (iostats.rst)", better="lower"),
    "bytes_written": Metric("B", "bytes written to the disk under test (iostats.rst)", better="lower"),
    # Modelled drives only, summed over the drives that the disk under test lies on.
    "sequential_share": Metric("1", "requests that start where the one before them ended / requests", better="higher"),
    "seeks": Metric("1", "movements of the arm", better="lower"),
    "seek_distance": Metric("1", "cylinders that the arm crossed, summed over its movements", better="lower"),
    "busy_overhead": Metric("s", "drive's time spent on the commands themselves", better="lower"),
    "busy_seek": Metric("s", "drive's time spent moving the arm and settling", better="lower"),
    "busy_rotation": Metric("s", "drive's time spent waiting for the sector to come round", better="lower"),
    "busy_transfer": Metric("s", "drive's time spent moving data", better="lower"),
    "cache_hits": Metric("1", "requests that the drive's cache served", better="higher"),
    # Modelled solid-state drives only.
    "flash_reads": Metric("1", "pages that the drive read from its flash", better="lower"),
    "flash_programmed": Metric(
        "B", "what the drive wrote to its flash, with what it moved and what it left empty", better="lower"
    ),
    "flash_moved": Metric("B", "what garbage collection moved", better="lower"),
    "discarded": Metric("B", "what the kernel discarded on the drive (TRIM)"),
    "blocks_erased": Metric("1", "blocks of flash that the drive erased", better="lower"),
    "write_amplification": Metric("1", "flash_programmed / bytes written to the drive", better="lower"),
    "gc_wait": Metric("s", "time that requests waited for garbage collection", better="lower"),
    "queue_depth": Metric("1", "requests that waited for the drive or were in it, mean over the moments of dispatch"),
    "flushes": Metric("1", "times that the drive wrote its whole cache to the platters when told to"),
    "copy_late": Metric("s", "guest time by which copying a request's data outlasted the drive's own time for it"),
    "copy_stolen": Metric(
        "s",
        "guest CPU time that the modelled drive took to copy data, which a real drive moves without the processor",
    ),
    "space_used": Metric(
        "B", "blocks in use after the step, in bytes (statvfs(3): f_blocks - f_bfree)", better="lower"
    ),
    "fullness": Metric("1", "space_used / the bytes that the filesystem has (statvfs(3): f_blocks)", better="lower"),
    "refused": Metric(
        "1",
        "lines of the step's error output that say what the filesystem cannot hold (links on vfat)",
        better="lower",
    ),
    "content_bytes": Metric(
        "B",
        "bytes in all files, as long as they are (stat(2): st_size), found by the step itself",
        better="higher",
    ),
    "space_left": Metric(
        "B", "bytes that may still be written (df(1): Avail), found by the step itself", better="higher"
    ),
    # A system call in a step under strace -c (strace(1)); the step is <pass>/<step>/<system call>.
    "syscall_seconds": Metric(
        "s", "time in the call: system CPU time, or with -w from its begin to its end", better="lower"
    ),
    "syscall_calls": Metric("1", "how often it was called", better="lower"),
    "syscall_errors": Metric("1", "how often it returned an error", better="lower"),
    "syscall_share": Metric(
        "1", "syscall_seconds / the sum over all calls of the step but those that wait for another process"
    ),
    # Power cuts and recovery: docs/howto/crash.md.
    "cut_after": Metric("s", "guest time from the begin of a step to the cut of its power"),
    "failed_after": Metric("s", "guest time from the begin of a step to the failure of a drive"),
    "recovery_time": Metric(
        "s",
        "guest time until the filesystem was mounted after a power cut: elapsed of repair, recovery, repair-after "
        "and recovery-repaired, as far as there were any",
        better="lower",
        speed=True,
    ),
    "mount_status": Metric("1", "exit status of a mount after a power cut (mount(8)): 0, or it failed", better="lower"),
    "fsck_status": Metric(
        "1", "exit status of the filesystem's check, or repair, after a power cut: 0 is clean", better="lower"
    ),
    "fsck_lines": Metric("1", "lines that the filesystem's check, or repair, printed"),
    "files_synced": Metric(
        "1",
        "files that nothing changed after an fsync of file and directory, or a sync, had returned: promised",
    ),
    "files_intact": Metric("1", "files_synced that are there with all their bytes, and no other", better="higher"),
    "files_damaged": Metric("1", "files_synced that are there with other bytes, fewer or more", better="lower"),
    "files_missing": Metric("1", "files_synced that are not there", better="lower"),
    "files_unsynced": Metric("1", "files that were changed, or being changed, without a sync that had returned"),
    "unsynced_whole": Metric("1", "files_unsynced with all bytes of their last change", better="higher"),
    "unsynced_older": Metric("1", "files_unsynced with all bytes of an earlier change"),
    "unsynced_short": Metric("1", "files_unsynced with the first bytes of a change, or with none", better="lower"),
    "unsynced_zeros": Metric("1", "files_unsynced with zeros in the place of some bytes of a change", better="lower"),
    "unsynced_garbage": Metric("1", "files_unsynced with bytes that were never written there", better="lower"),
    "unsynced_missing": Metric("1", "files_unsynced that are not there", better="lower"),
    "slowdown": Metric("1", "elapsed of a test on the aged disk / elapsed on the unaged control", better="lower"),
    "memory_available": Metric(
        "B",
        "MemAvailable when the first step starts, and free pages on processors' lists (proc(5))",
        better="higher",
    ),
    "memory_held": Metric(
        "B",
        "memory held by files in RAM when the first step starts: Shmem (proc(5)), and the ballast beside swap",
        better="lower",
    ),
    # Maps of the disk: docs/measures.md. A file with several hard links counts once.
    "files": Metric("1", "regular files"),
    "unmapped_files": Metric(
        "1", "regular files of whose places on the disk nothing, or not all, is known", better="lower"
    ),
    "extents": Metric(
        "1",
        "runs that lie together on the disk, of all files' blocks, as filefrag (e2fsprogs) counts them",
        better="lower",
    ),
    "tails": Metric("1", "pieces of files that have no whole block: in the filesystem's tree or inodes"),
    "extents_per_file": Metric("1", "extents / files that have a block", better="lower"),
    "fragmented_files": Metric("1", "files of more than one extent / files that have a block", better="lower"),
    "drive_extents": Metric(
        "1",
        "runs that lie together on one drive, of all files' blocks, where a disk is made of several (docs/layouts.md)",
        better="lower",
    ),
    "drive_layout_score": Metric(
        "1",
        "blocks that follow their predecessor in the file on the same drive / blocks that have one, over all files",
        better="higher",
    ),
    "layout_score": Metric(
        "1",
        "blocks that follow their predecessor in the file on the disk / blocks that have one, over all files "
        "(Smith and Seltzer, SIGMETRICS 1997)",
        better="higher",
    ),
    "extent_length_p10": Metric("B", "length that 10 % of the extents do not exceed (nearest rank)", better="higher"),
    "extent_length_p50": Metric("B", "length that 50 % of the extents do not exceed (nearest rank)", better="higher"),
    "extent_length_p90": Metric("B", "length that 90 % of the extents do not exceed (nearest rank)", better="higher"),
    "extent_length_mean": Metric("B", "bytes in extents / extents", better="higher"),
    "locality_score": Metric(
        "1",
        "files whose first block directly follows the last one of the file listed before them in their directory / "
        "files that have one",
        better="higher",
    ),
    "locality_distance": Metric(
        "B",
        "median distance from the end of a file to the start of the one listed after it in its directory",
        better="lower",
    ),
    # Free space: docs/measures.md.
    "free_bytes": Metric("B", "bytes in runs of free space", better="higher"),
    "free_extents": Metric("1", "runs of free space, each as long as it goes", better="lower"),
    "free_extent_p10": Metric(
        "B", "length that 10 % of the runs of free space do not exceed (nearest rank)", better="higher"
    ),
    "free_extent_p50": Metric(
        "B", "length that 50 % of the runs of free space do not exceed (nearest rank)", better="higher"
    ),
    "free_extent_p90": Metric(
        "B", "length that 90 % of the runs of free space do not exceed (nearest rank)", better="higher"
    ),
    "free_extent_largest": Metric("B", "length of the longest run of free space", better="higher"),
    "free_usable_1mib": Metric("1", "bytes in runs of free space of at least 1 MiB / free_bytes", better="higher"),
    # Modelled drives only: requests of a workload.
    "dynamic_layout_score": Metric(
        "1",
        "1 - (requests - requests that start where the one before them ended) / blocks of 4096 bytes moved "
        "(Conway et al., FAST 2017)",
        better="higher",
    ),
    "request_size": Metric("B", "bytes moved / requests", better="higher"),
    # Printed by studies; ours are derived from the metrics above in comparisons: docs/replication.md.
    "cpu_percent": Metric("%", "100 * (cpu_user + cpu_system) / elapsed"),
    "cpu_user_percent": Metric("%", "100 * cpu_user / elapsed"),
    "cpu_system_percent": Metric("%", "100 * cpu_system / elapsed"),
    "cpu_idle_percent": Metric("%", "100 * cpu_idle / elapsed"),
    "slower_percent": Metric(
        "%",
        "by how much a study calls one slower than the other: so much more time, or so much less speed",
        better="lower",
    ),
    "more_percent": Metric("%", "100 * (one - other) / other"),
}
