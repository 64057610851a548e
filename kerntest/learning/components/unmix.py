"""Independent component analysis by kernels: `KernelICA`, and `train_unmix`, from a file to a report and a saved model."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kerntest.data.columns import is_all
from kerntest.errors import DataError, UsageError, listed, option
from kerntest.learning.components.kpca import KpcaLearner, associations, named_scores, rows_in_units, scores_given
from kerntest.learning.components.kpca_fit import KpcaOptions
from kerntest.learning.components.unmix_fit import TOLD, UnmixFit, UnmixModel, UnmixOptions, fit_sources
from kerntest.learning.estimator import Transformer
from kerntest.learning.fit_pictures import source_panels
from kerntest.learning.learner import Judgement, Learner, trains
from kerntest.learning.learner import train as train_learner
from kerntest.learning.rows import training_rows as training
from kerntest.learning.rows.leakage import told_of_series
from kerntest.learning.solvers import rotations
from kerntest.learning.work_of_fits import cost_of_sources
from kerntest.matrices.factor import as_points
from kerntest.report.results.component_record import UnmixedSource, UnmixPart, UnmixResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.engines.engine import Progress
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.encoding import Encoder
    from kerntest.learning.rows.training_rows import Labelled, TrainingOptions, TrainingRows
    from kerntest.learning.work_of_fits import Cost

# Features of held-out rows are permuted with this share of the trace left out, so many times, and of very many rows fewer:
# so many products of their entries at most.
PERMUTED, RELABELLINGS, FEWEST_RELABELLINGS, PRODUCTS = 1e-4, 999, 199, 4e10
# HSIC of two fitted sources over its mean of independent rows, from which they clearly depend on each other: of mixtures of
# independent sources none of 285 drawn had a pair of 9.
CLEARLY_LEFT = 10.0


class KernelICA(UnmixOptions, Transformer[UnmixModel, UnmixFit]):
    """Independent sources of which columns of numbers are linear mixtures.

    The rows are made white and turned so that their columns are independent. Searches look at all angles of each pair;
    from where they end the likelihood is maximised, with densities that are learned from the rows. Sources have mean 0 and
    variance 1; which is first, and their signs, are conventions: the one that makes most of the variance, and the largest
    entry positive. Of several Gaussian sources none is told from their rotations, with a warning in `fit_.warnings`.

    Parameters
    ----------
    components : int, optional
        How many sources; of more columns the leading principal components are unmixed. As many as columns by default.
    contrast : "likelihood" or "hsic"
        What is made extreme: the likelihood uses the rows best; "hsic" goes on from there to the least sum over pairs of
        HSIC, the measure of dependence that is told.
    restarts : int
        Random rotations from which searches begin, too; the likeliest end is taken.
    bandwidth : float
        Of the Gaussian between sources, in their standard deviations, for HSIC.
    scale : "standardize", "together" or "none"
        How numbers are scaled before; it matters only where there are more columns than sources.
    seed : int
    threads : int, optional

    Examples
    --------
    Two uniform sources, mixed: each source that is found goes with one of them.

    >>> import numpy as np
    >>> sources = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    >>> found = KernelICA().fit_transform(sources @ np.array([[2.0, 1.0], [1.0, 1.0]]))
    >>> np.abs(np.corrcoef(sources.T, found.T)[:2, 2:]).round(1).max(axis=0).tolist()
    [1.0, 1.0]
    """

    MODEL, CALLED, SHOWN = UnmixModel, "these sources are", {"components": "n_components", "bandwidth": "bandwidth"}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the sources of n rows.

        Parameters
        ----------
        X : path, ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            Columns of numbers or dates; categories take no part.
        y : None
            Ignored: so that pipelines can call it.

        Warns
        -----
        KerntestWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options or the rows do not allow it.

        Notes
        -----
        After Bach and Jordan (2002), "Kernel independent component analysis", Shen, Jegelka and Gretton (2009), "Fast
        kernel-based independent component analysis", and Hastie and Tibshirani (2003), "Independent components analysis
        through product density estimation".

        Cost: O(n p^2) to make white; each search O(J^2) densities of at most 4,000 rows; O(n J^2) and densities on a grid
        for each of some ten steps of the likelihood, O(n (20 J)^2) for each of HSIC.
        """
        return self._learned(UnmixLearner(self), X, y)

    @property
    def mixing_(self) -> Array:
        """By how much each column changes with each source, in the units of the columns, shape (p, components)."""
        return _spread(self.model.encoder)[:, None] * self.model.mixing

    @property
    def components_(self) -> Array:
        """The unmixing matrix: sources = components_ (x - mean_), shape (components, p)."""
        return self.model.unmixing / _spread(self.model.encoder)

    @property
    def mean_(self) -> Array:
        """Of the columns over the training rows, shape (p,)."""
        return _mean(self.model)

    def transform(self, X: Any) -> Any:
        """Return the sources of n rows, shape (n, components): an array, or a frame after `set_output`.

        Parameters
        ----------
        X : as in `fit`
        """
        return self._framed(self.model.scores(self._points(X), self.engine), X)

    def inverse_transform(self, scores: Any) -> Any:
        """Return the rows that sources mix to, in the units of the columns.

        Parameters
        ----------
        scores : ndarray, shape (n, components)

        Returns
        -------
        ndarray, shape (n, p), or DataFrame
            A DataFrame where some columns are dates.

        Raises
        ------
        DataError
            If the scores have another shape.
        """
        return rows_in_units(
            self.model, self.model.preimages(scores_given(scores, self.model.n_components), self.engine).points
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the sources, as files of them have them; those of columns are not needed."""
        return named_scores("s", self.model.n_components, self.n_features_in_, input_features)


@trains(UnmixOptions, "unknown")
def train_unmix(train: Any, *, color: str | None = None, **options: Any) -> UnmixResult:
    """Find the independent sources of which the columns of a table are mixtures, and save the map.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
    components : int, optional
        How many sources; as many as columns by default.
    contrast : {"likelihood", "hsic"}
    restarts : int
    color : str, optional
        A column that takes no part and colours the rows in the picture.
    test : path, ndarray, DataFrame, pyarrow Table or kerntest.Table, optional
        Rows to test for dependence that is left; or
    test_fraction : float, optional
        such a share of the rows, drawn at random.
    cluster : str, optional
        A column whose rows of one value stay together.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: two columns before, two sources after, and the mixing matrix.
    bandwidth, scale, seed
        As in `KernelICA`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; as in `read_table`.

    Returns
    -------
    UnmixResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options or the rows do not allow it.
    """
    return train_learner(UnmixLearner(UnmixOptions.taken_from(options), color), train, **options)


class UnmixLearner(Learner[UnmixFit, UnmixResult]):
    """Sources of the numbers of a table; the column `color` takes no part."""

    COMMAND, ESTIMATOR, RESULT, NUMBERS, supervised = "unmix", "KernelICA", UnmixResult, True, False

    def __init__(self, options: UnmixOptions, color: str | None = None) -> None:
        self.options: UnmixOptions = options
        self.color = color

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return a table, without dates that nobody named: time runs on, and is no mixture."""
        labelled = training.read_labelled(data, (), reading, shown=() if self.color is None else (self.color,))
        columns = labelled.features.columns
        dates = [one.name for one in columns if one.kind == "date"]
        if not dates or not is_all(reading.columns) or not any(one.kind == "number" for one in columns):
            return labelled
        told = f"{'columns' if len(dates) > 1 else 'column'} {listed([repr(one) for one in dates])}"
        told += f" {'are dates' if len(dates) > 1 else 'is a date'} and left out: time is no mixture of sources; {option('columns', dates)} takes them"
        features = labelled.features.select([one.name for one in columns if one.kind != "date"])
        return replace(labelled, features=features, warnings=(*labelled.warnings, told))

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of a table as the linear kernel sees them: categories take no part."""
        names = [column.name for column in labelled.features.columns if column.is_category]
        if gaps := [name for name in labelled.gaps if name not in names]:
            told = f"sources are mixed from numbers: whether a value is there is none ({listed(gaps)})"
            raise UsageError(told, hint=f"{option('missing', 'drop')} leaves rows out", code="usage.missing")
        numbers = labelled.features.select([name for name in labelled.features.names if name not in names])
        if not numbers.columns:
            told = f"no column of {labelled.read.name} holds numbers"
            hint = "sources are those of columns of numbers or dates"
            raise DataError(told, hint=hint, code="data.no_columns")
        linear = KpcaOptions(kernel="linear", scale=self.options.scale, seed=self.options.seed)
        rows = KpcaLearner(linear, self.color).rows(replace(labelled, features=numbers))
        return replace(rows, left_out=(*rows.left_out, *names))

    def rule(self, rows: TrainingRows) -> str:
        """Return what the bandwidth is of, in words."""
        del rows
        return "as given, in standard deviations of the sources"

    def cost(self, rows: TrainingRows) -> Cost:
        """Return what a search and a descent take."""
        options, width = self.options, len(rows.columns)
        count, searches = max(2, min(width, options.components or width)), options.restarts + 1
        return cost_of_sources(len(rows), width, count, contrast=options.contrast, searches=searches)

    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> UnmixFit:
        """Return the sources."""
        return fit_sources(rows, self.options, progress)

    def judge(
        self, rows: TrainingRows, fit: UnmixFit, test: TrainingRows | None, learned: Labelled
    ) -> Judgement[UnmixResult]:
        """Return how dependent columns and sources are, and whether sources of rows held out still are."""
        model, names = fit.model, [f"s{place}" for place in range(1, fit.model.n_components + 1)]
        spread, columns = _spread(model.encoder), as_points(rows.points).numeric - model.mean
        lengths = np.sqrt(np.einsum("ij,ij->j", columns, columns) / len(columns))
        lengths[lengths == 0] = 1.0
        before = _dependences(columns / lengths, model.bandwidth)
        features = rotations.centred_features(fit.sources, model.bandwidth, TOLD)
        after, warnings, held = rotations.pair_dependences(features), list[str](), None
        if test is not None:
            held, warnings = self._of_others(model, as_points(test.points), lengths, alone=learned.cluster is None)
        warnings = warnings or _clearly_left(after, features, names)
        if warnings:
            meaning = "that says little: independent series look dependent, too"
            warnings += told_of_series(learned.read, [[name] for name in rows.columns], meaning)
        if test is not None and learned.cluster is not None:
            warnings.append("there is no p-value, which would take the test rows of a cluster for independent")
        if taken := [one for one in names if one in rows.columns]:
            warnings.append(f"sources {listed(taken)} are not the columns of that name")
        made = (model.mixing**2).sum(axis=0) / (lengths**2).sum()
        sources = tuple(
            UnmixedSource(
                name, float(share), float((one**3).mean()), float((one**4).mean() - 3.0), tuple(down), tuple(across)
            )
            for name, share, one, down, across in zip(
                names,
                made,
                fit.sources.T,
                (spread[:, None] * model.mixing).T.tolist(),
                (model.unmixing / spread).tolist(),
                strict=True,
            )
        )
        fields = {
            "components": model.n_components,
            "components_requested": self.options.components,
            "contrast": self.options.contrast,
            "restarts": self.options.restarts,
            "iterations": fit.steps,
            "converged": fit.settled,
            "sources": sources,
            "mean": tuple(_mean(model).tolist()),
            "undetermined": tuple((names[i], names[j]) for i, j in fit.undetermined),
            "train": UnmixPart(len(rows), _mean_of_pairs(before), _mean_of_pairs(after), None),
            "test": held,
            "associations": associations(learned.features, fit.sources, rows.columns),
            "color": self.color,
        }
        color = learned.beside[0] if learned.beside else None
        drawn = partial(
            source_panels, columns=columns / lengths, sources=fit.sources, matrices=(before, after), color=color
        )
        return Judgement(fields, drawn, warnings)

    def _of_others(
        self, model: UnmixModel, points: Points, lengths: Array, *, alone: bool
    ) -> tuple[UnmixPart, list[str]]:
        """Return how dependent columns and sources of rows held out are, and what to know of it; a test of rows that are alone."""
        n, sources = len(points), model.scores(points, self.options.engine)
        before = _dependences((points.numeric - model.mean) / lengths, model.bandwidth)
        after = _dependences(sources, model.bandwidth)
        part = UnmixPart(n, _mean_of_pairs(before), _mean_of_pairs(after), None)
        if not alone:
            return part, []
        features = rotations.centred_features(sources, model.bandwidth, PERMUTED)
        products = float(n) * sum(one.shape[1] for one in features) ** 2
        relabellings = int(np.clip(PRODUCTS / max(products, 1.0), FEWEST_RELABELLINGS, RELABELLINGS))
        p_value = rotations.independence_p_value(features, relabellings, self.options.seed)
        part = replace(part, p_value=p_value)
        told = "sources of the test rows depend on each other (p = {:.2g}): a little of it is left by errors of estimation alone"
        return part, [told.format(p_value)] if p_value <= 0.05 else []


def _dependences(columns: Array, bandwidth: float) -> Array:
    """Return HSIC of all pairs of columns, shape (m, m)."""
    return rotations.pair_dependences(rotations.centred_features(columns, bandwidth, TOLD))


def _clearly_left(found: Array, features: Sequence[Array], names: Sequence[str]) -> list[str]:
    """Return the warning that the pair of fitted sources that depend on each other most does so clearly."""
    n, traces = len(features[0]), np.array([np.square(one).sum() for one in features])
    times = found * n * (n - 1) / np.outer(traces / n, traces)
    i, j = divmod(int(times.argmax()), len(times))
    told = (
        f"{names[i]} and {names[j]} still depend on each other, on the rows that they were fitted to: their HSIC is "
        f"{times[i, j]:,.0f} times what chance leaves, and the columns are no mixtures of independent sources alone"
    )
    return [told] if times[i, j] > CLEARLY_LEFT else []


def _mean_of_pairs(found: Array) -> float:
    """Return the mean of what stands off the diagonal."""
    m = len(found)
    return float(found.sum() / (m * (m - 1)))


def _spread(encoder: Encoder | None) -> Array:
    """Return the units of the numbers."""
    return np.array([one.spread for one in encoder.numeric]) if encoder is not None else np.ones(0)


def _mean(model: UnmixModel) -> Array:
    """Return the mean of the training rows, in the units of the columns."""
    centre = np.array([one.centre for one in model.encoder.numeric]) if model.encoder is not None else np.zeros(0)
    return np.asarray(centre + _spread(model.encoder) * model.mean)
