"""Results of learners without a target, field by field their JSON: components and sources."""

from __future__ import annotations

from kerntest.dataclass import dataclass
from kerntest.report.results.learning_record import LearnerResult
from kerntest.report.results.record import Record


@dataclass(frozen=True)
class ComponentAssociation(Record):
    """How a column goes with each component, on the training rows.

    Parameters
    ----------
    column : str
    measure : str
        "pearson", the correlation, for numbers and dates; "eta", the square root of the share of the component's variance
        that lies between the categories, for categories.
    values : tuple of float or None
        One for each component.
    """

    column: str
    measure: str
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class KpcaPart(Record):
    """How much of some rows the components explain.

    Parameters
    ----------
    n : int
        Rows.
    explained : float
        Share of the variance in feature space.
    residual : float
        Mean of |phi(x) - P phi(x)|^2, the squared distance in feature space to what the components say.
    """

    n: int
    explained: float
    residual: float


@dataclass(frozen=True, kw_only=True)
class KpcaResult(LearnerResult):
    """Kernel principal components of a table.

    Beside what every `LearnerResult` holds:

    Parameters
    ----------
    components : int
        How many there are.
    components_requested : int
        How many were asked for.
    eigenvalues : tuple of float
        Of HKH, descending.
    explained_variance_ratio : tuple of float
        The same relative to the trace of HKH.
    explained : float
        Their sum.
    trace : float
        Of HKH: the variance in feature space times n.
    train, test : KpcaPart or None
    associations : tuple of ComponentAssociation
        Of the columns, the one that goes most clearly with any component first.
    solver : str
        "lanczos", "dense", or "covariance" where the columns or explicit features were decomposed.
    color : str or None
        The column that colours the picture.
    """

    components: int
    components_requested: int
    eigenvalues: tuple[float, ...]
    explained_variance_ratio: tuple[float, ...]
    explained: float
    trace: float
    train: KpcaPart
    test: KpcaPart | None
    associations: tuple[ComponentAssociation, ...]
    solver: str
    color: str | None
