"""UTF-8 for names and texts whatever the locale says, and output that replaces what it cannot show."""

import codecs
import io
import locale
import os
import sys

UTF_8 = "utf-8"


def use_utf_8() -> None:
    """Begin this process anew in Python's UTF-8 mode where the locale would have names and arguments read otherwise.

    Python settles how it reads them when it begins (PEP 540).
    """
    if sys.getfilesystemencoding() != UTF_8 and sys.executable:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def replace_what_cannot_be_shown() -> None:
    """Let no character end the command: a terminal gets what its locale has, a file or pipe UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            shown = locale.getencoding() if stream.isatty() else UTF_8
            # In the C locale terminals show UTF-8 all the same: nobody has told them otherwise.
            ascii_only = codecs.lookup(shown).name == "ascii"
            stream.reconfigure(encoding=UTF_8 if ascii_only else shown, errors="replace")
