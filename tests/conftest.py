"""The order in which tests begin."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The guest image is made first: what needs no guest runs meanwhile, and the guests' tests find it there."""
    items.sort(key=lambda item: item.path.name != "test_image.py" or item.path.parent.name != "vm")
