"""Work on a UFS2 in a guest (test_ufs.py): after each part it is unmounted, checked, mounted again and compared.

Standard-library Python; it prints a line for each part, and a line that begins with "wrong: " for each thing amiss.
"""

import hashlib
import mmap
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

DEVICE = "/dev/pmem1"
MOUNTED = Path("/run/work")
CHECK = "/run/agelab/tools/checkufs"
BLOCKS = (16384, 32768)
SIZES = (0, 1, 2047, 2048, 2049, 14337, 16383, 16385, 65537, *(12 * block + 1 for block in BLOCKS), 2_500_000)

drawn = random.Random(5)


def run(*argv: str) -> None:
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        print(f"wrong: {' '.join(argv)}: exit {done.returncode}: {done.stdout[-800:]}", flush=True)


def mount() -> None:
    run("mount", "-t", "ufs", "-o", "ufstype=ufs2", DEVICE, str(MOUNTED))


def told(path: Path) -> tuple[object, ...]:
    """All that is known of a path."""
    known = path.lstat()
    content: str = ""
    if stat.S_ISLNK(known.st_mode):
        content = str(path.readlink())
    elif stat.S_ISREG(known.st_mode):
        content = hashlib.sha1(path.read_bytes()).hexdigest()
    return (
        known.st_mode, known.st_size, known.st_nlink, known.st_uid, known.st_rdev, known.st_mtime_ns, content,
    )  # fmt: skip


def everything() -> dict[str, tuple[object, ...]]:
    # Not rglob: it asks where symbolic links lead to, and a long one leads to no name that there could be.
    found = [Path(where, name) for where, *names in os.walk(MOUNTED) for name in (*names[0], *names[1])]
    return {str(path): told(path) for path in sorted(found)}


def settle(part: str) -> None:
    """Unmount, check, mount, compare."""
    before = everything()
    run("umount", str(MOUNTED))
    run(CHECK, DEVICE)
    mount()
    after = everything()
    for path in sorted(set(before) | set(after)):
        if before.get(path) != after.get(path):
            print(f"wrong: {part}: {path} was {before.get(path)}, is {after.get(path)}")
    print(f"{part}: {len(after)} paths", flush=True)


def many() -> None:
    """Thousands of tiny files in one directory, a third of them removed, others in their place."""
    where = MOUNTED / "many"
    where.mkdir()
    for number in range(3000):
        (where / f"{number}-{'x' * (number % 60)}").write_bytes(drawn.randbytes(number % 300))
    for number in range(0, 3000, 3):
        (where / f"{number}-{'x' * (number % 60)}").unlink()
    for number in range(1200):
        (where / f"new-{number}").write_bytes(drawn.randbytes(700))


def grown() -> None:
    """Sizes about fragments, blocks and indirect blocks; files that grow by turns, are cut, have holes, are mapped."""
    where = MOUNTED / "grown"
    where.mkdir()
    for number, size in enumerate(SIZES * 4):
        (where / f"size-{number}").write_bytes(drawn.randbytes(size))
    files = [(where / f"turn-{number}").open("ab") for number in range(8)]
    for turn in range(300):
        file = drawn.choice(files)
        file.write(drawn.randbytes(drawn.randrange(1, 9000)))
        file.flush()
        if turn % 20 == 0:
            os.fsync(file.fileno())
    for file in files:
        file.close()
    for number in range(40):
        path = where / f"cut-{number}"
        path.write_bytes(drawn.randbytes(drawn.randrange(700_000)))
        for _ in range(2):
            os.truncate(path, drawn.randrange(500_000))
        with path.open("ab") as file:
            file.write(b"tail")
    # The first has a place that takes two levels of indirect blocks, whichever the block size.
    for number in range(5):
        with (where / f"hole-{number}").open("wb") as file:
            for _ in range(6):
                file.seek(drawn.randrange(8_000_000) if number else 140_000_000)
                file.write(drawn.randbytes(drawn.randrange(1, 20_000)))
    with (where / "mapped").open("w+b") as mapped:
        mapped.truncate(1_000_003)
        with mmap.mmap(mapped.fileno(), 1_000_003) as view:
            for _ in range(100):
                at = drawn.randrange(1_000_000)
                view[at : at + 3] = b"abc"


def named() -> None:
    """Links short and long, other kinds of inodes, moves, one file over another, one removed while it is open."""
    where = MOUNTED / "named"
    where.mkdir()
    for length in (1, 59, 60, 118, 119, 120, 121, 1000):
        (where / f"link-{length}").symlink_to("t" * length)
    (where / ("n" * 255)).write_bytes(b"long")
    for number in range(100):
        (where / f"hard-{number}").hardlink_to(where / ("n" * 255))
    for number in range(0, 100, 2):
        (where / f"hard-{number}").unlink()
    os.mkfifo(where / "fifo")
    os.mknod(where / "device", stat.S_IFBLK | 0o600, os.makedev(8, 17))
    os.chown(where / "fifo", 70_000, 80_000)
    for number in range(30):
        (where / f"deep-{number}/a/b/c").mkdir(parents=True)
        (where / f"deep-{number}/a/b/c/file").write_bytes(b"f" * number)
    for number in range(0, 30, 2):
        (where / f"deep-{number}/a/b").rename(where / f"moved-{number}")
    (where / "hard-1").replace(where / "link-1")
    (where / "deep-1/a/b/c/file").replace(where / "deep-3/a/b/c/file")
    shutil.rmtree(where / "deep-5")
    with (where / "gone").open("wb") as file:
        file.write(b"x" * 100_000)
        file.flush()
        (where / "gone").unlink()
        file.write(b"y" * 100_000)


def large() -> None:
    """A file with indirect blocks of indirect blocks, then cut."""
    with (MOUNTED / "large").open("wb") as file:
        for _ in range(11):
            file.write(drawn.randbytes((5 << 20) - 1))
    os.truncate(MOUNTED / "large", 40_000_001)


def filled(where: Path) -> Iterator[Path]:
    """Files until there is no space left."""
    where.mkdir()
    try:
        for number in range(100_000):
            path = where / str(number)
            path.write_bytes(drawn.randbytes(drawn.choice((100, 5000, 40_000, 900_000, 5_000_000))))
            yield path
    except OSError as error:
        print(f"{number} files, then: {error.strerror}")


def full() -> None:
    """No space left; every second file removed, and again none left."""
    for path in list(filled(MOUNTED / "full"))[::2]:
        path.unlink()
    list(filled(MOUNTED / "full-again"))
    os.sync()


def remounted() -> None:
    """Read-only, checked as it is mounted, and written again."""
    run("mount", "-o", "remount,ro", str(MOUNTED))
    run(CHECK, DEVICE)
    run("mount", "-o", "remount,rw", str(MOUNTED))
    shutil.rmtree(MOUNTED / "many")
    (MOUNTED / "after").write_bytes(b"after")


def emptied() -> None:
    """All removed."""
    for path in list(MOUNTED.iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def main() -> None:
    MOUNTED.mkdir()
    mount()
    before = os.statvfs(MOUNTED)
    for part in (many, grown, named, large, full, remounted, emptied):
        part()
        settle(part.__name__)
    after = os.statvfs(MOUNTED)
    # The root directory keeps the fragments that it has grown by.
    if before.f_bfree - after.f_bfree > 8 or before.f_ffree != after.f_ffree:
        print(f"wrong: {before} before, {after} after")
    run("umount", str(MOUNTED))
    print("all is as it was written", flush=True)


if __name__ == "__main__":
    main()
