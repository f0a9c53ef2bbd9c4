"""The demonstration of a cluster on one host: workers with stores of their own, and one cache."""

from pathlib import Path

from distributed import Client

from agelab.runner.cluster import dask_cells
from bench import cluster_demo


def test_each_of_three_workers_has_a_store_of_its_own_and_all_share_a_cache(tmp_path: Path) -> None:
    (tmp_path / "debs").mkdir()
    with cluster_demo.workers(3, tmp_path, tmp_path / "debs", "/shared") as cluster, Client(cluster) as client:
        client.wait_for_workers(3, timeout=60)
        found = client.run(dask_cells.own_environment).values()
        resources = [one["resources"] for one in client.scheduler_info(n_workers=-1)["workers"].values()]
    assert sorted(one["AGELAB_HOME"] for one in found) == [f"{tmp_path}/worker-{number}" for number in range(3)]
    assert {one["AGELAB_CACHE"] for one in found} == {"/shared"}
    assert [one[dask_cells.RESOURCE] for one in resources] == [1] * 3
    assert (tmp_path / "worker-2/cache").resolve() == tmp_path / "debs"
