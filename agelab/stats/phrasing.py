"""The words of verdicts, for the terminal, the report and the pages: each thing is said in one way, here."""

from collections.abc import Sequence

from agelab.base.gathered import gathered

MOST = 200
"""Seeds more than which are not worth a number."""
TOO_FEW = "too few seeds"
"""Why a side has no verdict, where there is no room for a sentence."""
CANNOT = "cannot exclude chance, four of one corpus can, or three of each of two"
"""What so few seeds cannot, and the fewest of which some order has a p of 5 %."""
ENOUGH_SEEDS = 5
"""Run seeds to take for a verdict,"""
ENOUGH_CORPORA = (1, 2, 3, 4, 5, 6)
"""and the corpora for one on other files."""
THREE = 3
"""The fewest corpora that show anything of other files."""
NUMBERS = ("no", "one", "two", "three", "four", "five")
"""Numbers that are words."""


def several(count: int, word: str, plural: str = "") -> str:
    """Count things: ``1 seed``, ``2 seeds``."""
    return f"{count} {word if count == 1 else plural or f'{word}s'}"


def capital(words: str) -> str:
    """Begin words as a sentence begins."""
    return words[:1].upper() + words[1:]


def joined(names: Sequence[str]) -> str:
    """Join names: ``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def too_few(count: int, needed: int = 0) -> str:
    """Say that so many seeds show nothing, and how many would: ``needed`` where the level is not 5 %."""
    cannot = f"cannot exclude chance, {needed} on each side can" if needed else CANNOT
    return f"{several(count, 'seed')} {cannot}"


def needs_seeds(more: int) -> str:
    """Say how many seeds are lacking: ``needs about 7 more seeds on each side``."""
    if more > MOST:
        return f"needs more than {MOST} more seeds on each side"
    return f"needs about {several(more, 'more seed')} on each side"


def distinguishable(others: int) -> str:
    """Say that the first is distinguishable from all others."""
    return f"distinguishable from {'the other' if others == 1 else f'each of the {others} others'}"


def not_distinguishable(names: Sequence[str], opposed: Sequence[str] = ()) -> str:
    """Say from which others the first is not distinguishable, and against which it depends on the files."""
    parts = [f"it is not distinguishable from {joined(names)}"] if names else []
    parts += [f"against {joined(opposed)} it depends on the files"] if opposed else []
    return ", and ".join(parts)


def on_these_files(corpora: int, each: bool = True) -> str:
    """Say which files a verdict is about; not ``each``: of the corpora together, for not each shows it by itself."""
    if corpora < 2:
        return "on this one set of files"
    if not each:
        return f"on these {corpora} sets of files together"
    return "on both sets of files" if corpora == 2 else f"on each of {corpora} sets of files"


def by_corpus(corpora: Sequence[tuple[str, int, str]]) -> str:
    """Say what each corpus shows: ``slower on corpora 1,3 (1.20, 1.15), faster on corpus 2 (0.97)``."""
    words = gathered((word, (corpus, value)) for word, corpus, value in corpora)
    return ", ".join(
        f"{word} on {'corpus' if len(of) == 1 else 'corpora'} {','.join(str(corpus) for corpus, _ in of)} "
        f"({', '.join(value for _, value in of)})"
        for word, of in words.items()
    )


def other_files(corpora: int) -> str:
    """Say that so many corpora do not show that a difference holds for files in general, and how many may."""
    count = NUMBERS[corpora] if corpora < len(NUMBERS) else str(corpora)
    missing = len(ENOUGH_CORPORA) - corpora
    more = f"; needs {several(missing, 'more corpus', 'more corpora')}" if missing > 0 else ""
    return f"{count} corp{'us does' if corpora == 1 else 'ora do'} not show that it holds for other files{more}"


def on_average(word: str, interval: str, corpora: int) -> str:
    """Say what the corpora show of other files: ``on average over such files slower (1.2 to 1.9, ...)``."""
    return f"on average over such files {word} ({interval}, the t interval of {corpora} corpora)"


def about_files(corpora: int) -> str:
    """Say which files a table's verdicts are about; empty where there are corpora enough to know of others."""
    if corpora >= THREE:
        return ""
    where = "this one set of files" if corpora < 2 else f"these {corpora} sets of files"
    return f"every verdict is about {where}: {other_files(corpora)}"


def hold(held: int, differ: int) -> str:
    """Say how many of the differences in a table hold for other files, too."""
    return f"of {several(differ, 'difference')} {held} hold{'s' * (held == 1)} for other files, too: by a t interval"
