"""What can go wrong: one class for each kind of failure, all of them a :class:`SemidpError`.

Those that are the caller's to put right are also a :class:`ValueError`. A message names the parameter and what it must be, and
never holds a value of a private row.
"""

from __future__ import annotations

import re

__all__ = [
    "AnotherRunError",
    "BudgetRefusedError",
    "CheckpointError",
    "DeclassifiedWarning",
    "DifferentLengthsError",
    "DisagreementError",
    "DuplicateColumnError",
    "EmptyColumnError",
    "EndedError",
    "ForeignError",
    "ForkedError",
    "IncompleteError",
    "InputError",
    "InternalError",
    "InvalidColumnError",
    "InvalidParameterError",
    "KeyFileError",
    "KeyInUseError",
    "LedgerError",
    "MalformedCertificateError",
    "MalformedError",
    "MalformedEventError",
    "MalformedSchemaError",
    "MissingColumnsError",
    "MixedColumnError",
    "NoEventError",
    "NoFeaturesError",
    "NoGuaranteeError",
    "NoLabelsError",
    "NoRandomnessError",
    "NoRowsError",
    "NotPrivateWarning",
    "OutOfRangeError",
    "PrivacyLeakWarning",
    "PrivateScoreWarning",
    "PublicDataRequiredError",
    "PublicRowsNotTransformedWarning",
    "RecordError",
    "RunEndedError",
    "RunInterruptedError",
    "SecretCountError",
    "SemidpError",
    "SemidpWarning",
    "ShapeError",
    "SourceError",
    "StrictError",
    "TamperedError",
    "TargetError",
    "TooFewPublicRowsError",
    "TooManyEventsError",
    "TooManyValuesError",
    "UnknownClassError",
    "UnknownColumnError",
    "UnknownEventError",
    "UnknownFormatError",
    "UnmergeableError",
    "UnreachableError",
    "UnreadableError",
    "UnsuitableError",
    "UnsupportedTypeError",
    "ValueTooLongError",
    "WeakNoiseError",
    "WrongKindError",
]


class SemidpError(Exception):
    """Anything that goes wrong in semidp.

    ``parameter`` names what is wrong, where it is a parameter, and ``hint`` says how to put it right, where that is known.
    """

    def __init__(self, message: str, *, hint: str | None = None, parameter: str | None = None) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint
        self.parameter = parameter

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuilt, (type(self), self.message, self.hint, self.parameter))


def _rebuilt(kind: type[SemidpError], message: str, hint: str | None, parameter: str | None) -> SemidpError:
    return kind(message, hint=hint, parameter=parameter)


class InternalError(SemidpError):
    """A bug in semidp. Please report it."""


class InputError(SemidpError, ValueError):
    """Something was asked for that cannot be."""


class InvalidParameterError(InputError):
    """A parameter is not what it must be."""


class PublicDataRequiredError(InvalidParameterError):
    """The algorithm needs public rows, or what would be learned from them."""


class UnknownClassError(InvalidParameterError):
    """A label is none of the known classes."""


class BudgetRefusedError(SemidpError):
    """The privacy budget does not cover what was asked."""


class LedgerError(SemidpError):
    """A charge could not be recorded."""


class UnknownEventError(InputError):
    """No accountant knows the event."""


class NoGuaranteeError(InputError):
    """The event has no guarantee under this adjacency."""


class TooManyEventsError(InputError):
    """More events of different kinds than can be composed in reasonable time."""


class OutOfRangeError(InputError):
    """The answer leaves the supported range."""


class UnreachableError(InputError):
    """No noise, or no number of steps, meets the target."""


class DisagreementError(InternalError):
    """The two accountants contradict each other."""


class MalformedEventError(InputError):
    """Not an event that this version understands."""


class MalformedCertificateError(InputError):
    """Not a certificate that this version understands."""


class ShapeError(InputError):
    """Arrays do not fit together."""


class NoEventError(InputError):
    """Noise and sampling together have no privacy event."""


class SecretCountError(InputError):
    """The number of private rows would be needed, and is secret."""


class ForeignError(SemidpError):
    """A ticket or sum belongs to another run."""


