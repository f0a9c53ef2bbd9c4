"""Every metric there is: its unit, what it means and how it comes to be. Add; do not rename."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """A measured or derived quantity."""

    unit: str
    meaning: str


METRICS: dict[str, Metric] = {
    "elapsed": Metric("s", "guest time of the step's own command, from fork to the end of its process"),
    "sync_elapsed": Metric("s", "guest time of the sync after the step, where the step asks for one"),
    "throughput": Metric("B/s", "bytes that the step moves / elapsed"),
    "throughput_ratio": Metric("1", "throughput of the last repetition / throughput of the first"),
    "cpu_user": Metric("s", "whole-machine CPU time in user mode, nice included (proc(5))"),
    "cpu_system": Metric("s", "whole-machine CPU time in the kernel, interrupts included (proc(5))"),
    "cpu_iowait": Metric("s", "time idle while a request was outstanding (proc(5))"),
    "cpu_idle": Metric("s", "time idle with no request outstanding (proc(5))"),
    # Of RAID-0 the sums over its members: what the drives were asked, not what the array was.
    "requests": Metric("1", "block requests that the disk under test completed (iostats.rst)"),
    "bytes_read": Metric("B", "bytes read from the disk under test (iostats.rst)"),
    "bytes_written": Metric("B", "bytes written to the disk under test (iostats.rst)"),
    # Modelled drives alone have these, each summed over the drives that the disk under test lies on.
    "sequential_share": Metric("1", "requests that start where the one before them ended / requests"),
    "seeks": Metric("1", "movements of the arm"),
    "seek_distance": Metric("1", "cylinders that the arm crossed, summed over its movements"),
    "busy_overhead": Metric("s", "drive's time spent on the commands themselves"),
    "busy_seek": Metric("s", "drive's time spent moving the arm and settling"),
    "busy_rotation": Metric("s", "drive's time spent waiting for the sector to come round"),
    "busy_transfer": Metric("s", "drive's time spent moving data"),
    "cache_hits": Metric("1", "requests that the drive's cache served"),
    "queue_depth": Metric(
        "1", "requests that waited for the drive or were in it, mean over the moments of dispatch"
    ),
    "flushes": Metric("1", "times that the drive wrote its whole cache to the platters when told to"),
    "copy_late": Metric(
        "s", "guest time by which copying a request's data outlasted the drive's own time for it"
    ),
    "space_used": Metric("B", "blocks in use after the step, in bytes (statvfs(3): f_blocks - f_bfree)"),
    "fullness": Metric("1", "space_used / the bytes that the filesystem has (statvfs(3): f_blocks)"),
    "refused": Metric(
        "1", "lines of the step's error output that say what the filesystem cannot hold (links on vfat)"
    ),
    "content_bytes": Metric(
        "B", "bytes in all files, as long as they are (stat(2): st_size), found by the step itself"
    ),
    "space_left": Metric("B", "bytes that may still be written (df(1): Avail), found by the step itself"),
    # Of a system call in a step under strace -c (strace(1)); the step is <pass>/<step>/<system call>.
    "syscall_seconds": Metric("s", "time in the call: system CPU time, or with -w from its begin to its end"),
    "syscall_calls": Metric("1", "how often it was called"),
    "syscall_errors": Metric("1", "how often it returned an error"),
    "syscall_share": Metric(
        "1", "syscall_seconds / the sum over all calls of the step but those that wait for another process"
    ),
    # Of a power cut and what came after it: docs/recovery.md.
    "cut_after": Metric("s", "guest time from the begin of a step to the cut of its power"),
    "recovery_time": Metric(
        "s",
        "guest time until the filesystem was mounted after a power cut: elapsed of repair, recovery, repair-after "
        "and recovery-repaired, as far as there were any",
    ),
    "mount_status": Metric("1", "exit status of a mount after a power cut (mount(8)): 0, or it failed"),
    "fsck_status": Metric(
        "1", "exit status of the filesystem's check, or repair, after a power cut: 0 is clean"
    ),
    "fsck_lines": Metric("1", "lines that the filesystem's check, or repair, printed"),
    "files_synced": Metric(
        "1",
        "files that nothing changed after an fsync of file and directory, or a sync, had returned: promised",
    ),
    "files_intact": Metric("1", "files_synced that are there with all their bytes, and no other"),
    "files_damaged": Metric("1", "files_synced that are there with other bytes, fewer or more"),
    "files_missing": Metric("1", "files_synced that are not there"),
    "files_unsynced": Metric(
        "1", "files that were changed, or being changed, without a sync that had returned"
    ),
    "unsynced_whole": Metric("1", "files_unsynced with all bytes of their last change"),
    "unsynced_older": Metric("1", "files_unsynced with all bytes of an earlier change"),
    "unsynced_short": Metric("1", "files_unsynced with the first bytes of a change, or with none"),
    "unsynced_zeros": Metric("1", "files_unsynced with zeros in the place of some bytes of a change"),
    "unsynced_garbage": Metric("1", "files_unsynced with bytes that were never written there"),
    "unsynced_missing": Metric("1", "files_unsynced that are not there"),
    "slowdown": Metric("1", "elapsed of a test on the aged disk / elapsed on the unaged control"),
    "memory_available": Metric("B", "MemAvailable when the first step starts (proc(5))"),
    "memory_held": Metric(
        "B",
        "memory held by files in RAM when the first step starts: Shmem (proc(5)), and the ballast beside swap",
    ),
    # Of a map of the disk, docs/measures.md; a file counts once, whatever the number of its names.
    "files": Metric("1", "regular files"),
    "unmapped_files": Metric("1", "regular files of whose places on the disk nothing, or not all, is known"),
    "extents": Metric(
        "1", "runs that lie together on the disk, of all files' blocks, as filefrag (e2fsprogs) counts them"
    ),
    "tails": Metric("1", "pieces of files without a block of their own: in the filesystem's tree or inodes"),
    "extents_per_file": Metric("1", "extents / files that have a block"),
    "fragmented_files": Metric("1", "files of more than one extent / files that have a block"),
    "layout_score": Metric(
        "1",
        "blocks that follow their predecessor in the file on the disk / blocks that have one, over all files "
        "(Smith and Seltzer, SIGMETRICS 1997)",
    ),
    "extent_length_p10": Metric("B", "length that 10 % of the extents do not exceed (nearest rank)"),
    "extent_length_p50": Metric("B", "length that 50 % of the extents do not exceed (nearest rank)"),
    "extent_length_p90": Metric("B", "length that 90 % of the extents do not exceed (nearest rank)"),
    "extent_length_mean": Metric("B", "bytes in extents / extents"),
    "locality_score": Metric(
        "1",
        "files whose first block directly follows the last one of the file listed before them in their directory / "
        "files that have such a one",
    ),
    "locality_distance": Metric(
        "B", "median distance from the end of a file to the start of the one listed after it in its directory"
    ),
    # Of free space: docs/free-space.md.
    "free_bytes": Metric("B", "bytes in runs of free space"),
    "free_extents": Metric("1", "runs of free space, each as long as it goes"),
    "free_extent_p10": Metric("B", "length that 10 % of the runs of free space do not exceed (nearest rank)"),
    "free_extent_p50": Metric("B", "length that 50 % of the runs of free space do not exceed (nearest rank)"),
    "free_extent_p90": Metric("B", "length that 90 % of the runs of free space do not exceed (nearest rank)"),
    "free_extent_largest": Metric("B", "length of the longest run of free space"),
    "free_usable_1mib": Metric("1", "bytes in runs of free space of at least 1 MiB / free_bytes"),
    # Modelled drives alone: of what a workload asked of them.
    "dynamic_layout_score": Metric(
        "1",
        "1 - (requests - requests that start where the one before them ended) / blocks of 4096 bytes moved "
        "(Conway et al., FAST 2017)",
    ),
    "request_size": Metric("B", "bytes moved / requests"),
    # Studies print these; ours follow from the metrics above when a study is compared: docs/replication.md.
    "cpu_percent": Metric("%", "100 * (cpu_user + cpu_system) / elapsed"),
    "cpu_user_percent": Metric("%", "100 * cpu_user / elapsed"),
    "cpu_system_percent": Metric("%", "100 * cpu_system / elapsed"),
    "cpu_idle_percent": Metric("%", "100 * cpu_idle / elapsed"),
    "slower_percent": Metric(
        "%", "by how much a study calls one slower than the other: so much more time, or so much less speed"
    ),
    "more_percent": Metric("%", "100 * (one - other) / other"),
}
