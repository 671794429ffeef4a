"""The command line as a process of its own: ``dpselect``, or ``python -m dpselect``."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def main() -> int:
    """Run a command. An interrupt while modules are loading ends the process: there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as by nohup
        signal.signal(signal.SIGINT, _leave)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no command multiplies matrices
    from dpselect.cli import main as run  # noqa: PLC0415 - after the handler

    code = run()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done
    return code


def _leave(_number: int, _frame: FrameType | None) -> None:
    os.write(2, b"dpselect: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
