"""Results of kernel principal components as frozen records. Field by field they are the JSON of `kerntest kpca`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kerntest.report.record import Record

if TYPE_CHECKING:
    from kerntest.report.record import Provenance


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class KpcaResult(Record):
    """Kernel principal components of a table.

    Parameters
    ----------
    schema : str
        "kerntest.kpca/1".
    n_train, n_test : int
    judged_on : str
        "train", or "test" where there are test rows.
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
    kernel : str
        As resolved; given back as `kernel=` it gives the same components.
    bandwidth, gamma : float or None
        Of a kernel that has one bandwidth; gamma = 1 / (2 bandwidth^2) for the Gaussian.
    solver : str
        "lanczos", "dense", or "covariance" where the columns or explicit features were decomposed.
    features : str or None
        Explicit features, and
    feature_error : float or None
        the root mean square error of the kernel values that they stand for.
    color : str or None
        The column that colours the picture.
    model : str or None
        The file that the model was written to.
    columns, columns_left_out : tuple of str
    """

    schema: str
    command: str
    n_train: int
    n_test: int
    judged_on: str
    components: int
    components_requested: int
    eigenvalues: tuple[float, ...]
    explained_variance_ratio: tuple[float, ...]
    explained: float
    trace: float
    train: KpcaPart
    test: KpcaPart | None
    associations: tuple[ComponentAssociation, ...]
    kernel: str
    bandwidth: float | None
    gamma: float | None
    solver: str
    features: str | None
    feature_error: float | None
    color: str | None
    model: str | None
    columns: tuple[str, ...]
    columns_left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    provenance: Provenance
