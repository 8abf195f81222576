"""`batch --engine dask`: the same over a cluster, and what it writes there; every fault becomes one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from postmortem.cli import output
from postmortem.cli.errors import USAGE, Failure
from postmortem.cli.progress import bar
from postmortem.text import printable

if TYPE_CHECKING:
    from postmortem.fleet.engines.cluster import Cluster
    from postmortem.knowledge.schema import Knowledge


@contextmanager
def connected(
    address: str, base: Knowledge, pack: Path | None, roots: Sequence[str], seen: str | None = None
) -> Iterator[Cluster]:
    """A cluster whose workers are as this machine; said in one line. Raises Failure."""
    from postmortem.fleet.engines.cluster import Cluster, ClusterError

    try:
        cluster = Cluster(address, base, own_patterns=pack is not None)
    except ClusterError as error:
        raise Failure(printable(str(error))) from None
    try:
        workers = cluster.check(roots, seen)
        output.tell(f"{workers} workers at {address}, all with postmortem {cluster.build}")
        yield cluster
    except ClusterError as error:
        raise Failure(printable(str(error))) from None
    finally:
        cluster.close()


def write(
    roots: Sequence[str],
    out: str,
    base: Knowledge,
    lang: str,
    address: str,
    pack: Path | None,
    include: Sequence[str],
    exclude: Sequence[str],
    since: float | None,
    where: str | None,
) -> None:
    """Analyse `roots` on the cluster into the Parquet data set `out`. Raises Failure."""
    from postmortem.cli.batch import tell_passed
    from postmortem.fleet.dataset import DatasetError, Folder
    from postmortem.fleet.engines.alike import here
    from postmortem.fleet.find import Passed, find
    from postmortem.intake import IntakeError
    from postmortem.report.texts import Texts

    if where is not None:
        raise Failure("--where: a data set holds all rows; ask it afterwards (DuckDB, pandas)", USAGE)
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        raise Failure("a data set needs pyarrow: pip install 'aitk-postmortem[parquet]'", USAGE) from None
    try:
        passed = Passed()
        folder = Folder(out)
        folder.begin(str(here()))
        with connected(address, base, pack, roots, folder.url) as cluster, bar(0) as progress:
            targets = find(roots, include, exclude, since, passed)
            summary = cluster.write(targets, folder, progress.steps if progress else None)
    except (DatasetError, IntakeError) as error:
        raise Failure(printable(str(error))) from None
    except KeyboardInterrupt:
        output.tell("interrupted: what is written stays, and a new start goes on from it")
        raise
    tell_passed(passed, Texts(base, lang))
    output.tell(
        f"{summary.rows:,} rows ({summary.failed:,} died of memory, {summary.errors:,} could not be read) "
        f"in {summary.parts:,} parts, {summary.reused:,} of them from an earlier start"
    )
