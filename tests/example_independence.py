"""Results as the independence tests make them, for tests of what is done with results. Standard library only."""

from dataclasses import fields, replace

from example_results import PERMUTATION

from kerntest import IndependenceResult, JointResult, ScreenResult, SelectionResult
from kerntest.report.results.independence_record import (
    GroupPair,
    JointGroup,
    KernelPair,
    PairEffect,
    SelectedColumn,
)
from kerntest.report.results.record import FamilyRecord, InputRecord, Provenance
from kerntest.report.summaries.independence_summary import (
    independence_sentence,
    joint_sentence,
    screen_sentence,
    selection_sentence,
)


def provenance(names=("machines.csv",), kernel="auto", bandwidth="auto"):
    return Provenance(
        version="0.1.0",
        seed=0,
        inputs=tuple(InputRecord(name, "csv", 320, 300, "ab" * 32, ";") for name in names),
        kernel=kernel,
        bandwidth=bandwidth,
        scale="standardize",
        dtype="float64",
        threads=2,
        libraries={"numpy": "2.4.6"},
        seconds=0.123456,
    )


def independence_result(p_value=0.034, alpha=0.05, names=("machines.csv",), **changes):
    """Make a consistent result; `changes` replace fields."""
    result = IndependenceResult(
        schema="kerntest.hsic/1",
        command="hsic",
        statistic=0.012345678901,
        statistic_name="hsic",
        estimator="unbiased",
        p_value=p_value,
        alpha=alpha,
        reject=p_value <= alpha,
        decision=independence_sentence(p_value, alpha, ("'temp_c'", "'wear_um'")),
        kernel="gaussian(0.7071067811865476) on x, laplacian(2) on y",
        kernel_x="gaussian(0.7071067811865476)",
        kernel_y="laplacian(2)",
        bandwidth_x=0.7071067811865476,
        bandwidth_y=2.0,
        gamma_x=1.0,
        gamma_y=None,
        n=300,
        columns=("temp_c", "wear_um"),
        columns_x=("temp_c",),
        columns_y=("wear_um",),
        hsic_unbiased=0.012345678901,
        hsic_biased=0.0141,
        effect_size=0.2104999,
        coco=None,
        witness_correlation=None,
        null=PERMUTATION,
        family=FamilyRecord(
            judge="together",
            combination="how far the vector of statistics lies towards an excess",
            members=(
                KernelPair("gaussian(0.7071067811865476)", "laplacian(2)", 3.5, 0.001),
                KernelPair("gaussian(1)", "gaussian(2)", 4.25, 0.002),
            ),
            thinning="all kernels",
        ),
        lags=None,
        warnings=(),
        provenance=provenance(names),
        columns_left_out=("serial",),
    )
    return replace(result, **changes)


def pair_effect(x="temp_c", y="wear_um", p_value=0.0001, **changes):
    effect = PairEffect(
        x=x,
        y=y,
        n=300,
        hsic_unbiased=0.0142,
        hsic_biased=0.0148,
        effect_size=0.39012,
        p_value=p_value,
        p_adjusted=min(1.0, 3 * p_value),
        p_permutation=0.001,
        permutations=1000,
        p_step_down=None,
        reject=3 * p_value <= 0.05,
        pearson=-0.0712,
        spearman=-0.001,
        kendall=0.005,
        kernel_x="gaussian(1)",
        kernel_y="gaussian(2)",
    )
    return replace(effect, **changes)


def untested_pair(x, y, note="no row has both"):
    """Make a pair that has a note in the place of all that a test would give."""
    given = {"x": x, "y": y, "n": 0, "reject": False, "note": note}
    return PairEffect(**{field.name: given.get(field.name) for field in fields(PairEffect)})


def screen_result(pairs=None, target=None, correction="holm", **changes):
    if pairs is None:
        pairs = (
            pair_effect(),
            pair_effect("line", "cycle_s", 0.002, pearson=None, spearman=None, kendall=None),
            pair_effect("load_percent", "power_kw", 0.5, pearson=0.94, spearman=0.943, kendall=0.78),
        )
    tested = [pair for pair in pairs if pair.p_value is not None]
    rejected = sum(pair.reject for pair in pairs)
    result = ScreenResult(
        schema="kerntest.hsic.pairwise/1",
        command="hsic",
        target=target,
        estimator="unbiased",
        null="moments",
        correction=correction,
        alpha=0.05,
        tests=len(tested),
        rejected=rejected,
        reject=rejected > 0,
        decision=screen_sentence(len(tested), rejected, 0.05, correction, target),
        n=300,
        columns=tuple(dict.fromkeys(name for pair in pairs for name in (pair.x, pair.y))),
        pairs=tuple(pairs),
        warnings=(),
        provenance=provenance(kernel="gaussian", bandwidth="median"),
        columns_left_out=("serial",),
    )
    return replace(result, **changes)


def selection_result(**changes):
    selected = (
        SelectedColumn(1, "load_percent", 0.0123, 0.339, 0.339, 0.001, 0.001, significant=True),
        SelectedColumn(2, "power_kw", 0.0113, 0.301, -0.038, 0.4, 0.002, significant=False),
    )
    result = SelectionResult(
        schema="kerntest.hsic.selection/1",
        command="hsic",
        target="wear_um",
        alpha=0.05,
        reject=True,
        decision=selection_sentence("wear_um", ["load_percent", "power_kw"], 1),
        n=300,
        columns=("load_percent", "power_kw", "temp_c"),
        selected=selected,
        significant=1,
        null=PERMUTATION,
        warnings=(),
        provenance=provenance(kernel="gaussian", bandwidth="median"),
        columns_left_out=("serial",),
    )
    return replace(result, **changes)


def joint_result(p_value=0.01, **changes):
    names = ("lower", "upper", "lamp")
    result = JointResult(
        schema="kerntest.hsic.joint/1",
        command="hsic",
        statistic=0.0338,
        statistic_name="dhsic",
        estimator="biased",
        dhsic=0.0338,
        p_value=p_value,
        alpha=0.05,
        reject=p_value <= 0.05,
        decision=joint_sentence(p_value, 0.05, 3),
        kernel="hamming(1)",
        n=120,
        columns=names,
        groups=tuple(JointGroup((name,), "hamming(1)") for name in names),
        pairs=(GroupPair("lower", "upper", 0.001, 0.12, 0.09), GroupPair("lower", "lamp", 0.0, 0.0, 0.5)),
        null=PERMUTATION,
        warnings=(),
        provenance=provenance(("stairs.csv",)),
    )
    return replace(result, **changes)
