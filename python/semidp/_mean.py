"""The mean of private and public rows."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _cells, _memory, _native, _tables
from ._ask import Answer, ask
from ._parameters import seed_of
from ._files import Files
from ._rows import coerced
from .errors import InvalidParameterError, ShapeError, UnsupportedTypeError


class MeanAnswer(Answer):
    """An answer whose ``mean`` and ``confidence_interval`` are arrays where they are attributes."""

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """The mean, a number for each column."""
        return np.asarray(self["mean"], dtype=np.float64)

    @property
    def confidence_interval(self) -> npt.NDArray[np.float64] | None:
        """A row for each column: its lower and its upper end, NaN where none is known; ``None`` if there are none at all."""
        intervals = self.get("confidence_interval")
        if intervals is None:
            return None
        unknown = (np.nan, np.nan)
        return np.asarray([unknown if interval is None else interval for interval in intervals], dtype=np.float64)


def mean(
    X: Any = None,
    *,
    X_public: Any = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    columns: Sequence[str | int] | None = None,
    radius: float | str = "auto",
    std: float | None = None,
    centre: str | None = None,
    scale: str | None = None,
    assume: str | None = None,
    estimator: str = "auto",
    private_weight: float | None = None,
    target: str = "population",
    idealised: bool = False,
    confidence: float = 0.95,
    schema: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    random_state: Any = None,
    threads: int | None = None,
    strict: bool = False,
) -> MeanAnswer:
    """Estimates the mean of private and public rows. The private rows ``X`` are protected, whatever the public rows are.

    Parameters
    ----------
    X : the **private** rows: an array (of one dimension: one column), or a data frame of pandas, polars or Arrow. Without it the
        public rows answer alone, at no cost.
    X_public : the public rows, with the columns of ``X``; two data frames are matched by names. Without it this is plain
        differential privacy: ``radius`` must be given, ``columns`` if some are no numbers, and ``schema`` if columns of text are asked for.
    epsilon, delta, rho : the budget: ``epsilon`` at ``delta``, pure ``epsilon``, or ``rho`` of zCDP.
    columns : names (of arrays: places) of columns; all that hold numbers by default, with a warning that names those left out. A
        column of text becomes the share of each of its values.
    radius : rows further than this from the centre are clipped; ``"auto"`` learns it from the public rows.
    std : root of a row's total variance; learned from the public rows by default.
    centre : what rows are clipped about: ``"public"``, the public mean, or ``"origin"``.
    scale : the units of ``radius`` and ``std``: ``"none"``, those of the columns, or ``"public"``, the columns' standard deviations
        in the public rows.
    assume : ``"same-population"`` pools public and private rows, and is named on the certificate: the interval is wrong if the public
        rows are shifted. Without it nothing is assumed about a shift.
    estimator, private_weight : leave them out for an estimate that survives a shift; an estimator of the paper by name assumes the
        same population. :func:`semidp.plan` compares those.
    target : the mean of what: ``"population"``, the population of the private rows, or ``"empirical"``, the given rows, public and
        private together.
    idealised : lets ``estimator="auto"`` take K-norm noise, whose guarantee holds for real numbers.
    confidence : that of the intervals.
    schema : what columns mean, as a dictionary or the path of a file; learned from the public rows by default.
    ledger, dataset : a ledger to debit first, and the name of the private rows in it. If a warning that is an error, Ctrl-C or a kill comes between
        the debit and the answer, the same call with the same rows gives the same answer, and spends nothing more.
    random_state : ``None`` draws noise from the operating system's generator. A number makes it reproducible, for tests: the result is
        **not private** then.
    threads : one a core by default; makes no difference to the result.
    strict : refuse private rows with missing or unknown cells in place of imputing them. That it did is covered by no guarantee.

    Returns
    -------
    MeanAnswer : ``mean``, ``confidence_interval``, ``predicted_mse``, ``estimator``, ``columns``, ``certificate`` and more: the
        ``estimand`` and ``assumptions``, and for each column ``shift`` (public minus private mean), ``unreadable_cells`` and
        ``clipped_rows``, noised counts of private cells that are no numbers and of rows beyond the radius. A warning says when one of
        them matters.

    Examples
    --------
    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(5.0, 1.0, size=(2000, 2))
    >>> answer = mean(rows[200:], X_public=rows[:200], epsilon=1.0, delta=1e-6)
    >>> bool(np.all(np.abs(answer.mean - 5) < 0.5)), answer.certificate.epsilon <= 1
    (True, True)
    """
    _memory.refuse_shared(X, X_public)
    public = prepared(X_public, "X_public")
    private = prepared(X, "X", width_of(public, schema, columns))
    names = _common_names(private, public)
    tables: dict[str, _native.Table] = {}
    if private is not None:
        tables["private"] = private_table(private, public, schema, columns, names)
    if public is not None:
        tables["public"] = _tables.table(public, names or column_names(public), name="X_public")
    if schema is None and public is None and private is not None:
        schema = _plain_schema(column_names(private) if columns is None else chosen_columns(columns, private) or [])
    with Files() as files:
        options = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "columns": chosen_columns(columns, private if private is not None else public),
            "radius": radius,
            "std": std,
            "centre": centre,
            "scale": scale,
            "assume": assume,
            "estimator": estimator,
            "private_weight": private_weight,
            "target": target,
            "idealised": idealised,
            "confidence": confidence,
            "schema": files.json_unless_path("schema", schema),
            "ledger": ledger,
            "dataset": dataset,
            "seed": seed_of(random_state),
            "threads": threads,
            "strict": strict,
        }
        return ask("mean", options, tables, MeanAnswer)


def width_of(public: Any, schema: Any, columns: Any) -> int | None:
    """The number of columns of private rows in a list, by public facts: public rows, a schema, or the largest place among the columns asked for."""
    width = _tables.width_of(public, schema)
    if width is not None or columns is None:
        return width
    return _tables.width_of_names([str(name) for name in ([columns] if isinstance(columns, (str, int)) else columns)])


def prepared(data: Any, name: str, width: int | None = None) -> Any:
    """A data frame, or a dense matrix of numbers; nothing of nothing. A private cell that is no number is missing.

    Private rows in a list have this width.
    """
    if data is None or _tables.is_frame(data):
        return data
    if _tables.is_sparse(data):
        raise UnsupportedTypeError(
            f"{name} must not be sparse: a mean reads every cell", hint=f"{name}.toarray() is dense", parameter=name
        )
    if hasattr(data, "to_frame") and getattr(data, "name", None) not in (None, ""):
        return data.to_frame()
    array = _numbers(coerced(data, width) if name == "X" else _tables.unmasked(data))
    if array is None:
        raise UnsupportedTypeError(f"{name} must hold numbers, or be a data frame", parameter=name)
    if array.ndim not in (1, 2):
        raise ShapeError(f"{name} must be a matrix, or one column, got {array.ndim} dimensions", parameter=name)
    return _tables.matrix(array)


def private_table(private: Any, public: Any, schema: Any, columns: Any, names: list[str] | None) -> _native.Table:
    """Private rows as a table. What its columns mean is for the schema or the public rows to say, never for a cell of a private row."""
    names = names or column_names(private)
    if not _tables.is_frame(private):
        return _tables.table(private, names, name="X")
    if schema is not None:
        numbers = _tables.numbers_of_schema(schema)
    elif public is not None and _tables.is_frame(public):
        columns_of = enumerate(_tables.frame_names(public))
        numbers = {name: _tables.is_numeric(_tables.frame_column(public, place)) for place, name in columns_of}
    elif public is not None:
        numbers = dict.fromkeys(names, True)
    else:
        if columns is None:
            # The library of a data frame infers types from cells, so that one private cell could decide.
            raise InvalidParameterError(
                "columns must be given: no public rows or schema say which columns of X hold numbers", parameter="columns"
            )
        numbers = dict.fromkeys(names if columns is None else chosen_columns(columns, private) or [], True)
    return _tables.table(private, names, name="X", numeric=[numbers.get(name) for name in names])


def _numbers(data: Any) -> npt.NDArray[Any] | None:
    """An array of numbers, if it is one. What NumPy says if it is none quotes cells, so that not even the error is kept."""

    @_cells.total(None)
    def read() -> npt.NDArray[Any]:
        array = np.asarray(data)
        return array if array.dtype.kind in "fiub" else array.astype(np.float64, casting="unsafe" if array.dtype.kind == "O" else "safe")

    # ``None`` of public rows alone: private ones are numbers by now, or of a declared type that holds none.
    return read()


def column_names(data: Any) -> list[str]:
    """The names of the columns: those of a data frame, or ``x0``, ``x1``, ..."""
    return _tables.frame_names(data) if _tables.is_frame(data) else [f"x{place}" for place in range(data.shape[1])]


def _common_names(private: Any, public: Any) -> list[str] | None:
    """An array beside a data frame has its names. Two data frames are matched by their own."""
    if private is None or public is None or (_tables.is_frame(private) and _tables.is_frame(public)):
        return None
    ours, theirs = column_names(private), column_names(public)
    if len(ours) != len(theirs):
        raise ShapeError(f"X_public must have as many columns as X, {len(ours)}, got {len(theirs)}", parameter="X_public")
    return ours if _tables.is_frame(private) else theirs


def chosen_columns(columns: Sequence[str | int] | None, data: Any) -> list[str] | None:
    """Names of columns as an option takes them."""
    if columns is None:
        return None
    if isinstance(columns, (str, int)):
        columns = [columns]
    columns = list(columns)
    if not columns:
        raise InvalidParameterError(
            "columns must name at least one column", hint="leave it out to take all columns that hold numbers", parameter="columns"
        )
    is_array = isinstance(data, np.ndarray)
    names = [f"x{name}" if is_array and not isinstance(name, str) else str(name) for name in columns]
    if any("," in name for name in names):
        raise InvalidParameterError("columns must be names without commas", hint="rename the column", parameter="columns")
    return names


def _plain_schema(names: list[str]) -> dict[str, Any]:
    """Where no public rows tell what columns mean, they are numbers; a missing one counts as zero."""
    number = {"kind": "number", "impute": 0.0}
    return {"format": "semidp-schema/1", "columns": [{"name": name, **number} for name in names]}
