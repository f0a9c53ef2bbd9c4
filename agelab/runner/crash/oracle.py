"""What was promised before a cut, and what a look at the disk after it found instead.

The guest tells the tree as it was after each call, and the tree that a mount after the cut has brought back. Nothing
else is known of a filesystem: what a call promises stands in ``SOURCES``, with where that is written. What changed
after its promise may be there in either form, or in none.
"""

import errno
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from textwrap import shorten
from typing import Any

from agelab.base.gathered import gathered

SOURCES = {
    "sync": "sync(2): all pending modifications to metadata and data are written; Linux waits (NOTES)",
    "syncfs": "syncfs(2): as sync(2), for one filesystem; Linux waits",
    "fsync": "fsync(2): data and metadata of the file; of a directory, its entries. POSIX.1-2017, fsync()",
    "fdatasync": "fdatasync(2): data, and the metadata without which it cannot be read (its size)",
    "rename": "rename(2): a name that is replaced is never missing, nor is what gets another name",
}
"""Where each promise is written."""


KNOWN = (
    (
        "ext4",
        "Superblock checksum does not match",
        "a torn superblock: one checksum over two sectors, and mount looks at no other copy; "
        "e2fsck does (e2fsck(8), -b)",
    ),
    (
        "ext4",
        r"JBD2: journal transaction \d+ on \S+ is corrupt",
        "a torn commit block: linux-ext4, April 2024, Ye Bin, 'jbd2: avoid mount failed when commit block is partial "
        "submitted'; mended in Linux 6.12",
    ),
    (
        "btrfs",
        "superblock checksum mismatch",
        "a torn superblock: one checksum over eight sectors, and mount looks at no other copy; a user can "
        "(btrfs-select-super(8))",
    ),
)
"""Damage by a torn write that others have written about: the filesystem, what is said of it, and why and where."""


SAID = 160
"""Characters of what a check says that are told."""


UNKNOWN = "?"
"""The type of what is in a tree in the place of a directory's entries that cannot be read."""


class Kind(StrEnum):
    """Kind of a finding."""

    MISSING = "a promised name is missing"
    CAME_BACK = "a name is there that was promised to be gone"
    NEVER_WAS = "a name is there that never was"
    UNREADABLE = "it cannot be read"
    CONTENT = "promised content is another"
    ATTRIBUTES = "promised attributes are others"
    HALF = "a rename lost the file"
    CHECK = "your own check fails"
    MOUNT = "it cannot be mounted"
    FSCK = "its check finds errors"
    WRITE = "it cannot be written"
    KERNEL = "the kernel complains"
    END = "the guest ended"
    UNNAMED = "fsync of a new file did not keep its name"
    NEITHER = "a file renamed over another without fsync has the content of neither"
    EMPTIED = "a file renamed without fsync lost its content"

    @property
    def is_promise(self) -> bool:
        """True for what a call, or the user's check, had promised; the rest is what no call needs to promise."""
        return self in (
            Kind.MISSING, Kind.CAME_BACK, Kind.CONTENT, Kind.ATTRIBUTES, Kind.HALF, Kind.CHECK
        )  # fmt: skip

    @property
    def is_habit(self) -> bool:
        """True for what nobody promises, and filesystems do differently: told, and no violation."""
        return self in (Kind.UNNAMED, Kind.NEITHER, Kind.EMPTIED)


@dataclass(frozen=True)
class Node:
    """A file, directory or link of a tree."""

    type: str
    size: int
    links: int
    inode: int
    attributes: str
    content: str

    @property
    def data(self) -> tuple[str, int, str]:
        """What a read shows of it."""
        return self.type, self.size, self.content


Tree = Mapping[str, Node]


def read_tree(lines: Sequence[Sequence[Any]]) -> Tree:
    """Read a tree as the guest tells it (harness/crash/crash.c)."""
    return {str(path): Node(*node) for path, *node in lines}


PROMISED: tuple[tuple[Kind, tuple[str, ...], Callable[[Node], object]], ...] = (
    (Kind.CONTENT, ("fsync", "fdatasync"), lambda node: node.data),
    (Kind.ATTRIBUTES, ("fsync",), lambda node: node.attributes),
)
"""What calls with a path promise of a file, beside those that cover all, and what of it that is."""


@dataclass(frozen=True)
class Call:
    """A call that has returned, and the tree after it."""

    entries: int
    """Entries of its workload's record when it returned."""
    text: str
    """Empty for the mount that comes before all calls."""
    error: int
    tree: Tree
    touched: frozenset[str] = frozenset()
    """Paths that calls have named since the call before this one, whose trees nobody has seen."""

    @cached_property
    def names(self) -> Mapping[int, list[str]]:
        """The names of each inode of the tree."""
        return gathered((node.inode, path) for path, node in self.tree.items())

    @property
    def words(self) -> tuple[str, ...]:
        """Its name and arguments; no name for a call that promises nothing since it failed."""
        return tuple(self.text.split()) if not self.error else ()

    @property
    def covers_all(self) -> bool:
        """True where the whole tree was on the disk when it returned."""
        return not self.text or self.words[:1] in (("sync",), ("syncfs",))


