"""A result as the two-sample test makes it, for tests of what is done with results. Standard library only."""

from dataclasses import replace

from kerntest import TwoSampleResult
from kerntest.report.results.record import FamilyMember, FamilyRecord, InputRecord, Null, Provenance
from kerntest.report.summaries.test_summary import decision_sentence

PERMUTATION = Null(
    method="permutation",
    permutations=1000,
    requested=1000,
    p_floor=0.001,
    exact=True,
    resampling="cyclic shifts",
    orders=2,
    mean=0.0,
    standard_deviation=0.002,
    skewness=0.5,
    trace=None,
)

MOMENTS = replace(
    PERMUTATION,
    **dict.fromkeys(("permutations", "requested", "p_floor", "resampling", "orders")),
    method="moments",
    exact=False,
    trace="stochastic",
)

FAMILY = FamilyRecord(
    judge="together",
    combination="how far the vector of statistics lies towards an excess",
    members=(
        FamilyMember("gaussian(0.7071067811865476)", 3.5, 0.001, 0.75),
        FamilyMember("laplacian(1)", 4.25, 0.002, 0.0),
    ),
    thinning="all kernels",
)


def two_sample_result(p_value=0.034, alpha=0.05, names=("before.csv", "after.csv"), **changes):
    """Make a consistent result; `changes` replace fields."""
    inputs = (
        InputRecord(names[0], "csv", 420, 400, "ab" * 32, ";"),
        InputRecord(names[1], "parquet", 450, 450, "cd" * 32),
    )
    result = TwoSampleResult(
        schema="kerntest.mmd/1",
        command="mmd",
        statistic=0.012345678901,
        estimator="unbiased",
        p_value=p_value,
        alpha=alpha,
        reject=p_value <= alpha,
        decision=decision_sentence(p_value, alpha),
        kernel="gaussian(0.7071067811865476)",
        bandwidth=0.7071067811865476,
        gamma=1.0,
        n_x=400,
        n_y=450,
        columns=("order_value", "payment"),
        mmd2_unbiased=0.012345678901,
        mmd2_biased=0.0141,
        mmd=0.1111,
        mmd_standard_error=0.012,
        effect_size=0.2104999,
        null=PERMUTATION,
        family=FAMILY,
        warnings=(),
        provenance=Provenance(
            version="0.1.0",
            seed=0,
            inputs=inputs,
            kernel="auto",
            bandwidth="auto",
            scale="standardize",
            dtype="float64",
            threads=2,
            libraries={"numpy": "2.4.6"},
            seconds=0.123456,
        ),
        columns_left_out=("order_id",),
    )
    return replace(result, **changes)
