"""How tests begin: in which order, and with interrupts as a terminal has them."""

import signal

import pytest


def pytest_configure() -> None:
    """In the background of a shell they, and all that they start, would ignore the SIGINT that some of them send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The guest image is made first: what needs no guest runs meanwhile, and the guests' tests find it there."""
    items.sort(key=lambda item: item.path.name != "test_image.py" or item.path.parent.name != "vm")