@dataclass(frozen=True)
class Found:
    """A difference between what a disk must hold and what it holds."""

    kind: Kind
    path: str
    why: str
    """The call that promised it, or what was said."""


@dataclass(frozen=True)
class Look:
    """What a guest found on a disk."""

    mount: int = 0
    tree: Tree | None = None
    fsck: int = 0
    said: str = ""
    again: int = 0
    write: int = 0
    check: int = 0
    checked: str = ""
    """Exit status of the user's check, and what it said."""
    kernel: tuple[str, ...] = ()
    ended: str = ""
    """How the guest ended while it looked; empty where it did not."""

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "Look":
        """Return what the guest tells; of what it did not try it says nothing."""
        tree = read_tree(event["tree"]) if "tree" in event else None
        tried = {name: event[name] for name in ("again", "write", "check", "checked") if name in event}
        return cls(event["mount"], tree, event["fsck"], event["said"], kernel=tuple(event["kernel"]), **tried)


def judge(look: Look, calls: Sequence[Call], returned: int, bad_words: Any) -> Iterator[Found]:
    """Yield what is wrong with a disk after a cut at which that many entries of the record were there.

    ``bad_words`` is the pattern of what the kernel says of a damaged filesystem.
    """
    if look.ended:
        yield Found(Kind.END, "", look.ended)
        return
    if look.mount:
        yield Found(Kind.MOUNT, "", error_name(look.mount))
    if look.fsck:
        yield Found(Kind.FSCK, "", _ended(look.fsck, look.said))
    if look.check:
        yield Found(Kind.CHECK, "", _ended(look.check, look.checked))
    if look.again or look.write:
        yield Found(Kind.WRITE, "", error_name(look.again or look.write))
    for line in look.kernel:
        if bad_words.search(line):
            yield Found(Kind.KERNEL, "", line)
            break
    if look.tree is not None:
        yield from _History.of(calls, returned).differences(look.tree)


def error_name(error: int) -> str:
    return errno.errorcode.get(error, f"error {error}")


def _ended(status: int, said: str) -> str:
    return f"exit {status}: {shorten(said, SAID, placeholder=' ...')}"


def known(filesystem: str, found: Sequence[Found]) -> str:
    """Say what is known of the damage that a torn write has done; empty where more or other is wrong."""
    if not all(one.kind in (Kind.MOUNT, Kind.FSCK, Kind.KERNEL) for one in found):
        return ""
    told = [text for of, words, text in KNOWN for one in found if of == filesystem and re.search(words, one.why)]
    return told[0] if told else ""


def habits(look: Look, calls: Sequence[Call], returned: int) -> Iterator[tuple[Found, bool]]:
    """Yield what nobody promises and a disk can show, and whether it was kept all the same."""
    if look.tree is not None:
        history = _History.of(calls, returned)
        for path in history.names_of_synced_files():
            yield Found(Kind.UNNAMED, path, "not promised"), path in look.tree
        for path, forms in history.renamed_files():
            if path in look.tree:
                kind = Kind.EMPTIED if len(forms) == 1 else Kind.NEITHER
                yield Found(kind, path, "not promised"), look.tree[path].data in forms


