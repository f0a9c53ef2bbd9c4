"""Build the source of a kernel that is small."""

import os
import subprocess
from pathlib import Path

MAKEFILE = "VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 7\nEXTRAVERSION = -rc1\n"


FILES = {
    "Makefile": MAKEFILE,
    "Kconfig": "",
    "kernel/fork.c": "fork\n",
    "fs/inode.c": "one\ntwo\nthree\n",
    "arch/x86/Kconfig": "",
}


PATCH = """\
--- a/fs/inode.c
+++ b/fs/inode.c
@@ -1,3 +1,3 @@
 one
-two
+2
 three
"""


def git(tree: Path, *words: str) -> str:
    identity = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/", **identity}
    done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=True, env=env)
    return done.stdout.strip()


def files(directory: Path) -> Path:
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return directory
