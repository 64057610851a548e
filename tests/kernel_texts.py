"""Random texts of kernels for hypothesis."""

from hypothesis import strategies as st

positive = st.floats(1e-75, 1e75).map(repr)
bandwidths = st.just("") | positive.map("({})".format)
named = st.one_of(
    *(bandwidths.map(f"{name}{{}}".format) for name in ("gaussian", "laplacian", "laplacian2", "hamming")),
    *(
        st.tuples(positive, positive).map(lambda two, name=name: f"{name}({two[0]}, {two[1]})")
        for name in ("student-t", "rational-quadratic", "periodic")
    ),
    st.tuples(positive, st.floats(1e-75, 100)).map(lambda two: f"matern({two[0]}, nu={two[1]!r})"),
    st.sampled_from(["linear", "delta", "matern", "periodic", "mahalanobis(gaussian + 2, 0.1)"]),
    st.tuples(st.integers(1, 1000), positive, st.floats(-1e75, -1e-75) | st.just(0)).map(
        lambda three: f"polynomial({three[0]}, {three[1]}, {three[2]!r})"
    ),
    positive.map("exponential({})".format),
    positive,
    st.integers(0, 9).map(str),
)


def combined(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda parts: "(" + " + ".join(parts) + ")"),
        several.map(lambda parts: "(" + "*".join(parts) + ")"),
        st.tuples(inner, st.integers(1, 1000)).map(lambda two: f"({two[0]})^{two[1]}"),
        inner.map("normalise({})".format),
        inner.map("exp({})".format),
    )


texts = st.recursive(named, combined, max_leaves=8)
