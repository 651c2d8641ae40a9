"""Means without a trusted server: people randomise their own rows, and a server adds up their reports."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _cells, _memory, _native, _tables
from ._ask import Answer, Certificate, ask
from ._parameters import seed_of
from ._files import Files, is_path
from ._mean import MeanAnswer, chosen_columns, column_names, prepared, private_table, width_of
from ._rows import coerced
from .errors import InvalidParameterError, SemidpWarning, ShapeError

__all__ = ["Reports", "aggregate", "randomize"]


class Reports(list[str]):
    """Reports, a line of JSON each, and what is promised of them.

    ``answer`` has what the command ``semidp local randomize`` answers, ``certificate`` the promise.
    """

    def __init__(self, lines: Iterable[str], answer: Answer) -> None:
        super().__init__(lines)
        self.answer = answer

    @property
    def certificate(self) -> Certificate:
        """What these people have spent by now, with all that it rests on."""
        return Certificate(self.answer["certificate"])

    def __reduce__(self) -> tuple[Any, ...]:
        return (Reports, (list(self), self.answer))


def randomize(
    X: Any,
    *,
    epsilon: float,
    mechanism: str = "auto",
    idealised: bool = False,
    radius: float | None = None,
    centre: npt.ArrayLike | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    round: str = "1",
    memory: str | os.PathLike[str] | None = None,
    again: bool = False,
    columns: Sequence[str | int] | None = None,
    schema: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    X_public: Any = None,
    random_state: Any = None,
    threads: int | None = None,
) -> Reports:
    """The client's side: randomises the rows of people before anybody else sees them, one report a row.

    A second report of the same people costs another ``epsilon``. With a ``memory`` file this cannot happen unawares: the same
    question gets the same reports again at no cost, and another one in the same round is refused. **Without one every call is a
    fresh report**, whose cost adds to that of all others, and nobody counts them; a warning says so.

    Parameters
    ----------
    X : the **private** rows, one person each: an array, or a data frame of pandas, polars or Arrow.
    epsilon : that of one report: pure, and against everybody, the server included.
    mechanism : ``"auto"`` is ``"rank-privunit"`` (for a single number ``"duchi"``, which is the same there); both are exact.
        ``"privunit"`` and ``"privunitg"`` need ``idealised``.
    idealised : allows mechanisms whose epsilon holds in real arithmetic only: the low-order bits of their reports can tell more.
    radius : rows further than this from the centre are clipped. Required, unless ``centre`` is an answer with a ``radius``, or
        ``X_public`` is given, whose longest row gives it.
    centre : what is subtracted from every row first: public numbers, one a column, an answer with a ``mean``, or the path of either as
        JSON.
    round : the name of the round; people report once in each.
    memory : the file that remembers what these people reported. It is made if it does not exist, and holds reports, not rows: it cannot
        tell other people's rows from theirs, so that each group of people needs a file of its own.
    again : report once more in a round that these people have reported in; the epsilons add up.
    columns : names (of arrays: places) of columns; all by default. Without ``schema`` or ``X_public`` they are numbers, and must be given if some
        columns are not: what one person reports must not hang on another's cell.
    schema : what columns mean, as a dictionary or the path of a file; numbers as they are by default.
    X_public : public rows that teach what columns mean, in place of ``schema``.
    random_state : ``None`` draws from the operating system's generator. A number makes reports reproducible, for tests: they are **not
        private** then.
    threads : one a core by default; makes no difference to the result.

    Returns
    -------
    Reports : a list of lines, with ``answer`` and ``certificate``.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     memory = os.path.join(folder, "memory")
    ...     reports = randomize([[0.1, 0.2], [0.3, 0.1]], epsilon=2.0, radius=1.0, memory=memory)
    ...     again = randomize([[0.1, 0.2], [0.3, 0.1]], epsilon=2.0, radius=1.0, memory=memory)
    ...     len(reports), reports.certificate.epsilon, reports == again
    (2, 2.0, True)
    """
    _memory.refuse_shared(X, X_public)
    public = prepared(X_public, "X_public")
    X = coerced(X, width_of(public, schema, columns)) if _cells.is_list(X) else X
    rows = prepared(X, "X")
    if rows is not None and not _tables.is_frame(X) and np.ndim(X) == 1:
        raise ShapeError("X must be a matrix, a row for each person: [row] for one of them, X[:, None] for one column", parameter="X")
    if rows is None:
        raise InvalidParameterError("X must be given: every row is one person's", parameter="X")
    if memory is None and again:
        raise InvalidParameterError("memory must be given with again: nothing else remembers a report", parameter="memory")
    named = columns
    if columns is None and public is None and schema is None and _tables.is_frame(rows) and not _tables.has_text(rows):
        # Whether this is refused is seen by the owner of the rows alone.
        named = column_names(rows)
    tables: dict[str, _native.Table] = {"data": private_table(rows, public, schema, named, None)}
    if public is not None:
        tables["public"] = _tables.table(public, column_names(public), name="X_public")
    with Files() as files:
        out = files.place("out")
        options = {
            "epsilon": epsilon,
            "mechanism": mechanism,
            "idealised": idealised,
            "radius": radius,
            "centre": files.json_unless_path("centre", centre),
            "round": round,
            "memory": files.place("memory") if memory is None else memory,
            "again": again,
            "columns": chosen_columns(columns, rows),
            "schema": files.json_unless_path("schema", schema),
            "seed": seed_of(random_state),
            "threads": threads,
            "out": out,
        }
        answer = ask("local randomize", options, tables)
        with open(out, encoding="utf-8") as file:
            reports = Reports(file.read().splitlines(), answer)
    # Files that are no more.
    del answer["out"]
    if memory is None:
        del answer["memory"]
        if random_state is None:
            warnings.warn(
                "without a memory nothing remembers that these people have reported: every other call costs them another epsilon; "
                "give memory=FILE",
                SemidpWarning,
                stacklevel=2,
            )
    return reports


def aggregate(
    reports: Sequence[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    X_public: Any = None,
    centre: npt.ArrayLike | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    estimator: str = "auto",
    expect_reports: int | None = None,
    std: float | None = None,
    columns: Sequence[str | int] | None = None,
    schema: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    skip_invalid: bool = False,
    round: str | None = None,
    mechanism: str | None = None,
    dimension: int | None = None,
    epsilon: float | None = None,
    radius: float | None = None,
) -> MeanAnswer:
    """The server's side: adds up randomised reports, with public rows or without.

    Nothing is added up if any report is malformed, of another question than the first, a replay, or what no honest device sends;
    with ``skip_invalid`` such reports are left out and counted.

    Parameters
    ----------
    reports : report lines, the paths of files of them, or both; one path is enough. What begins with ``{`` is a report.
    X_public : public rows, with the columns that people reported, in their order.
    centre : what people subtracted from their rows, if they did.
    estimator : ``"throw-away"``, ``"ldp"``, ``"semi-ldp-uniform"`` or ``"semi-ldp-weighted"``; ``"auto"`` takes the one of the least
        predicted error.
    expect_reports : refuse another number of reports than this; those that are left out count.
    std : root of a row's total variance; learned from the public rows by default, or the largest it can be.
    columns, schema : as in :func:`randomize`, for the public rows.
    skip_invalid : leave out lines that are no reports of this round, and count them in ``skipped_reports``. The five parameters below must be
        given then, as the first line may be the invalid one.
    round, mechanism, dimension, epsilon, radius : what reports must say of themselves; what the first one says by default.

    Returns
    -------
    MeanAnswer : ``mean``, ``predicted_mse``, ``estimator``, ``influence`` (how far one liar could have moved the mean), ``skipped_reports``,
        ``certificate`` and more.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> warnings.simplefilter("ignore")  # These reports are from a seed, so that the example is reproducible.
    >>> people = np.full((2000, 2), 0.3)
    >>> answer = aggregate(randomize(people, epsilon=4.0, radius=1.0, random_state=1), X_public=people[:50], expect_reports=2000)
    >>> bool(np.all(np.abs(answer.mean - 0.3) < 0.1)), answer.certificate.epsilon
    (True, 4.0)
    """
    public = prepared(X_public, "X_public")
    tables: dict[str, _native.Table] = {}
    if public is not None:
        tables["public"] = _tables.table(public, column_names(public), name="X_public")
    with Files() as files:
        options = {
            "reports": _report_files(reports, files),
            "centre": files.json_unless_path("centre", centre),
            "estimator": estimator,
            "expect_reports": expect_reports,
            "std": std,
            "columns": chosen_columns(columns, public),
            "schema": files.json_unless_path("schema", schema),
            "skip_invalid": skip_invalid,
            "round": round,
            "mechanism": mechanism,
            "dimension": dimension,
            "epsilon": epsilon,
            "radius": radius,
        }
        return ask("local aggregate", options, tables, MeanAnswer)


def _report_files(reports: Any, files: Files) -> list[str]:
    """The paths of all reports; lines go to a file first."""
    if not is_path(reports) and not isinstance(reports, Iterable):
        raise InvalidParameterError(
            f"reports must be a path, or a list of lines and paths, got a {type(reports).__name__}", parameter="reports"
        )
    paths: list[str] = []
    lines: list[str] = []
    for report in [reports] if is_path(reports) else reports:
        if not is_path(report):
            raise InvalidParameterError(
                f"reports must be lines of text or paths, got a {type(report).__name__}", parameter="reports"
            )
        if isinstance(report, str) and report.lstrip().startswith("{"):
            lines.append(report.rstrip("\r\n"))
        else:
            paths.append(os.fspath(report))
    if any("," in path for path in paths):
        raise InvalidParameterError("reports must be in files without commas in their names", parameter="reports")
    if lines or not paths:
        paths.append(files.lines("reports", lines))
    return paths
