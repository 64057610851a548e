"""Results of learners without a target, field by field their JSON: components and sources."""

from __future__ import annotations

from kerntest.dataclass import dataclass
from kerntest.report.results.learning_record import LearnerResult
from kerntest.report.results.record import Record

OF_COMPONENTS = "summaries.component_summary.{command}_summary"


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

    WORDS = OF_COMPONENTS
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


@dataclass(frozen=True)
class CanonicalPair(Record):
    """A function of x and one of y, and their correlation.

    Parameters
    ----------
    x, y : str
        "x1" and "y1", "x2" and "y2", ...: what `kerntest transform` calls them.
    singular_value : float
        The regularised correlation that they maximise; of the first pair KCC of the same penalties.
    train : float
        Their correlation on the training rows: near 1 for flexible kernels, whatever the data.
    left_out : float or None
        On rows left out, a mean over folds; None where there are too few rows.
    test : float or None
        On test rows.
    """

    x: str
    y: str
    singular_value: float
    train: float
    left_out: float | None
    test: float | None


@dataclass(frozen=True)
class LambdaCell(Record):
    """A penalty that was tried, and the mean correlation of the first pair on rows left out in folds."""

    lambda_: float
    correlation: float


@dataclass(frozen=True, kw_only=True)
class CcaResult(LearnerResult):
    """Canonical correlations of some columns of a table with others.

    Beside what every `LearnerResult` holds:

    Parameters
    ----------
    components : int
        How many pairs there are.
    components_requested : int
        How many were asked for.
    correlation : float or None
        Of the first pair: on test rows, else on rows left out in folds.
    p_value : float or None
        Of the hypothesis that x and y are independent, by permutations of the first pair on test rows; None without them
        and where rows stay together.
    pairs : tuple of CanonicalPair
    lambda_ : float
        The penalty as a share of the variance in feature space of each side; in the JSON "lambda".
    penalties : tuple of (float, float)
        The same in units of the centred kernel matrices of x and y, to whose diagonals it is added.
    folds : int
        In which rows were left out; 0 where there are too few rows.
    lambdas : tuple of LambdaCell
        What was tried; nothing where lambda was given.
    columns_x, columns_y : tuple of str
    kernel_x, kernel_y : str
    associations_x, associations_y : tuple of ComponentAssociation
        Of the columns of each side with its own functions: the loadings.
    cluster : str or None
        The column whose rows of one value stay together.
    n_clusters : int or None
        Sets of training rows that no split parts; None where every row is on its own.
    """

    WORDS = OF_COMPONENTS
    components: int
    components_requested: int
    correlation: float | None
    p_value: float | None
    pairs: tuple[CanonicalPair, ...]
    lambda_: float
    penalties: tuple[float, float]
    folds: int
    lambdas: tuple[LambdaCell, ...]
    columns_x: tuple[str, ...]
    columns_y: tuple[str, ...]
    kernel_x: str
    kernel_y: str
    associations_x: tuple[ComponentAssociation, ...]
    associations_y: tuple[ComponentAssociation, ...]
    cluster: str | None
    n_clusters: int | None


@dataclass(frozen=True)
class UnmixedSource(Record):
    """A source, which has mean 0 and variance 1 over the training rows, with the columns of the report in its tuples.

    Parameters
    ----------
    name : str
        "s1", "s2", ...
    variance_ratio : float
        Share of the variance of all columns, as they are scaled, that this source makes.
    skewness, kurtosis : float
        Third moment, and fourth less 3: both are 0 for a Gaussian.
    mixing : tuple of float
        By how much a column changes with the source, in the units of the column.
    unmixing : tuple of float
        What a unit of a column, off its mean, counts in the source.
    """

    name: str
    variance_ratio: float
    skewness: float
    kurtosis: float
    mixing: tuple[float, ...]
    unmixing: tuple[float, ...]


@dataclass(frozen=True)
class UnmixPart(Record):
    """How dependent columns and sources are on some rows.

    Parameters
    ----------
    n : int
        Rows.
    hsic_before, hsic_after : float
        HSIC of the Gaussian, less its mean over relabellings: about 0 where nothing depends. The mean over pairs of
        columns, in standard deviations of the training rows, and over pairs of sources.
    p_value : float or None
        Of the hypothesis that the sources are independent, by relabellings of the sum over pairs; None of training rows,
        which the sources were fitted to, and where rows stay together.
    """

    n: int
    hsic_before: float
    hsic_after: float
    p_value: float | None


@dataclass(frozen=True, kw_only=True)
class UnmixResult(LearnerResult):
    """Independent sources of which the columns of a table are mixtures.

    Beside what every `LearnerResult` holds:

    Parameters
    ----------
    components : int
        How many sources there are.
    components_requested : int or None
        How many were asked for; None for as many as columns.
    contrast : str
        What is extreme: "likelihood" or "hsic".
    restarts : int
        Random rotations that the search began from, too.
    iterations : int
        Steps of the last descent.
    converged : bool
    sources : tuple of UnmixedSource
        The one that makes most of the variance first.
    mean : tuple of float
        Of the columns: sources are unmixing (x - mean), rows mean + mixing (sources).
    undetermined : tuple of (str, str)
        Pairs of sources that could be any rotation of each other, as two Gaussian ones can.
    train, test : UnmixPart or None
    associations : tuple of ComponentAssociation
        Of the columns with the sources, the clearest first.
    color : str or None
        The column that colours the picture.
    cluster : str or None
        The column whose rows of one value stay together.
    n_clusters : int or None
        Sets of training rows that no split parts; None where every row is on its own.
    """

    WORDS = OF_COMPONENTS
    components: int
    components_requested: int | None
    contrast: str
    restarts: int
    iterations: int
    converged: bool
    sources: tuple[UnmixedSource, ...]
    mean: tuple[float, ...]
    undetermined: tuple[tuple[str, str], ...]
    train: UnmixPart
    test: UnmixPart | None
    associations: tuple[ComponentAssociation, ...]
    color: str | None
    cluster: str | None
    n_clusters: int | None
