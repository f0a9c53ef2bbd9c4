"""One step of a bisect, as git runs it: ``python -m agelab.cli.bisect_step DIRECTORY``.

Exits with its verdict (``tree.GOOD``, ``BAD``, ``SKIP``), which is translated for git; with anything else git stops,
and the bisect can be gone on with.
"""

import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from agelab.base.errors import DISK_ERRNOS, AgelabError, HostError
from agelab.bisect import search
from agelab.bisect.bisect_directory import BisectDirectory
from agelab.bisect.measurements import Judge
from agelab.store.artefacts import Store

STOP = 128
INTERRUPTED = 130


def judge_of(directory: BisectDirectory) -> Judge:
    """Make the bisect's rule, which measures by runs."""
    from agelab.bisect.kernel_runs import KernelRuns

    store = Store(directory.path.parents[1])
    return search.make_judge(directory, KernelRuns(directory, store))


def main(path: Path, judge: Callable[[BisectDirectory], Judge] = judge_of) -> int:
    """Carry out the step; an error is recorded for the process that drives git."""
    # Git is started deaf to interrupts, so that it waits for this process to end its guest: this one is not.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    return carry_out(BisectDirectory(path), judge)


def carry_out(directory: BisectDirectory, judge: Callable[[BisectDirectory], Judge]) -> int:
    """Judge the commit that git has checked out, and return this step's exit status."""
    try:
        return search.judge_current_commit(directory, judge(directory))
    except AgelabError as error:
        directory.record_error(error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.errno not in DISK_ERRNOS:
            directory.record_error(_bug(directory))
        else:
            directory.record_error(HostError(str(error)))
    except Exception:
        directory.record_error(_bug(directory))
    return STOP


def _bug(directory: BisectDirectory) -> AgelabError:
    """Log the traceback of an unexpected error, and return the error that the user sees."""
    directory.log_detail(traceback.format_exc())
    return AgelabError(
        "a bug in agelab, not in what you asked for; please report it", hint=f"see {directory.log}"
    )


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