class ForkedError(SemidpError):
    """A run was begun by another process."""


class UnmergeableError(SemidpError):
    """Partial sums do not belong together."""


class IncompleteError(SemidpError):
    """A partial sum lacks some shards."""


class SourceError(SemidpError):
    """Rows cannot be read."""


class KeyFileError(SemidpError):
    """The key of an interrupted run cannot be used."""


class KeyInUseError(KeyFileError):
    """Another process is at the run of a key."""


class RunEndedError(KeyFileError):
    """The run of a key has ended."""


class RecordError(SemidpError):
    """The record of a run cannot be used."""


class AnotherRunError(InputError):
    """This is not the run that the checkpoint is of."""


class TamperedError(SemidpError):
    """The checkpoint was changed after it was written."""


class NoRandomnessError(SemidpError):
    """The operating system's random generator failed."""


class UnsuitableError(InputError):
    """An estimator does not fit the budget or the rows."""


class WeakNoiseError(InputError):
    """The budget leads to noise so small that a single step shows whether a row took part in it."""


class TooFewPublicRowsError(InputError):
    """Something cannot be learned from so few public rows."""


class CheckpointError(SemidpError):
    """A checkpoint cannot be used."""


class EndedError(CheckpointError):
    """The run of a checkpoint has ended."""


class RunInterruptedError(SemidpError):
    """A run was interrupted where it can go on."""


class TargetError(InputError):
    """The target is not what the task needs."""


class NoFeaturesError(InputError):
    """There is nothing to learn from."""


class NoLabelsError(InputError):
    """No public row has a known label."""


class MalformedError(InputError):
    """Not a model of semidp."""


class UnknownFormatError(InputError):
    """A file is of a format that this version does not read."""


class UnreadableError(InputError):
    """A file cannot be read."""


class NoRowsError(InputError):
    """A table has no rows."""


class MissingColumnsError(InputError):
    """A table lacks columns."""


class DuplicateColumnError(InputError):
    """Two columns have one name."""


class UnsupportedTypeError(InputError, TypeError):
    """A column is neither numbers nor text."""


class WrongKindError(InputError):
    """A column is numbers where text was expected, or the other way round."""


class MixedColumnError(InputError):
    """A column holds both numbers and text."""


class EmptyColumnError(InputError):
    """A column has missing cells only."""


class TooManyValuesError(InputError):
    """A column of text has too many values to be a category."""


class ValueTooLongError(InputError):
    """A column of text has a cell that is too long for a category."""


class DifferentLengthsError(InputError):
    """Columns differ in length."""


class StrictError(InputError):
    """A strict check of the rows failed. That it did is covered by no guarantee."""


class UnknownColumnError(InputError):
    """There is no such column."""


class InvalidColumnError(InputError):
    """A column of a schema is not what it must be."""


class MalformedSchemaError(InputError):
    """Not a schema."""


class SemidpWarning(UserWarning):
    """Anything that semidp warns of."""


class NotPrivateWarning(SemidpWarning):
    """The result is not private, for example because its noise came from a seed."""


class DeclassifiedWarning(NotPrivateWarning):
    """Private rows were used as they are."""


class PrivacyLeakWarning(SemidpWarning):
    """Something was taken from private rows that no guarantee covers. The certificate says so, too."""


class PrivateScoreWarning(PrivacyLeakWarning):
    """A score is exact: that of private rows is a release that no epsilon covers."""


class PublicRowsNotTransformedWarning(SemidpWarning):
    """A step of a pipeline was applied to the private rows only."""


#: Variants that have no class of their own, or one that would be called like one of Python's.
_RENAMED = {
    "AlreadySet": "LedgerError",
    "Changed": "LedgerError",
    "Interrupted": "RunInterruptedError",
    "EndedElsewhere": "KeyFileError",
    "InvalidFeature": "InvalidColumnError",
    "MalformedModel": "MalformedError",
    "MalformedNames": "UnreadableError",
    "NotALedger": "LedgerError",
    "Other": "SemidpError",
    "ParseIntError": "InputError",
    "Ragged": "ShapeError",
    "Stopped": "RunInterruptedError",
    "Uncertain": "LedgerError",
    "Refused": "BudgetRefusedError",
    "UnknownDataset": "LedgerError",
    "UnknownEntry": "LedgerError",
    "UnknownSchemaFormat": "MalformedSchemaError",
    "UnknownModelFormat": "UnknownFormatError",
    "Unusable": "LedgerError",
    "Usage": "InputError",
}


