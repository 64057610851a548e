"""How much work a solver may do."""

from __future__ import annotations

import time


class Budget:
    """Counts systems solved, and says when there have been enough of them.

    Parameters
    ----------
    systems : int or None
        At most so many; None for no bound.
    seconds : float or None
        From now on; looked at after each system.
    """

    def __init__(self, systems: int | None = None, seconds: float | None = None) -> None:
        self.used = 0
        self._most = systems
        self._end = None if seconds is None else time.monotonic() + seconds

    def count(self) -> None:
        """Count one more system."""
        self.used += 1

    @property
    def spent(self) -> bool:
        """Whether there have been enough."""
        if self._most is not None and self.used >= self._most:
            return True
        return self._end is not None and time.monotonic() > self._end
