"""How a command ends: every error of ours is one line on stderr and an exit code."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ioweir.base import plain_text
from ioweir.errors import EXIT_FAILED, IoweirError, reason

if TYPE_CHECKING:
    from collections.abc import Callable


def report_errors(work: Callable[[], object]) -> None:
    """Every error of ours is one line on stderr and an exit code."""
    plain_text.guard_standard_streams()
    try:
        try:
            work()
        except SystemExit:
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except IoweirError as error:
        _end(str(error), error.exit_code)
    except BrokenPipeError:
        # The reader of our output has gone; nothing is left to be said to it.
        plain_text.forget(sys.stdout)
        sys.exit(EXIT_FAILED)
    except OSError as error:
        plain_text.forget(sys.stdout)
        # Other libraries raise it with words alone.
        _end(f"{error.filename or 'I/O'}: {reason(error)}" if error.strerror else str(error))
    except MemoryError:
        _end("there is not enough memory for this; a larger machine, or a smaller trace or file, may do")


def _end(message: str, exit_code: int = EXIT_FAILED) -> None:
    plain_text.say(f"ioweir: {message}")
    sys.exit(exit_code)
