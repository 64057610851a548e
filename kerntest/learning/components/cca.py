"""Canonical correlations by kernels: `KernelCCA`, and `train_cca`, from a file to a report and a saved model."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from kerntest.data.columns import is_all, match_names, split_patterns, told_of_left_out
from kerntest.data.missing import presence_name
from kerntest.errors import DataError, UsageError, counted, either, option
from kerntest.kernels.algebra import ColumnGroups, ColumnName, OnColumns
from kerntest.kernels.elementary import Hamming, by_covariance
from kerntest.kernels.text import parse_kernel
from kerntest.learning.components.cca_fit import (
    EXACT_ROWS,
    LANDMARKS,
    ROUNDING,
    SHARES,
    CcaFit,
    CcaModel,
    CcaOptions,
    fit_pairs,
)
from kerntest.learning.components.kpca import associations, named_scores
from kerntest.learning.estimator import Transformer, as_rows
from kerntest.learning.fit_pictures import pair_panels
from kerntest.learning.learner import NO_FEATURES, FittedModel, Judgement, Learner, trains
from kerntest.learning.learner import train as train_learner
from kerntest.learning.rows import training_rows as training
from kerntest.learning.rows.encoding import Encoder
from kerntest.learning.rows.leakage import kept_together, told_of_series
from kerntest.learning.scores import average_ranks
from kerntest.learning.work_of_fits import cost_of_pairs
from kerntest.matrices.factor import parse_features
from kerntest.report.results.component_record import CanonicalPair, CcaResult, LambdaCell
from kerntest.report.summaries.words import number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from kerntest.data.columns import Patterns
    from kerntest.data.table import Table
    from kerntest.engines.engine import Progress
    from kerntest.kernels.algebra import Expression
    from kerntest.kernels.base import Array, Points
    from kerntest.learning.rows.training_rows import ChosenKernel, Labelled, TrainingOptions, TrainingRows
    from kerntest.learning.work_of_fits import Cost

RELABELLINGS, PERMUTATION_STREAM = 999, 12
# A correlation from the first on is made by few rows if that of ranks is at most such a share of it.
WORTH_TELLING, OF_RANKS = 0.2, 0.4
# Standard errors, 1 / sqrt(n), that the correlation of unrelated sides seldom reaches on rows left out; and the best of those of
# all lambdas: of 40 sets of 20, of 60 and of 200 rows three, three and one had more.
BY_CHANCE, BY_CHANCE_OF_BEST = 2.0, 3.0


class KernelCCA(CcaOptions, Transformer[CcaModel, CcaFit]):
    """Canonical correlations of two sets of columns by kernels: pairs of a function of x and one of y that go together.

    Each pair has the largest correlation that is left, regularised: the functions maximise cov(f(x), g(y)) with var f(x) +
    (p/n) |f|^2 = var g(y) + (q/n) |g|^2 = 1, and are uncorrelated, in this sense, with those of the pairs before. p and q are
    lambda times the traces of the centred kernel matrices. Believe correlations on rows held out: those of the training rows
    are near 1 for any flexible kernel, whatever the data.

    Parameters
    ----------
    components : int
        How many pairs; fewer are found where a side has fewer directions, with a warning in `fit_.warnings`.
    kernel : Kernel or str
        A kernel or its text, for x and for y each by itself; "linear" is classical canonical correlation analysis, without
        the columns that are categories.
    bandwidth : "median" or float
        For bandwidths that the kernel leaves open; the median is that of each side.
    lambda_ : float, optional
        The penalty as a share of the variance in feature space of each side; 0 is none. By default the one whose first
        pair has the largest mean correlation on rows left out in folds.
    cv : int
        Folds.
    features : str, optional
        "nystroem:M": M random rows as landmarks of both sides. 500 are taken beyond 1,000 rows; "none" takes all rows.
    scale : "standardize", "together" or "none"
        Whether numeric columns are brought to mean 0 and standard deviation 1 of the training rows, each or by one scale.
    seed : int
    threads : int, optional
    unknown : "error" or "ignore"
        What to do with categories of new rows that no training row had: "ignore" takes them as different from all others,
        as `kerntest predict --unknown ignore` does, and as folds need that lack one.

    Examples
    --------
    A circle: no column of x is correlated with one of y, and functions of them are.

    >>> import numpy as np
    >>> angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 300)
    >>> x, y = np.cos(angle)[:, None], np.sin(angle)[:, None]
    >>> found = KernelCCA(components=1).fit(x[:200], y[:200])
    >>> bool(found.score(x[200:], y[200:]) > 0.9)
    True
    """

    MODEL, CALLED, SHOWN = CcaModel, "these pairs are", {"components": "n_components", "lambda_": "lambda_"}
    # The columns of Y, as `fit` was handed them.
    _names_y: tuple[str, ...] = ()

    def fit(self, X: Any, y: Any = None) -> KernelCCA:
        """Find the pairs of n rows.

        Parameters
        ----------
        X : ndarray of shape (n, p), DataFrame, pyarrow Table or kerntest.Table
            The columns of x.
        y : as X
            The columns of y; row i of it belongs to row i of X.

        Warns
        -----
        KerntestWarning
            Of what is to be known before the model is used.

        Raises
        ------
        UsageError, DataError, UndecidedError
            If the options, the rows or the kernel do not allow it.

        Notes
        -----
        Bach and Jordan (2002), "Kernel independent component analysis", section 3; Fukumizu, Bach and Gretton (2007),
        "Statistical consistency of kernel canonical correlation analysis". Of each side the 300 directions of most variance
        take part.

        Cost: O(n M (p + M) + M^3) for M landmarks, then O(k^3) for each fold and lambda with k <= 300 directions.
        """
        return self._learned(CcaLearner(self), X, y)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Find the pairs of n rows and return the variates of x, shape (n, components)."""
        return self.fit(X, y).transform(X)

    @property
    def correlations_(self) -> Array:
        """Of the pairs on the training rows, shape (components,)."""
        return self.model.correlations

    def transform(self, X: Any, y: Any = None) -> Any:
        """Return the variates of x for n rows, shape (n, components), an array or a frame after `set_output`.

        With y, a pair of them: those of x and those of y.
        """
        x = self._framed(self.model.one_side("x").scores(self._points(X), self.engine), X)
        return x if y is None else (x, self._of_y(y))

    def score(self, X: Any, y: Any) -> float:
        """Return the correlation of the first pair on n rows."""
        x, other = self.model.one_side("x").scores(self._points(X), self.engine), self._of_y(y)
        if len(x) != len(other):
            told, hint = f"X has {len(x):,} rows and y {len(other):,}", "row i of y belongs to row i of X"
            raise DataError(told, hint=hint, code="data.rows_do_not_pair")
        return float(_correlations(x, other)[0])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the variates of x, as files of them have them; those of columns are not needed."""
        return named_scores("x", self.model.n_components, self.n_features_in_, input_features)

    def _of_y(self, y: Any) -> Array:
        """Return the variates of y: its columns by name, or those of an array by place."""
        side, table = self.model.one_side("y"), _table(y, "y")
        names = self._names_y or self.model.columns_of("y")
        if table.format == "array" and len(table.names) == len(names):
            table = _renamed(table, names)
        labelled = training.read_labelled(table, (), training.TrainingOptions(), name="y")
        points, _ = cast("Encoder", side.encoder).transform(labelled.features, unknown=self.unknown)
        self._told_of_outside(side, points, "y")
        return np.asarray(side.scores(points, self.engine))

    def _applied(self) -> FittedModel:
        return self.model.one_side("x")

    def _handed_over(self, learner: Any, X: Any, y: Any, weights: Any) -> tuple[TrainingRows, Table | None]:
        """Return the rows of two tables beside each other, and the columns of x."""
        del weights
        if y is None:
            told, hint = (
                "KernelCCA requires y to be passed, but the target y is None",
                "fit(X, Y), with the columns of both sides",
            )
            raise UsageError(told, hint=hint, code="usage.target")
        x, other = _table(X, "x"), _table(y, "y")
        if x.n_rows != other.n_rows:
            told, hint = f"X has {x.n_rows:,} rows and y {other.n_rows:,}", "row i of y belongs to row i of X"
            raise DataError(told, hint=hint, code="data.rows_do_not_pair")
        twice = [name for name in x.names if name in other.names]
        if twice:
            told, hint = f"X and y both have a column {twice[0]!r}", "give columns of X and of y names of their own"
            raise UsageError(told, hint=hint, code="usage.column_twice")
        self._names_y = other.names
        learner.x_columns, learner.y_columns = x.names, other.names
        both = replace(x, name="X", columns=(*x.columns, *other.columns))
        labelled = learner.read(both, training.TrainingOptions())
        if labelled.n < 2:
            told, hint = "X has 1 sample, and one row has nothing to learn from", "hand over two rows or more"
            raise DataError(told, hint=hint, code="data.no_columns")
        rows = learner.rows(kept_together(labelled))
        return replace(rows, warnings=(*labelled.warnings, *rows.warnings)), x


@trains(CcaOptions)
def train_cca(train: Any, *, x_columns: Patterns = None, y_columns: Patterns = None, **options: Any) -> CcaResult:
    """Find functions of some columns of a table and of others that go together: canonical correlations.

    Parameters
    ----------
    train : path, "-", ndarray, DataFrame, pyarrow Table or kerntest.Table
    x_columns, y_columns : str or sequence of str, optional
        The columns of each side: names, ranges `a:b`, wildcards `temp_*`. One of the two alone goes with all other columns,
        and neither is needed where there are two columns.
    components : int
        How many pairs.
    lambda_ : float, optional
        The penalty as a share of the variance of each side; chosen by default.
    cv : int
        Folds in which lambda is chosen.
    test : path, ndarray, DataFrame, pyarrow Table or kerntest.Table, optional
        Rows to judge the pairs by; or
    test_fraction : float, optional
        such a share of the rows, drawn at random.
    cluster : str, optional
        A column whose rows of one value stay together.
    output : path, optional
        File for the model; an existing one is replaced only with `force`.
    plot : path, optional
        PNG, SVG or PDF file: the first pair on rows held out, and the correlations of all.
    kernel, bandwidth, features, scale, seed
        As in `KernelCCA`.
    columns, exclude, categorical, missing
        As in `mmd_test`: which columns and rows.
    threads : int, optional
    progress : callable, optional
    **csv
        How CSV is written: decimal, na, delimiter, encoding, header, comment, dayfirst; which rows are read: where, sample; as in
        `read_table`.

    Returns
    -------
    CcaResult

    Warns
    -----
    KerntestWarning
        Of each of the `warnings` of the result.

    Raises
    ------
    UsageError, DataError, UndecidedError
        If the options, the rows or the kernel do not allow it.
    """
    return train_learner(CcaLearner(CcaOptions.taken_from(options), x_columns, y_columns), train, **options)


class CcaLearner(Learner[CcaFit, CcaResult]):
    """Pairs of functions of some columns and of others."""

    COMMAND, ESTIMATOR, RESULT, supervised = "cca", "KernelCCA", CcaResult, False

    def __init__(self, options: CcaOptions, x_columns: Patterns = None, y_columns: Patterns = None) -> None:
        self.options: CcaOptions = options
        self.x_columns, self.y_columns = x_columns, y_columns
        self.groups: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def read(self, data: Any, reading: TrainingOptions) -> Labelled:
        """Return the columns of both sides."""
        sides = (self.x_columns, self.y_columns)
        if is_all(reading.columns) and not any(map(is_all, sides)):
            reading = replace(reading, columns=[name for one in sides for name in split_patterns(one)])
        labelled = training.read_labelled(data, (), reading)
        table, names = labelled.read, labelled.features.names
        named = [None if is_all(one) else match_names(one, table.names, table.name) for one in sides]
        if named == [None, None]:
            if len(names) != 2:
                told = f"which of the {counted(len(names), 'column')} of {table.name} are x, and which are y?"
                hint = f"{option('x', 'a,b')} {option('y', 'c')} names them; one of the two alone goes with all others"
                raise UsageError(told, hint=hint, code="usage.no_groups", where={"file": table.name})
            named = [[names[0]], [names[1]]]
        groups = [
            tuple(name for name in names if (name in own if own is not None else name not in (other or ())))
            for own, other in (named, reversed(named))
        ]
        for name in groups[0]:
            if name in groups[1]:
                told = f"column {name!r} is in both {option('x')} and {option('y')}"
                hint = "a column goes with itself: name it in one of the two"
                raise UsageError(told, hint=hint, code="usage.column_twice", where={"column": name})
        for side, group in zip((option("x"), option("y")), groups, strict=True):
            if not group:
                told = f"no column of {table.name} is left for {side}"
                hint = f"name at least one column in each of {option('x')} and {option('y')}, and exclude fewer"
                raise UsageError(told, hint=hint, code="usage.no_columns", where={"file": table.name})
        self.groups = groups[0], groups[1]
        return replace(
            labelled, features=labelled.features.select([name for name in names if name in {*groups[0], *groups[1]}])
        )

    def rows(self, labelled: Labelled) -> TrainingRows:
        """Return the rows of both sides, each with its kernel."""
        options, features, lost = self.options, labelled.features, []
        if options.linear:
            lost = [column.name for column in features.columns if column.is_category]
            features = features.select([name for name in features.names if name not in lost])
        reasons = {name: f"column {name!r} holds categories, which the linear kernel does not see" for name in lost}
        for group in self.groups:
            if not set(group) - set(lost):
                told, hint = f"{reasons[group[0]]}: no other is on its side", option("kernel", "gaussian")
                raise DataError(told, hint=hint, code="data.no_columns", where={"file": labelled.read.name})
        if options.linear and labelled.gaps:
            told = f"the linear kernel does not see whether a value of {labelled.gaps[0]!r} is there"
            hint = f"{option('missing', 'drop')}, or {option('kernel', 'gaussian')}"
            raise UsageError(told, hint=hint, code="usage.missing")
        encoder, points, unusable = Encoder.fit(features, options.scale, labelled.gaps)
        reasons |= unusable
        chosen = []
        for letter, group in zip("xy", self.groups, strict=True):
            names = tuple(name for name in encoder.names if name in group)
            if not names:
                told = f"no column of {letter} is left: {'; '.join(reasons[name] for name in group)}"
                hint = "a column must hold at least two different values, and not one per row"
                raise DataError(told, hint=hint, code="data.no_columns", where={"file": labelled.read.name})
            chosen.append(self._kernel_of(names, encoder, points))
        warnings = (*told_of_left_out(reasons), *encoder.told_of_scales(features, points))
        return training.TrainingRows(
            points,
            encoder,
            chosen[0],
            clusters=labelled.clusters,
            left_out=tuple(reasons),
            warnings=warnings,
            chosen_y=chosen[1],
        )

    def _kernel_of(self, names: tuple[str, ...], encoder: Encoder, points: Points) -> ChosenKernel:
        """Return the kernel of one side: of its columns alone."""
        kernel = self.options.kernel
        # Whether a number is missing is a category.
        seen = names + tuple(presence_name(one.name) for one in encoder.columns if one.indicator and one.name in names)
        if isinstance(kernel, str):
            of_codes = all(one.is_category for one in encoder.columns if one.name in names)
            kernel = Hamming() if of_codes and kernel.strip().lower() == "gaussian" else parse_kernel(kernel)
        if by_covariance(kernel):
            told, hint = f"canonical correlations have no use for the kernel '{kernel}'", option("kernel", "linear")
            raise UsageError(told, hint=hint, code="usage.kernel_covariance")
        if isinstance(kernel, ColumnGroups):
            told = f"the kernel '{kernel}' names columns, and that of canonical correlations is the same for x and y"
            raise UsageError(told, hint="name a kernel without columns", code="usage.kernel_groups")
        own = copy(self.options)
        own.kernel = ColumnGroups((OnColumns(cast("Expression", kernel), names=tuple(map(ColumnName, seen))),))
        return training.choose_kernel(own, encoder, points, {})

    def settle(self, rows: TrainingRows) -> tuple[str, ...]:
        """Take landmarks where rows are many and nobody says otherwise; return why."""
        options, n = self.options, len(rows)
        if options.features is not None or options.linear or n <= EXACT_ROWS:
            self.options = options.with_features(options.asked_features)
            return ()
        self.options = options.with_features(f"nystroem:{LANDMARKS}")
        every = option("features", NO_FEATURES)
        return (f"{LANDMARKS} of the {n:,} rows, drawn at random, are landmarks of the functions; {every} takes all",)

    def rule(self, rows: TrainingRows) -> str:
        """Return how the bandwidths were chosen, in words."""
        return f"{super().rule(rows)}, of each side"

    def cost(self, rows: TrainingRows) -> Cost:
        """Return what the pairs take."""
        options, fits = self.options, 1 if self.options.lambda_ is not None else len(SHARES)
        landmarks, kernels = len(rows), [one.kernel for one in (rows.chosen, rows.chosen_y) if one is not None]
        if options.asked_features is not None:
            landmarks = min(parse_features(options.asked_features)[1], landmarks)
        width = max(map(len, self.groups))
        told: Any = {
            "fits": fits * options.cv + 1,
            "folds": options.cv,
            "threads": options.engine.here.threads,
            "width": width if options.linear else landmarks,
        }
        return cost_of_pairs(kernels, rows.points, landmarks=0 if options.linear else landmarks, **told)

    def fit(self, rows: TrainingRows, progress: Progress | None = None) -> CcaFit:
        """Return the pairs."""
        return fit_pairs(rows, self.options, progress)

    def judge(
        self, rows: TrainingRows, fit: CcaFit, test: TrainingRows | None, learned: Labelled
    ) -> Judgement[CcaResult]:
        """Return how the pairs go together on rows held out, or left out, beside the training rows."""
        del rows
        model, count = fit.model, fit.model.n_components
        sides = model.columns_of("x"), model.columns_of("y")
        held, p_value, drawn = None, None, fit.held if len(fit.held) else fit.scores[:, [0, count]]
        if test is not None:
            scores = model.scores(test.points, self.options.engine)
            drawn = scores[:, [0, count]]
            held = _correlations(scores[:, :count], scores[:, count:])
            if learned.cluster is None:
                p_value = _p_value(scores[:, 0], scores[:, count], self.options.seed)
        left = [*fit.left_out, *[None] * (count - len(fit.left_out))]
        pairs = tuple(
            CanonicalPair(
                f"x{place + 1}",
                f"y{place + 1}",
                float(fit.singular[place]),
                float(model.correlations[place]),
                left[place],
                None if held is None else float(held[place]),
            )
            for place in range(count)
        )
        of_x, of_y = (
            associations(learned.shown, fit.scores[:, part], names)
            for names, part in zip(sides, (slice(count), slice(count, None)), strict=True)
        )
        judged = pairs[0].test if pairs[0].test is not None else pairs[0].left_out
        fields = {
            "components": count,
            "components_requested": self.options.components,
            "correlation": judged,
            "p_value": p_value,
            "pairs": pairs,
            "lambda_": model.lambda_,
            "penalties": fit.penalties,
            "folds": fit.folds,
            "lambdas": tuple(LambdaCell(*cell) for cell in fit.cells),
            "columns_x": sides[0],
            "columns_y": sides[1],
            "kernel_x": str(model.of_x.kernel),
            "kernel_y": str(model.y_kernel),
            "associations_x": of_x,
            "associations_y": of_y,
        }
        way = option("test-fraction", 0.3)
        if learned.cluster is not None:
            # Rows of a cluster change places together, which those of the test part are too few for.
            way = f"{either('`kerntest hsic`', 'hsic_test')} with the same columns and {option('cluster', [learned.cluster.name])}"
        warnings = [] if test is not None else _told_of_chance(judged, len(fit.scores), way, chosen=bool(fit.cells))
        if test is not None and learned.cluster is not None:
            warnings.append(
                f"there is no p-value, which would take the test rows of a cluster for independent: {way} gives one"
            )
        warnings += _told_of_few_rows(judged, drawn if test is not None or len(fit.held) else None)
        if learned.cluster is None:
            meaning = "correlations and p-values of rows held out are far too good"
            warnings += told_of_series(learned.read, sides, meaning)
        if fit.folds and not fit.left_out:
            warnings.append(_told_of_folds(fit.folds, given=self.options.lambda_ is not None))
        return Judgement(fields, partial(pair_panels, scores=drawn), warnings)


def _told_of_chance(correlation: float | None, n: int, way: str, *, chosen: bool) -> list[str]:
    """Return a warning about a correlation of n rows left out that sides without anything in common have."""
    reach = (BY_CHANCE_OF_BEST if chosen else BY_CHANCE) / math.sqrt(n)
    if correlation is None or not 0.0 < correlation < reach:
        return []
    told = f"a correlation of {number(correlation, 3)} on {n:,} rows left out can be chance, which alone gives up to {reach:.2g}"
    return [f"{told}: more rows tell more, and {way} gives a p-value"]


def _told_of_few_rows(correlation: float | None, scores: Array | None) -> list[str]:
    """Return a warning about a correlation of rows held out that few of them make: that of their ranks is far smaller."""
    if correlation is None or scores is None or correlation < WORTH_TELLING:
        return []
    of_ranks = float(_correlations(*(average_ranks(side)[:, None] for side in scores.T))[0])
    if of_ranks > OF_RANKS * correlation:
        return []
    told = f"few rows make the correlation of {number(correlation, 3)}: that of the ranks of both functions is {number(of_ranks, 2)}"
    return [f"{told}; a larger {option('lambda')} or {option('kernel', 'linear')} is moved less by rows far out"]


def _told_of_folds(folds: int, *, given: bool) -> str:
    """Return the warning about folds without whose rows one side does not vary along the other."""
    chosen = "" if given else ", and lambda is the largest that is tried"
    way = option("cv", 2) if folds > 2 else option("cv", folds + 3)
    return f"without the rows of one of {folds} folds there is no pair: no correlation of rows left out{chosen}; {way} makes other folds"


def _table(X: Any, letter: str) -> Table:
    """Return what is handed over as one side; columns of an array are called after the side."""
    if letter == "y" and not hasattr(X, "to_frame") and (hasattr(X, "__array__") or isinstance(X, (list, tuple))):
        # A target of one column.
        X = np.asarray(X).reshape(-1, 1) if np.asarray(X).ndim == 1 else X
    table = training.TrainingOptions().read(as_rows(X), letter)
    names = [f"{letter}{place}" for place in range(1, len(table.names) + 1)]
    return _renamed(table, names) if table.format == "array" else table


def _renamed(table: Table, names: Sequence[str]) -> Table:
    columns = (replace(column, name=name) for column, name in zip(table.columns, names, strict=True))
    return replace(table, columns=tuple(columns))


def _correlations(x: Array, y: Array) -> Array:
    """Return the correlation of each column of x with that of y; 0 where one is constant."""
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    lengths = np.linalg.norm(x, axis=0) * np.linalg.norm(y, axis=0)
    both = np.einsum("ij,ij->j", x, y)
    return np.asarray(np.clip(np.where(lengths > 0, both / np.where(lengths > 0, lengths, 1.0), 0.0), -1.0, 1.0))


def _p_value(x: Array, y: Array, seed: int) -> float:
    """Return the share of random permutations of y, the identity among them, that have at least the correlation of the rows."""
    rng, x, y = np.random.default_rng((seed, PERMUTATION_STREAM)), x - x.mean(), y - y.mean()
    found, slack = float(x @ y), ROUNDING * float(np.linalg.norm(x) * np.linalg.norm(y))
    as_large = sum(float(x @ rng.permutation(y)) >= found - slack for _ in range(RELABELLINGS))
    return (1 + as_large) / (1 + RELABELLINGS)
