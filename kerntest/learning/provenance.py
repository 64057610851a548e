"""What a model was fitted to, and with what: the provenance of its report."""

from __future__ import annotations

import time
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Protocol

import kerntest
from kerntest.report.record import InputRecord, Provenance

if TYPE_CHECKING:
    from kerntest.engines.base import Engine
    from kerntest.kernels.base import Kernel
    from kerntest.learning.encoding import Scale
    from kerntest.learning.training_rows import Labelled

LIBRARIES = ("numpy", "scipy", "pyarrow")


class LearnerOptions(Protocol):
    """What the options of every learner have."""

    @property
    def kernel(self) -> Kernel | str:
        """As asked for."""

    @property
    def scale(self) -> Scale:
        """Whether numbers are standardised."""

    @property
    def seed(self) -> int:
        """Of whatever is drawn."""


def input_of(labelled: Labelled) -> InputRecord:
    """Return what was read."""
    read = labelled.read
    return InputRecord(
        read.name,
        read.format,
        read.n_rows,
        labelled.n,
        read.sha256,
        read.delimiter,
        read.compression,
        len(read.files) or None,
    )


def provenance_of(
    options: LearnerOptions, inputs: tuple[InputRecord, ...], rule: str, engine: Engine, started: float
) -> Provenance:
    """Return the provenance of a model.

    Parameters
    ----------
    options : options of a learner
    inputs : tuple of InputRecord
    rule : str
        How the bandwidths were chosen.
    engine : Engine
    started : float
        When, by `time.perf_counter`.
    """
    return Provenance(
        version=kerntest.__version__,
        seed=options.seed,
        inputs=inputs,
        kernel=str(options.kernel),
        bandwidth=rule,
        scale=options.scale,
        dtype=engine.dtype,
        threads=engine.threads,
        libraries=_versions(),
        seconds=time.perf_counter() - started,
        engine=engine.name,
    )


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in LIBRARIES}
