"""Asking the commands of semidp, and their answers."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

import numpy as np

from . import _native
from .errors import DeclassifiedWarning, InvalidParameterError, NotPrivateWarning, SemidpWarning, _in_python

#: Options that are there or not.
_FLAGS = ("again", "allow_seeded", "allow_weak_noise", "exact", "idealised", "no_intercept", "skip_invalid", "strict")


def words(command: str | Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """A command and its options as words: ``clip_norm=1.0`` becomes ``--clip-norm=1.0``."""
    said = command.split() if isinstance(command, str) else list(command)
    for name, value in options.items():
        if isinstance(value, np.generic):
            value = value.item()
        option = "--" + name.replace("_", "-")
        if value is None or (value is False and name in _FLAGS):
            continue
        if name in _FLAGS:
            if value is not True:
                raise InvalidParameterError(f"{name} must be True or False, got a {type(value).__name__}", parameter=name)
            said.append(option)
        elif isinstance(value, bool):
            # Refused by name: no option that takes a value takes these.
            said.append(f"{option}={value}")
        elif isinstance(value, str):
            said.append(f"{option}={value}")
        elif isinstance(value, os.PathLike):
            said.append(f"{option}={os.fspath(value)}")
        elif isinstance(value, (list, tuple)):
            said.append(f"{option}=" + ",".join(str(item) for item in value))
        elif isinstance(value, int):
            said.append(f"{option}={value}")
        else:
            # The shortest text that reads back to the same number; for everything else, what the command refuses by name.
            try:
                said.append(f"{option}={float(value)!r}")
            except (TypeError, ValueError):
                said.append(f"{option}={value!r}")
    return said


Kind = TypeVar("Kind", bound="Answer")


class Answer(dict[str, Any]):
    """What a command answers: a dictionary whose entries are attributes, too.

    >>> answer = Answer(epsilon=1.0, accountants={"pld": 1.0})
    >>> answer.epsilon, answer["epsilon"], answer.accountants.pld
    (1.0, 1.0, 1.0)
    """

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            raise AttributeError(f"there is no `{name}` among {', '.join(self)}") from None
        if name == "certificate" and isinstance(value, dict):
            return Certificate(value)
        return Answer(value) if isinstance(value, dict) else value

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name for name in self if name.isidentifier())]

    def to_json(self) -> str:
        """The answer as the command line's ``--json`` writes it."""
        return json.dumps(self, indent=2)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes it to a file, whole or not at all. Only a file of the same kind is replaced."""
        from ._files import write_whole

        kind = "answer" if self.keys() >= {"mean", "certificate"} else "other"
        write_whole(path, "certificate" if isinstance(self, Certificate) else kind, self.to_json())

    def __repr__(self) -> str:
        shown = {name: value for name, value in self.items() if not isinstance(value, (dict, list)) and value is not None}
        inside = ", ".join(f"{name}={value!r}" for name, value in shown.items())
        more = len(self) - len(shown)
        return f"{type(self).__name__}({inside}{f', and {more} more' if more else ''})"


class Certificate(Answer):
    """What is promised about the private rows, with all that the promise rests on.

    ``semidp.verify`` recomputes it; :meth:`save` writes the file that the command ``semidp verify`` reads.
    """

    @property
    def epsilon(self) -> float:
        """The epsilon of the guarantee; infinite where nothing is promised."""
        stated = self["guarantee"]["epsilon"]
        return float("inf") if stated is None else float(stated)

    @property
    def delta(self) -> float:
        """The delta of the guarantee."""
        return float(self["guarantee"]["delta"])

    @property
    def adjacency(self) -> str:
        """Which data sets must look alike."""
        return str(self["guarantee"]["adjacency"])

    def verify(self, *, allow_seeded: bool = False) -> Answer:
        """Recomputes the guarantee from the events; see :func:`semidp.verify`."""
        from .accounting import verify

        return verify(self, allow_seeded=allow_seeded)

    def __repr__(self) -> str:
        covered = "" if not self.get("not_covered") else f", not_covered={self['not_covered']!r}"
        covered += ", NOT private: seeded" if self.get("random_source") == "seeded" else ""
        return (
            f"Certificate(epsilon={self.epsilon!r}, delta={self.delta!r}, adjacency={self.adjacency!r}, "
            f"mechanism={self.get('mechanism')!r}{covered})"
        )


def tell(said: Sequence[str], stacklevel: int) -> None:
    """Warns of what an answer came with."""
    for text in said:
        kind: type[SemidpWarning] = SemidpWarning
        if "used as it is" in text or "declassified" in text:
            kind = DeclassifiedWarning
        elif "NOT private" in text or "not private" in text:
            kind = NotPrivateWarning
        warnings.warn(_in_python(text), kind, stacklevel=stacklevel + 1)


def end(pending: _native.Pending | None, stacklevel: int) -> None:
    """Ends the run of an answer that a ledger paid for.

    Until then the same call gives the same answer and spends nothing more. So this comes last: an answer is not lost if a warning before it is
    an error, or if Ctrl-C comes before the caller has it.
    """
    left = None if pending is None else pending.end()
    if left is not None:
        # The run has ended: a warning that is an error must not cost the answer.
        with contextlib.suppress(SemidpWarning):
            tell([left], stacklevel=stacklevel + 1)


def release(pending: _native.Pending | None) -> None:
    """Lets go of a run, ended or not, for the next call: a traceback may keep everything else alive."""
    if pending is not None:
        pending.release()


@overload
def ask(command: str | Sequence[str], options: Mapping[str, Any], tables: dict[str, _native.Table] | None = ...) -> Answer: ...
@overload
def ask(
    command: str | Sequence[str], options: Mapping[str, Any], tables: dict[str, _native.Table] | None, kind: type[Kind]
) -> Kind: ...
def ask(
    command: str | Sequence[str],
    options: Mapping[str, Any],
    tables: dict[str, _native.Table] | None = None,
    kind: type[Answer] = Answer,
) -> Answer:
    """The answer of a command, of this class. Warnings point at the caller of the caller."""
    pending = None
    try:
        found, said, pending = _native.ask(words(command, options), tables or {})
        answer = kind(found)
        tell(said, stacklevel=3)
        end(pending, stacklevel=3)
    finally:
        release(pending)
    return answer
