"""An engine that does what a cluster does to work, without one."""

from collections import deque
from itertools import islice

import cloudpickle

from kerntest.engines.engine import Engine
from kerntest.errors import KerntestError


class Elsewhere:
    """Stands for a cluster: work, items and results travel as bytes, and later items may be done first."""

    name = "dask"
    dtype = "float64"
    arrays = None
    memory = None
    threads = 3

    def __init__(self, before=None):
        self.here = Engine(1)
        self.sent, self.tasks = [], 0
        self._before = before

    def map(self, work, items, progress=None, *, total=None):
        del progress
        assert total is not None
        body = cloudpickle.dumps(work)
        if self._before is not None:
            self._before()
        items = iter(items)
        while window := [cloudpickle.dumps(item) for item in islice(items, 4)]:
            self.sent += map(len, window)
            results = deque()
            for one in reversed(window):
                self.tasks += 1
                try:
                    results.appendleft(cloudpickle.dumps(cloudpickle.loads(body)(cloudpickle.loads(one))))
                except KerntestError as error:
                    results.appendleft(cloudpickle.dumps(error))
            for one in results:
                result = cloudpickle.loads(one)
                if isinstance(result, Exception):
                    raise result
                yield result