#: Options that have another name here.
_NAMES = {
    "data": "X",
    "no-intercept": "fit_intercept",
    "private": "X",
    "public": "X_public",
    "seed": "random_state",
    "warm-start": "start",
}


def _name(option: str) -> str:
    """The parameter that an option is: ``clip-norm`` is ``clip_norm``."""
    return _NAMES.get(option, option.replace("-", "_"))


def _in_python(text: str) -> str:
    """Options as the parameters that they are here: ``--clip-norm 2`` is ``clip_norm=2``. Whole commands stay what they are."""
    # Not everything that has columns can choose among them.
    text = text.replace("leave it out with --columns", "leave it out")
    text = re.sub(r"--(trust|domain|estimator|algorithm|sampling|mechanism|average) (?!must\b)([a-z][a-z0-9:.-]*\w)", r"--\1='\2'", text)
    text = re.sub(r"--strict\b", "--strict=True", text)

    def told(match: re.Match[str]) -> str:
        command, option, number, table = match.groups()
        if command:
            return str(command)
        return f"{_name(option or table)}={number}" if number else _name(option or table)

    pattern = r"(`semidp [^`]*`)|--([a-z][a-z0-9-]*)(?: ((?:\d+\.)?\d[\d.e-]*\d|\d)\b)?|memory:\d+/([\w.]+)"
    return re.sub(pattern, told, text)


def _usage(message: str) -> str:
    """What the parser of the command line refuses, in the words of everything else."""
    for pattern, said in (
        (r"unexpected argument '--([\w-]+)' found", r"--\1 must be left out: there is no such parameter"),
        (r"invalid value '(.*)' for '--([\w-]+)[^']*' \[possible values: (.*)\]", r"--\2 must be one of \3, got `\1`"),
        (r"invalid value '(.*)' for '--([\w-]+)[^']*'(.*)", r"--\2 must be something else than `\1`\3"),
        (r"a value is required for '--([\w-]+)[^']*'.*", r"--\1 must have a value"),
        (r"the argument '--([\w-]+)[^']*' cannot be used with '--([\w-]+)[^']*'", r"--\1 must not be given with --\2"),
        (r"the argument '--([\w-]+)[^']*' cannot be used with: --([\w-]+).*", r"--\1 must not be given with --\2"),
        (r"the following required arguments were not provided: --([\w-]+).*", r"--\1 must be given"),
    ):
        if re.fullmatch(pattern, message, re.DOTALL):
            return re.sub(pattern, said, message, flags=re.DOTALL)
    return message


def _exception(variant: str, message: str, hint: str | None) -> SemidpError:
    """The exception for a failure of the native half."""
    kind = globals().get(_RENAMED.get(variant, f"{variant}Error"), SemidpError)
    message = re.sub(r"^CERTIFICATE\b", "--certificate", _usage(message))
    named = re.match(r"(?:one of )?--([a-z][a-z0-9-]*)|(?!there\b)([a-z][a-z0-9-]*) must\b", message)
    table = re.search(r"\bof memory:\d+/(private|public|data)\b", message)
    parameter = _name(table[1]) if table else None
    if named:
        option = named[1] or named[2]
        parameter = _name(option)
        if named[2]:
            message = "--" + message
        if variant in ("InvalidParameter", "Input", "Usage"):
            kind = InvalidParameterError
    # An event says of its fields what a parameter must be.
    message = re.sub(r"(?<=: )[a-z]+(?:-[a-z]+)+(?= must\b)", lambda match: _name(match[0]), message)
    # Help is elsewhere here.
    if hint is not None and hint.startswith("every command explains itself"):
        hint = None
    return kind(_in_python(message), hint=_in_python(hint) if hint else None, parameter=parameter)  # type: ignore[no-any-return]
