"""States that a disk can be in, made by the real tools, and what agelab must say of each.

``D`` and ``E`` in a script are two NVMe drives, ``$D`` one's device; ``M`` is a directory to mount on. A check maps a
device to why it is refused, a pattern in which ``D`` stands likewise, or to ACCEPTED: that may take --erase.
"""

from dataclasses import dataclass, field

ACCEPTED = ""
SCSI = "modprobe -a target_core_mod target_core_iblock; cd /sys/kernel/config/target/core"
NVMET = "modprobe nvmet; cd /sys/kernel/config/nvmet/subsystems"
GPT = "parted -s $D mklabel gpt mkpart a 1MiB 64MiB mkpart b 64MiB 127MiB; udevadm settle"
EXT4 = "mkfs.ext4 -qF -E lazy_itable_init=0,lazy_journal_init=0"
KEY = "echo secret > /tmp/key"
LUKS = f"{KEY}; cryptsetup -q luksFormat --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 $E /tmp/key"
MIRROR = "mdadm --create /dev/md0 --run --level=1 --raid-devices=2"


@dataclass(frozen=True)
class State:
    """How a state is made and undone, and what is to be said of the devices in it."""

    made: str
    checks: dict[str, str]
    undone: str = ""
    afterwards: dict[str, str] = field(default_factory=dict)
    """Checks of the devices once the state is undone."""


def in_background(command: str, sign: str) -> str:
    """Start a command that stays, and wait until ``sign`` is true; its process group's number is in /tmp/pid."""
    waits = f"for n in $(seq 150); do {sign} && break; sleep 0.2; done"
    return f"setsid {command} > /tmp/said 2>&1 < /dev/null & echo $! > /tmp/pid; {waits}"


END = "kill -- -$(cat /tmp/pid); sleep 1"

