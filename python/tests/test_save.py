"""Files that Python writes: whole or not at all, and never in the place of what semidp did not write."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semidp
from semidp import errors

X = np.random.default_rng(0).normal(size=(1200, 3))
Y = X @ [1.0, -2.0, 0.5]


@pytest.fixture(scope="module")
def model() -> Any:
    return semidp.LinearRegression(epsilon=1.0, delta=1e-6).fit(X[200:], Y[200:], X_public=X[:200], y_public=Y[:200])


@pytest.fixture(scope="module")
def answer() -> Any:
    return semidp.mean(X[200:], X_public=X[:200], epsilon=1.0, delta=1e-6)


def writers(model: Any, answer: Any) -> dict[str, Any]:
    return {
        "model": model.save_model,
        "answer": answer.save,
        "certificate": answer.certificate.save,
        "other": semidp.calibrate(epsilon=1.0, delta=1e-6, steps=10).save,
    }


def test_only_files_of_the_same_kind_are_replaced(tmp_path: Path, model: Any, answer: Any) -> None:
    write = writers(model, answer)
    for kind in write:
        write[kind](tmp_path / kind)
        text = (tmp_path / kind).read_text()
        json.loads(text)
        assert text.endswith("}\n")
        for other in write:
            if other == kind:
                write[other](tmp_path / kind)
                continue
            with pytest.raises(errors.InvalidParameterError, match="not overwritten") as refused:
                write[other](tmp_path / kind)
            assert refused.value.parameter == "path" and "--" not in str(refused.value)
            assert (tmp_path / kind).read_text() == text
        for foreign in ("age,income\n1,2\n", '{"a": 1}', "[1]", "1"):
            (tmp_path / "data").write_text(foreign)
            with pytest.raises(errors.InvalidParameterError, match="not overwritten"):
                write[kind](tmp_path / "data")
            assert (tmp_path / "data").read_text() == foreign
        # An empty file is nothing to lose.
        (tmp_path / "data").write_text("")
        write[kind](tmp_path / "data")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*write, "data"])


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_nothing_waits_at_the_name_of_a_temporary_file(tmp_path: Path, model: Any, answer: Any) -> None:
    for kind, write in writers(model, answer).items():
        foreign = tmp_path / f"{kind}-foreign"
        foreign.write_text("precious")
        # The name that a temporary file used to have.
        (tmp_path / f"{kind}.{os.getpid()}.tmp").symlink_to(foreign)
        previous = os.umask(0)
        try:
            write(tmp_path / kind)
        finally:
            os.umask(previous)
        assert foreign.read_text() == "precious" and (tmp_path / f"{kind}.{os.getpid()}.tmp").is_symlink()
        assert stat.S_IMODE((tmp_path / kind).stat().st_mode) == 0o644
        # What was closed to others stays so.
        (tmp_path / kind).chmod(0o600)
        write(tmp_path / kind)
        assert stat.S_IMODE((tmp_path / kind).stat().st_mode) == 0o600


def test_what_cannot_be_written_is_said(tmp_path: Path, answer: Any) -> None:
    for path in (tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(errors.InvalidParameterError) as refused:
            answer.save(path)
        assert refused.value.parameter == "path"
