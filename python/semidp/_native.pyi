from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__version__: str

class Table:
    """Columns of one length. It is filled, handed to one call, and empty afterwards."""

    def __new__(cls, rows: int, may_be_copied: bool = ...) -> Table: ...
    def add_numbers(self, names: Sequence[str], array: npt.NDArray[Any]) -> None: ...
    def add_sparse(
        self,
        names: Sequence[str],
        offsets: npt.NDArray[np.int64],
        places: npt.NDArray[np.int32],
        numbers: npt.NDArray[Any],
    ) -> None: ...
    def add_category(self, name: str, codes: Sequence[int], values: Sequence[str]) -> None: ...

class Model:
    """A model file, ready to score rows."""

    def __new__(cls, text: str) -> Model: ...
    def scores(self, table: Table) -> npt.NDArray[np.float64]: ...

class Pending:
    """A run that was paid for: until it is ended, the same call gives the same answer and spends nothing more."""

    def end(self) -> str | None: ...
    def release(self) -> None: ...

#: An answer, its warnings, and its run if a ledger paid for it.
Parts = tuple[dict[str, Any], list[str], Pending | None]

def ask(words: Sequence[str], tables: dict[str, Table] = ...) -> Parts: ...
def train(
    words: Sequence[str],
    tables: dict[str, Table],
    on_step: Callable[[int, int], object] | None = ...,
    not_covered: Sequence[str] = ...,
) -> tuple[str, Parts]: ...
def save(path: str, kind: str, text: str) -> None: ...
def main(words: Sequence[str]) -> int: ...
