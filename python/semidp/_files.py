"""Values that a command reads from files."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any

import numpy as np

from . import _native
from .errors import InvalidParameterError, SemidpError


class Files:
    """A folder of our own for the files of one command, gone when it is done.

    What goes wrong with a file is told of the parameter that was written to it, as nobody knows the file.

    >>> with Files() as files:
    ...     with open(files.json("centre", [0.5, 2])) as file:
    ...         file.read()
    '[0.5, 2]'
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="semidp-")
        self._names: dict[str, str] = {}

    def __enter__(self) -> Files:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, SemidpError):
            error.message, text = self._told(error.message), self._told(str(error))
            error.args = (text,)
        self._folder.cleanup()

    def _told(self, text: str) -> str:
        for path, name in self._names.items():
            text = text.replace(f"{name}: {path}", name).replace(f"{name} {path}", name).replace(path, name)
        return text

    def place(self, name: str) -> str:
        """A path where there is no file yet."""
        path = os.path.join(self._folder.name, f"{len(self._names)}-{name}")
        self._names[path] = name
        return path

    def json(self, name: str, value: Any) -> str:
        """The path of a file with this value."""
        return self._write(name, as_json(name, value))

    def json_unless_path(self, name: str, value: Any) -> str | os.PathLike[str] | None:
        """The same; a path stays what it is, and ``None`` too."""
        return value if value is None or is_path(value) else self.json(name, value)

    def lines(self, name: str, lines: Iterable[str]) -> str:
        """The path of a file with these lines."""
        return self._write(name, "".join(f"{line}\n" for line in lines))

    def _write(self, name: str, text: str) -> str:
        path = self.place(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def write_whole(path: str | os.PathLike[str], kind: str, text: str) -> None:
    """Writes an ``"answer"``, a ``"certificate"``, a ``"model"`` or an ``"other"`` answer, so that at every moment the file has the old text or
    the new one. A file of another kind is not replaced."""
    if kind == "other" and _is_other(path, text):
        raise InvalidParameterError(
            f"path: {os.fspath(path)} exists and is not an answer of this kind: it is not overwritten",
            hint="give path another path, or move the file away first",
            parameter="path",
        )
    _native.save(os.fspath(path), kind, text)


def _is_other(path: str | os.PathLike[str], text: str) -> bool:
    """Whether a file is there that has other entries than this answer."""
    try:
        with open(path, encoding="utf-8") as file:
            found = file.read()
        return found != "" and set(json.loads(found)) != set(json.loads(text))
    except FileNotFoundError:
        return False
    except (OSError, ValueError, TypeError):
        return True


def is_path(value: Any) -> bool:
    """Whether it names a file."""
    return isinstance(value, (str, os.PathLike))


def as_json(name: str, value: Any) -> str:
    """A value as JSON, arrays and numbers of NumPy included."""
    try:
        return json.dumps(_plain(name, value))
    except TypeError:
        raise InvalidParameterError(
            f"{name} must hold nothing but numbers, text, lists and dictionaries, got a {type(value).__name__}", parameter=name
        ) from None


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(str(key), entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(name, entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidParameterError(f"{name} must be finite, got {value}", parameter=name)
    return value