STATES = {
    "blank": State("true", {"$D": ACCEPTED}),
    "partitioned": State(GPT, {"$D": ACCEPTED, "$D-part1": ACCEPTED}),
    "with a filesystem": State(f"{EXT4} $D", {"$D": ACCEPTED}),
    "mounted": State(f"{EXT4} $D; mount $D $M", {"$D": "D is mounted on M"}, "umount $M", {"$D": ACCEPTED}),
    "mounted partition": State(
        f"{GPT}; {EXT4} $D-part1; mount $D-part1 $M",
        {"$D": "Dp1 is mounted on M", "$D-part1": "Dp1 is mounted on M", "$D-part2": ACCEPTED},
        "umount $M",
    ),
    "bind mount alone": State(
        f"{EXT4} $D; mount $D $M; mkdir $M/in /tmp/bind; mount --bind $M/in /tmp/bind; umount $M",
        {"$D": "D is mounted on /tmp/bind"},
        "umount /tmp/bind",
    ),
    "mounted in another namespace": State(
        f"{GPT}; {EXT4} $D-part1; "
        + in_background(
            "unshare -m sh -c 'mount --make-rprivate /; mount $D-part1 $M; touch /tmp/in; exec sleep 999'",
            "[ -e /tmp/in ]",
        ),
        {
            "$D": r"Dp1 is mounted on M, in the mount namespace of process \d+ \(sleep\)",
            "$D-part1": r"Dp1 is mounted on M, in the mount namespace of process \d+ \(sleep\)",
        },
        f"{END}; rm /tmp/in",
        {"$D": ACCEPTED},
    ),
    "unmounted lazily": State(
        f"{EXT4} $D; mount $D $M; "
        + in_background("sh -c 'exec 3> $M/file; touch /tmp/in; exec sleep 999'", "[ -e /tmp/in ]")
        + "; umount --lazy $M",
        {"$D": r"D was unmounted while process \d+ \(sleep\) had files on it open, which it still has"},
        f"{END}; rm /tmp/in",
        {"$D": ACCEPTED},
    ),
    "swap": State("mkswap $D; swapon $D", {"$D": "D is swap space"}, "swapoff $D", {"$D": ACCEPTED}),
    "swap partition": State(
        f"{GPT}; mkswap $D-part2; swapon $D-part2",
        {"$D": "Dp2 is swap space", "$D-part2": "Dp2 is swap space"},
        "swapoff $D-part2",
    ),
    "swap file": State(
        f"{EXT4} $D; mount $D $M; dd if=/dev/zero of=$M/swap bs=1M count=16; chmod 600 $M/swap; mkswap $M/swap; "
        "swapon $M/swap",
        {"$D": "D is mounted on M", "file:$M/swap": "it is swap space"},
        "swapoff $M/swap; umount $M",
    ),
    "md of partitions": State(
        f"{GPT}; {MIRROR} --metadata=1.2 $D-part1 $D-part2 < /dev/null",
        {
            "$D": r"Dp1 is part of /dev/md0 \(raid1\)",
            "$D-part1": r"Dp1 is part of /dev/md0 \(raid1\)",
            "/dev/md0": ACCEPTED,
        },
        "mdadm --stop /dev/md0",
        {"$D-part1": ACCEPTED},
    ),
    "md of disks": State(
        "mdadm --create /dev/md0 --run --level=0 --raid-devices=2 $D $E < /dev/null",
        {"$D": r"D is part of /dev/md0 \(raid0\)", "$E": r"E is part of /dev/md0 \(raid0\)"},
        "mdadm --stop /dev/md0",
        {"$E": ACCEPTED},
    ),
    "mounted md": State(
        f"{MIRROR} $D $E < /dev/null; {EXT4} /dev/md0; mount /dev/md0 $M",
        {
            "$D": r"D is part of /dev/md0 \(raid1\); /dev/md0 is mounted on M",
            "/dev/md0": "/dev/md0 is mounted on M",
        },
        "umount $M; mdadm --stop /dev/md0",
    ),
    "PV without a volume": State(
        "pvcreate -qy $E; vgcreate -qy vg $E; lvcreate -qy -an -L 20M -n off vg",
        {"$E": ACCEPTED},
        "vgchange -qan vg",
    ),
    "PV of an active volume": State(
        "pvcreate -qy $E; vgcreate -qy vg $E; lvcreate -qy -L 20M -n on vg",
        {"$E": r"E is part of /dev/mapper/vg-on \(lvm\)", "/dev/vg/on": ACCEPTED},
        "vgchange -qan vg",
        {"$E": ACCEPTED},
    ),
    "PV of a mounted volume": State(
        f"pvcreate -qy $E; vgcreate -qy vg $E; lvcreate -qy -L 20M -n on vg; {EXT4} /dev/vg/on; mount /dev/vg/on $M",
        {
            "$E": r"E is part of /dev/mapper/vg-on \(lvm\); /dev/mapper/vg-on is mounted on M",
            "/dev/vg/on": "/dev/mapper/vg-on is mounted on M",
        },
        "umount $M; vgchange -qan vg",
    ),
    "legs of an LVM mirror": State(
        "pvcreate -qy $D $E; vgcreate -qy vg $D $E; lvcreate -qy --type raid1 -m1 -L 20M -n r vg",
        {
            "$D": r"D is part of /dev/mapper/vg-r_rmeta_\d \(lvm\)",
            "$E": r"E is part of /dev/mapper/vg-r_rmeta_\d \(lvm\)",
        },
        "vgchange -qan vg",
    ),
    "volume with a snapshot": State(
        "pvcreate -qy $E; vgcreate -qy vg $E; lvcreate -qy -L 20M -n o vg; lvcreate -qy -s -L 8M -n s vg/o",
        {"$E": r"E is part of /dev/mapper/vg-o-real \(lvm\)"},
        "vgchange -qan vg",
    ),
    "thin pool": State(
        "pvcreate -qy $E; vgcreate -qy vg $E; lvcreate -qy --type thin -L 40M -V 20M -n t vg -Zn",
        {"$E": r"E is part of /dev/mapper/vg-lvol\d_t\w+ \(lvm\)"},
        "vgchange -qan vg",
    ),
    "open LUKS": State(
        f"{LUKS}; cryptsetup open --key-file /tmp/key $E c",
        {"$E": r"E is part of /dev/mapper/c \(crypt\)", "/dev/mapper/c": ACCEPTED},
        "cryptsetup close c",
        {"$E": ACCEPTED},
    ),
    "open plain dm-crypt": State(
        "head -c 32 /dev/zero > /tmp/key; "
        "cryptsetup open --type plain --cipher aes-xts-plain64 --key-size 256 --key-file /tmp/key $E p",
        {"$E": r"E is part of /dev/mapper/p \(crypt\)"},
        "cryptsetup close p",
        {"$E": ACCEPTED},
    ),
    "bcache": State(
        "modprobe bcache; make-bcache --bucket 64k -B $E -C $D; udevadm settle; "
        "for one in $E $D; do echo $one > /sys/fs/bcache/register; done; "
        "for n in $(seq 50); do [ -b /dev/bcache0 ] && break; sleep 0.2; done",
        {
            "$E": r"E is part of /dev/bcache0 \(disk\)",
            "$D": "D is part of a bcache",
            "/dev/bcache0": ACCEPTED,
        },
        "echo 1 > /sys/block/bcache0/bcache/detach; sleep 1; echo 1 > /sys/block/bcache0/bcache/stop; "
        "for c in /sys/fs/bcache/*-*; do echo 1 > $c/stop; done; sleep 2",
        {"$E": ACCEPTED},
    ),
    "zram": State(
        "modprobe zram num_devices=1; echo $E > /sys/block/zram0/backing_dev",
        {"$E": "E is the backing device of /dev/zram0"},
        "echo 1 > /sys/block/zram0/reset",
        {"$E": ACCEPTED},
    ),
    "dm linear": State(
        "dmsetup create lin --table \"0 2048 linear $E 0\"",
        {"$E": r"E is part of /dev/mapper/lin \(dm\)"},
        "dmsetup remove lin",
    ),
    "btrfs of two disks": State(
        "mkfs.btrfs -qf $D $E; mount $D $M",
        {"$D": "D is mounted on M", "$E": "E is one of the disks of a btrfs that is mounted"},
        "umount $M",
        {"$E": ACCEPTED},
    ),
    "ext4's external journal": State(
        f"mke2fs -qF -b 4096 -O journal_dev $E; {EXT4} -b 4096 -J device=$E $D; mount $D $M",
        {"$E": "E is the journal of a filesystem that is mounted", "$D": "D is mounted on M"},
        "umount $M",
        {"$E": ACCEPTED},
    ),
    "XFS' external log": State(
        "mkfs.xfs --unsupported -qf -l logdev=$E,size=64m $D; mount -o logdev=$E $D $M",
        {"$E": r"E is a part \(logdev\) of the filesystem that is mounted on M", "$D": "D is mounted on M"},
        "umount $M",
        {"$E": ACCEPTED},
    ),
    "a loop device over it": State("losetup -f $E", {"$E": r"/dev/loop\d+ is a loop device over it"}, "losetup -D"),
    "a virtual machine's": State(
        in_background(
            "$QEMU -accel kvm -nodefaults -display none -S -drive file=$E,if=none,id=d,format=raw "
            "-device virtio-blk-pci,drive=d",
            "ls -l /proc/$(cat /tmp/pid)/fd | grep -q $(readlink -f $E)",
        )
        + "; sleep 2",
        {"$E": r"process \d+ \(qemu-system-x86\) has E open for writing"},
        END,
    ),
    "qemu-nbd serves it": State(
        in_background("qemu-nbd -f raw -t -k /tmp/nbd.sock $E", "[ -S /tmp/nbd.sock ]"),
        {"$E": r"process \d+ \(qemu-nbd\) has E open for writing"},
        END,
    ),
    "a program writes to it": State(
        in_background("sh -c 'exec sleep 999 >> $E'", "[ -e /proc/$(cat /tmp/pid)/fd/1 ]") + "; sleep 1",
        {"$E": r"process \d+ \(sleep\) has E open for writing"},
        END,
        {"$E": ACCEPTED},
    ),
    "a program reads it": State(
        "sleep 999 < $E > /dev/null 2>&1 & echo $! > /tmp/pid; sleep 1", {"$E": ACCEPTED}, "kill $(cat /tmp/pid)"
    ),
    "a program holds it exclusively": State(
        in_background(
            "python3 -c 'import os, sys, time; os.open(sys.argv[1], os.O_EXCL); open(\"/tmp/in\", \"w\"); "
            "time.sleep(999)' $E",
            "[ -e /tmp/in ]",
        ),
        {"$E": r"process \d+ \(python3\) has E open"},
        f"{END}; rm /tmp/in",
    ),
    "a program has locked it": State(
        in_background("flock $E sleep 999", "! flock -n $E true"), {"$E": "another program has locked it"}, END
    ),
    "the kernel's SCSI target": State(
        f"{SCSI}; mkdir -p iblock_0/x; echo udev_path=$E > iblock_0/x/control; "
        "echo $(readlink -f $E) > iblock_0/x/udev_path; echo 1 > iblock_0/x/enable",
        {"$E": r"E is exported by the kernel's SCSI target \(target/core/iblock_0/x\)"},
        "cd /sys/kernel/config/target/core; rmdir iblock_0/x iblock_0",
        {"$E": ACCEPTED},
    ),
    "the kernel's NVMe target": State(
        f"{NVMET}; mkdir -p t/namespaces/1; echo -n $E > t/namespaces/1/device_path; echo 1 > t/namespaces/1/enable",
        {"$E": r"E is exported by the kernel's NVMe target \(nvmet/subsystems/t/namespaces/1\)"},
        "cd /sys/kernel/config/nvmet/subsystems; echo 0 > t/namespaces/1/enable; rmdir t/namespaces/1 t",
        {"$E": ACCEPTED},
    ),
    "read-only": State("blockdev --setro $E", {"$E": "is read-only"}, "blockdev --setrw $E"),
}  # fmt: skip
