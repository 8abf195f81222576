"""A real cluster of processes: the same rows as on one machine, also when workers die; and a store that speaks S3."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import pytest

from postmortem.fleet.cache import Cache
from postmortem.fleet.engines import tasks
from postmortem.fleet.engines.alike import Build, here
from postmortem.fleet.find import Target, find
from postmortem.fleet.row import Row
from postmortem.fleet.run import rows_of
from postmortem.knowledge.schema import Knowledge
from postmortem.scan import Lexicon
from tests.fleet import trees

distributed = pytest.importorskip("distributed")

from postmortem.fleet.dataset import Folder  # noqa: E402
from postmortem.fleet.engines.cluster import Cluster, ClusterError  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    """Two worker processes of one thread each."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
    ) as cluster:
        yield cluster


@pytest.fixture
def cluster(scheduler: Any, knowledge: Knowledge) -> Iterator[Cluster]:
    connection = Cluster(scheduler.scheduler_address, knowledge, own_patterns=False)
    yield connection
    connection.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return trees.mixed(tmp_path / "runs")


def rows(root: Path | str, lexicon: Lexicon, engine: Any = None, workers: int = 1) -> list[Row]:
    return list(rows_of(find([root]), lexicon, Cache("v", None), workers, engine=engine))


def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share a run, so that a small tree has many."""
    monkeypatch.setattr("postmortem.fleet.engines.share.SHARE_RUNS", 1)


def test_rows_are_those_of_one_machine(tree: Path, lexicon: Lexicon, cluster: Cluster) -> None:
    assert cluster.check([str(tree)]) == 2
    one = rows(tree, lexicon)
    assert rows(tree, lexicon, cluster.rows) == one == rows(tree, lexicon, workers=2)
    assert [row.run for row in one[:5]] == trees.NAMES


def test_a_worker_killed_half_way_costs_its_share_only(
    tmp_path: Path, lexicon: Lexicon, cluster: Cluster, scheduler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_shares(monkeypatch)
    tree = trees.mixed(tmp_path / "many", 60)
    pids = list(cluster._client.run(os.getpid).values())
    found: list[Row] = []
    for row in rows_of(find([tree]), lexicon, Cache("v", None), 1, engine=cluster.rows):
        found.append(row)
        if len(found) == 10:
            os.kill(pids[0], signal.SIGKILL)
    assert found == rows(tree, lexicon)


def test_a_run_that_kills_its_worker_is_a_row_and_stops_nothing(
    tree: Path, lexicon: Lexicon, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "analyse", killed_at_run_3)
    cluster._client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
    try:
        found = {row.run: row for row in rows(tree, lexicon, cluster.rows)}
    finally:
        cluster._client.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 3))
    assert found["run_3"].error == "the workers that read it were killed (too little memory, perhaps)"
    others = [row for row in rows(tree, lexicon) if row.run != "run_3"]
    assert [row for row in found.values() if row.run != "run_3"] == others


_analyse = tasks.analyse


def killed_at_run_3(share: bytes, order: bytes) -> bytes:
    """A task in which one target takes its process with it."""
    if any(target.name == "run_3" for target in msgspec.msgpack.decode(share, type=list[Target])):
        os.kill(os.getpid(), signal.SIGKILL)
    return _analyse(share, order)


def test_a_data_set_holds_the_rows_and_is_made_once(
    tree: Path, lexicon: Lexicon, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from postmortem.fleet.table import frame

    small_shares(monkeypatch)
    folder = Folder(str(tmp_path / "out"))
    folder.begin("build")
    first = cluster.write(find([tree]), folder)
    expected = frame(rows(tree, lexicon))
    parts = [pd.read_parquet(path) for path in sorted((tmp_path / "out").glob("*.parquet"))]
    pd.testing.assert_frame_equal(pd.concat([part for part in parts if len(part)], ignore_index=True), expected)
    assert (first.rows, first.reused, first.complete) == (len(expected), 0, True)
    assert cluster.write(find([tree]), folder).reused == first.parts


def test_another_version_is_said(cluster: Cluster, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Build("9.9", "c0de", "bad")
    monkeypatch.setattr("postmortem.fleet.engines.cluster.here", lambda: other)
    with pytest.raises(ClusterError, match=r"worker tcp\S+ runs .* this machine 9.9 \(code c0de"):
        cluster.check([str(tree)])
    cluster._order = msgspec.msgpack.encode(tasks.Order(other))
    with pytest.raises(ClusterError, match=r"a worker runs postmortem .*, this machine 9\.9"):
        list(cluster.rows(list(find([tree]))))


def test_a_folder_that_workers_do_not_see_is_said(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="does not see /nowhere/runs; give what all machines see, or a store"):
        cluster.check(["/nowhere/runs"])


def test_patterns_of_ones_own_reach_the_workers(
    scheduler: Any, tree: Path, lexicon: Lexicon, knowledge: Knowledge
) -> None:
    fewer = msgspec.structs.replace(
        knowledge, patterns=tuple(one for one in knowledge.patterns if one.role not in ("skip", "abort"))
    )
    cluster = Cluster(scheduler.scheduler_address, fewer, own_patterns=True)
    try:
        found = rows(tree, Lexicon(fewer), cluster.rows)
    finally:
        cluster.close()
    assert found == rows(tree, Lexicon(fewer)) != rows(tree, lexicon)


def test_no_scheduler_is_said(knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("postmortem.fleet.engines.cluster.CONNECT_S", 1)
    with pytest.raises(ClusterError, match="no scheduler answers"):
        Cluster("tcp://127.0.0.1:9", knowledge, own_patterns=False)


def test_a_lost_scheduler_is_said(tree: Path, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch) -> None:
    small_shares(monkeypatch)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=60
    ) as own:
        cluster = Cluster(own.scheduler_address, knowledge, own_patterns=False)
        closing = threading.Timer(0.2, own.close)
        with pytest.raises(ClusterError, match="the scheduler was lost"):
            closing.start()
            while True:
                list(cluster.rows(list(find([tree]))))
        closing.join()
        cluster.close()


@pytest.fixture
def bucket(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The tree in a bucket of a server that speaks S3."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    files = s3fs.S3FileSystem()
    files.mkdir("fleet")
    files.put(str(tree) + "/", "fleet/runs", recursive=True)
    yield "s3://fleet/runs"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_rows_from_s3_are_those_of_the_folder(
    bucket: str, tree: Path, lexicon: Lexicon, knowledge: Knowledge, tmp_path: Path
) -> None:
    def without_path(found: list[Row]) -> list[Row]:
        return [msgspec.structs.replace(row, path="") for row in found]

    here_ = rows(tree, lexicon)
    there = rows(bucket, lexicon)
    assert without_path(there) == without_path(here_)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=60
    ) as own:
        cluster = Cluster(own.scheduler_address, knowledge, own_patterns=False)
        folder = Folder("s3://fleet/out")
        folder.begin(str(here()))
        assert cluster.check([bucket], folder.url) == 2
        assert rows(bucket, lexicon, cluster.rows) == there
        assert cluster.write(find([bucket]), folder).rows == len(there)
        assert cluster.write(find([bucket]), folder).reused > 0
        cluster.close()