@dataclass(frozen=True)
class _History:
    """The calls of a workload up to a cut."""

    calls: Sequence[Call]
    done: int
    """The last call that had returned. The one after it may have been at work."""
    _touched_memo: dict[int, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Sequence[Call], returned: int) -> "_History":
        """Return what had returned when the record had so many entries."""
        return cls(calls, max((number for number, call in enumerate(calls) if call.entries <= returned), default=0))

    def names_of_synced_files(self) -> Iterator[str]:
        """Yield each name that was not promised, has stayed since, and whose file an fsync has covered."""
        for number, call in enumerate(self.calls[: self.done + 1]):
            if call.words[:1] == ("fsync",) and (node := call.tree.get(call.words[1])) and node.type == "f":
                path = call.words[1]
                since = self.name_promised(path)
                before = self.trees(since)
                if (
                    not self._touched(path, since)
                    and not all(path in tree for tree in before)
                    and all(path in tree for tree in self.trees(number))
                ):
                    yield path

    def renamed_files(self) -> Iterator[tuple[str, set[object]]]:
        """Yield each file that was put where it is, and that no call has covered, and what its place has held."""
        for path, node in self.calls[self.done].tree.items():
            if node.type != "f" or self._content_promised(node.inode, ("fsync", "fdatasync")) is not None:
                continue
            since = self.name_promised(path)
            names = [call.names.get(node.inode, [path]) for call in self.calls[since : self.done + 1]]
            if not all(path in those for those in names) and not self._touched(path, since):
                yield path, {tree[path].data for tree in self.trees(since) if path in tree}

    def trees(self, since: int) -> list[Tree]:
        """Return the trees that there were from a call on."""
        return [call.tree for call in self.calls[since : self.done + 2]]

    def _forms(self, inode: int, since: int) -> list[list[Node]]:
        """Return what an inode was in each tree from a call on, once for each of its names."""
        window = self.calls[since : self.done + 2]
        return [[call.tree[path] for path in call.names.get(inode, ())] for call in window]

    def _touched(self, path: str, since: int) -> bool:
        """Return True for what a call may have changed since another one, unseen."""
        if since not in self._touched_memo:
            window = self.calls[since + 1 : self.done + 2]
            self._touched_memo[since] = frozenset().union(*(call.touched for call in window))
        touched = self._touched_memo[since]
        above = (path[:at] for at, letter in enumerate(path) if letter == "/")
        return bool(touched) and (path in touched or any(name in touched for name in above))

    def _last(self, *wanted: tuple[str, str]) -> int:
        """Return the last call that covered all, or did one of these to a path."""
        return max(
            number
            for number, call in enumerate(self.calls[: self.done + 1])
            if call.covers_all or call.words[:2] in wanted
        )

    def name_promised(self, path: str) -> int:
        """Return the call since which the disk knows whether there is a path."""
        parent = path.rpartition("/")[0]
        return self._last(("fsync", parent or "."))

    def differences(self, found: Tree) -> Iterator[Found]:
        """Yield what is promised and not there, and what is there and never was."""
        known = {path for tree in self.trees(0) for path in tree}
        for path in sorted(found.keys() - known):
            if self._touched(path, 0):
                continue
            if found[path].type == UNKNOWN:
                yield Found(Kind.UNREADABLE, path.rpartition("/")[0], "its entries")
            else:
                yield Found(Kind.NEVER_WAS, path, "no call made it")
        for path in sorted(known):
            yield from self._of_path(path, found.get(path), found)
        yield from self._lost_files(found)

    def _of_path(self, path: str, node: Node | None, found: Tree) -> Iterator[Found]:
        since = self.name_promised(path)
        nodes = [tree.get(path) for tree in self.trees(since)]
        if self._touched(path, since):
            return
        if node is None:
            parent = path.rpartition("/")[0]
            if all(nodes) and (not parent or parent in found):  # else the parent's own loss is told
                yield Found(Kind.MISSING, path, self._name(since))
            return
        candidates = {was.inode: was for was in nodes if was}
        if not candidates:
            yield Found(Kind.CAME_BACK, path, self._name(since))
            return
        wrong = [self._difference(was, node) for was in candidates.values()]
        if all(wrong) and wrong[0]:
            yield Found(wrong[0].kind, path, wrong[0].why)

    def _difference(self, was: Node, node: Node) -> Found | None:
        """Compare a file with one that may be found under its name; None where nothing promised is another."""
        for kind, calls, show in PROMISED:
            since = self._content_promised(was.inode, calls)
            if since is None:
                continue
            seen = [other for nodes in self._forms(was.inode, since) for other in nodes]
            forms = {show(other) for other in seen}
            names = {path for call in self.calls[since : self.done + 2] for path in call.names.get(was.inode, ())}
            if any(self._touched(path, since) for path in names):
                continue
            if len(forms) == 1 and show(node) not in forms:
                return Found(kind, "", self._name(since))
        return None

    def _content_promised(self, inode: int, calls: tuple[str, ...]) -> int | None:
        """Return the last call that covered a file's content; None for a file that none has covered."""
        covering = [
            number
            for number, call in enumerate(self.calls[: self.done + 1])
            if (call.covers_all and inode in call.names)
            or (
                call.words[:1] in [(name,) for name in calls]
                and (node := call.tree.get(call.words[1])) is not None
                and node.inode == inode
            )
        ]
        return covering[-1] if covering else None

    def _lost_files(self, found: Tree) -> Iterator[Found]:
        """Yield files that always had a name, since one was promised, and are found under none of them."""
        since = self._last()
        for node in self.trees(since)[0].values():
            if node.type != "f":
                continue
            places = [set(call.names.get(node.inode, ())) for call in self.calls[since : self.done + 2]]
            names = set().union(*places)
            if len(names) == 1 or any(self._touched(path, since) for path in names):
                continue
            changed = any(other.data != node.data for nodes in self._forms(node.inode, since) for other in nodes)
            there = [found[path] for path in names & found.keys()]
            kept = any(changed or other.data == node.data for other in there)
            if all(places) and not set.intersection(*places) and not kept:
                yield Found(Kind.HALF, " or ".join(sorted(names)), self._name(since))

    def _name(self, number: int) -> str:
        return self.calls[number].text or "it was on the disk before"
