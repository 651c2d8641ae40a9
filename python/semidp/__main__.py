"""The command line: ``semidp``, or ``python -m semidp``."""

from __future__ import annotations

import sys

from . import _native


def main() -> int:
    """Runs the command of ``sys.argv`` and returns its exit code."""
    import signal

    # Ctrl-C belongs to the command, which ends a run where it can go on; Python would only hear of it afterwards.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _native.main(["semidp", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
