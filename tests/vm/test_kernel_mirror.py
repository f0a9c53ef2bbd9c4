"""The real mirror has the kernels of a scenario's sweep."""

import pytest

from agelab import kernel
from agelab.cli.options import open_store

pytestmark = [pytest.mark.vm, pytest.mark.full]


@pytest.mark.parametrize("version, parts", [("5.10", 0), ("6.1", 0), ("6.12", 0), ("7.2", 3)])
def test_a_version_is_a_kernel_with_other_point_releases_beside_it(version: str, parts: int) -> None:
    store = open_store()
    found = kernel.resolve(version, store)
    assert found.spec == f"debian:{version}"
    assert found.release.startswith(f"{version}.") and found.modules.has("ext4")
    assert len(found.artefact.manifest.inputs.get("parts", [])) == parts
    offered = [one for one in kernel.available(store) if one.release.startswith(f"{version}.")]
    assert len({one.version for one in offered if one.headers}) > 1
