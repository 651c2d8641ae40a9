"""Every tutorial runs, and says what it is there to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TUTORIALS = sorted((Path(__file__).parents[1] / "tutorials").glob("*.py"))

#: Lines that must be among the printed ones, for those that are known here.
SAID = {
    "account_for_opacus": [
        "One row added or removed: epsilon 1.984 at delta 1e-05.",
        "One row exchanged:        epsilon 4.148 at delta 1e-05.",
        "The certificate of 3 events holds: True.",
        "After somebody wrote epsilon 1 into it: False.",
    ],
    "auditing": ["Claimed: epsilon 2.0. Shown: at least 1.", "Verdict: consistent."],
    "mean_with_public_data": [
        "Promised: epsilon 0.5 at delta",
        "Recomputed from its events, the certificate holds: True.",
        "Asking twice costs epsilon",
    ],
}


def test_the_tutorials_are_there() -> None:
    assert set(SAID) <= {path.stem for path in TUTORIALS}


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    for line in SAID.get(path.stem, []):
        assert line in done.stdout
    assert list(tmp_path.iterdir()) == []
