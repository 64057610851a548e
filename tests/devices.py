"""Devices that every machine has: the strict implementation of the array API standard, and PyTorch on the processors."""

import importlib
import importlib.util

import numpy as np

from kerntest.engines.device import Device
from kerntest.engines.gpu import GpuEngine

NAMESPACES = {"strict": "array_api_strict", "torch": "array_api_compat.torch"}
LIBRARIES = ["strict"] + (["torch"] if importlib.util.find_spec("torch") else [])


def device_of(library, precision="float32", memory=None):
    xp = importlib.import_module(NAMESPACES[library])
    if library == "torch":
        # Its threads wait for each other busily, which takes most of the time where the machine has other work.
        importlib.import_module("torch").set_num_threads(1)
    here = xp.asarray(np.zeros(1)).device
    return Device(
        xp, here, label=f"{library} on the processors", free=lambda: 2**32, memory=memory, precision=precision
    )


def engine_on(library, precision="float32", memory=None, threads=1):
    return GpuEngine(threads, memory, device=device_of(library, precision, memory))
