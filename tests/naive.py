"""The oracle: textbook versions of everything, one pair of rows at a time, in plain Python. Slow and obvious."""

import itertools
import math


def inner(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def euclidean(x, y):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def manhattan(x, y):
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def mismatches(x, y):
    return sum(a != b for a, b in zip(x, y, strict=True))


def gaussian(x, y, bandwidth=1.0):
    return math.exp(-(euclidean(x, y) ** 2) / (2 * bandwidth**2))


def laplacian(x, y, bandwidth=1.0):
    return math.exp(-manhattan(x, y) / bandwidth)


def laplacian2(x, y, bandwidth=1.0):
    return math.exp(-euclidean(x, y) / bandwidth)


def student_t(x, y, bandwidth=1.0, df=1.0):
    return (1 + euclidean(x, y) ** 2 / (df * bandwidth**2)) ** (-(df + 1) / 2)


def rational_quadratic(x, y, bandwidth=1.0, alpha=1.0):
    return (1 + euclidean(x, y) ** 2 / (2 * alpha * bandwidth**2)) ** (-alpha)


def bessel_k(order, z):
    """Return K_order(z) as the integral of exp(-z cosh t) cosh(order t) over t > 0, by the trapezoidal rule."""
    step = 1e-3
    total = math.exp(-z) / 2
    for number in range(1, 20_000):
        t = number * step
        term = math.exp(-z * math.cosh(t)) * math.cosh(order * t)
        total += term
        if term < 1e-18 * total:
            break
    return step * total


def matern(x, y, bandwidth=1.0, nu=1.5):
    distance = euclidean(x, y)
    if distance == 0:
        return 1.0
    z = math.sqrt(2 * nu) * distance / bandwidth
    return 2 ** (1 - nu) / math.gamma(nu) * z**nu * bessel_k(nu, z)


def periodic(x, y, period=1.0, bandwidth=1.0):
    total = sum(math.sin(math.pi * (a - b) / period) ** 2 for a, b in zip(x, y, strict=True))
    return math.exp(-2 * total / bandwidth**2)


def linear(x, y):
    return inner(x, y)


def polynomial(x, y, degree=3, gain=1.0, offset=1.0):
    return (gain * inner(x, y) + offset) ** degree


def exponential(x, y, gain=1.0):
    return math.exp(gain * inner(x, y))


def delta(x, y):
    return float(all(a == b for a, b in zip(x, y, strict=True)))


def hamming(x, y, bandwidth=1.0):
    return math.exp(-mismatches(x, y) / bandwidth)


def additive(x, y, bandwidths=(1.0,)):
    """Numbers first, one for each bandwidth, then codes."""
    p = len(bandwidths)
    numbers = sum(gaussian([a], [b], h) for a, b, h in zip(x[:p], y[:p], bandwidths, strict=True))
    return numbers + sum(a == b for a, b in zip(x[p:], y[p:], strict=True))


def mahalanobis(x, y, share=0.01, covariance=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))):
    """Return x'Ay; S + share diag(S) = LL', whose triangles are solved by substitution: x'Ay = <L^-1 x, L^-1 y>."""
    S = [[value * (1 + share * (i == j)) for j, value in enumerate(line)] for i, line in enumerate(covariance)]
    L = [[0.0] * len(S) for _ in S]
    for i in range(len(S)):
        for j in range(i + 1):
            rest = S[i][j] - sum(L[i][k] * L[j][k] for k in range(j))
            L[i][j] = math.sqrt(rest) if i == j else rest / L[j][j]

    def solved(row):
        z = []
        for i, value in enumerate(row):
            z.append((value - sum(L[i][k] * z[k] for k in range(i))) / L[i][i])
        return z

    return inner(solved(x), solved(y))


naive_kernels = {
    "gaussian": gaussian,
    "laplacian": laplacian,
    "laplacian2": laplacian2,
    "student-t": student_t,
    "rational-quadratic": rational_quadratic,
    "matern": matern,
    "periodic": periodic,
    "linear": linear,
    "polynomial": polynomial,
    "exponential": exponential,
    "delta": delta,
    "hamming": hamming,
    "additive": additive,
    "mahalanobis": mahalanobis,
}


def gram(kernel_function, X, Y=None):
    """Return the kernel matrix as a list of rows, by double loop."""
    return [[kernel_function(x, y) for y in (X if Y is None else Y)] for x in X]


def mmd2_unbiased(K, labels):
    """Return MMD_u^2 by double sums (Gretton et al. 2012, eq. 3); labels are 1 for X and 0 for Y."""
    xs, ys = split(labels)
    m, n = len(xs), len(ys)
    within_x = sum(K[i][j] for i in xs for j in xs if i != j)
    within_y = sum(K[i][j] for i in ys for j in ys if i != j)
    between = sum(K[i][j] for i in xs for j in ys)
    return within_x / (m * (m - 1)) + within_y / (n * (n - 1)) - 2 * between / (m * n)


def mmd2_biased(K, labels):
    """Return MMD_b^2 by double sums (Gretton et al. 2012, eq. 5)."""
    xs, ys = split(labels)
    m, n = len(xs), len(ys)
    within_x = sum(K[i][j] for i in xs for j in xs)
    within_y = sum(K[i][j] for i in ys for j in ys)
    between = sum(K[i][j] for i in xs for j in ys)
    return within_x / m**2 + within_y / n**2 - 2 * between / (m * n)


mmd2 = {"unbiased": mmd2_unbiased, "biased": mmd2_biased}


def split(labels):
    """Return the positions of the rows of X and those of Y."""
    return [i for i, a in enumerate(labels) if a == 1], [i for i, a in enumerate(labels) if a == 0]


def doubly_centred(K):
    """Return HKH, H = I - 1/n: every row and column sums to zero."""
    n = len(K)
    rows = [sum(row) / n for row in K]
    grand = sum(rows) / n
    return [[K[i][j] - rows[i] - rows[j] + grand for j in range(n)] for i in range(n)]


def u_centred(K):
    """Return the U-centring (Szekely and Rizzo 2014, definition 2): zero diagonal, every row sums to zero."""
    n = len(K)
    rows = [sum(K[i][j] for j in range(n) if j != i) for i in range(n)]
    grand = sum(rows)

    def entry(i, j):
        return 0.0 if i == j else K[i][j] - (rows[i] + rows[j]) / (n - 2) + grand / ((n - 1) * (n - 2))

    return [[entry(i, j) for j in range(n)] for i in range(n)]


centred = {"unbiased": u_centred, "biased": doubly_centred}


def label_gram(labels):
    """Return L = a a'."""
    return [[float(a * b) for b in labels] for a in labels]


def matrix_inner(A, B):
    return sum(a * b for row_a, row_b in zip(A, B, strict=True) for a, b in zip(row_a, row_b, strict=True))


def shifted(labels, circle, shift):
    """Return the labels that the rows get from a cyclic shift; rows beyond the circle keep theirs."""
    return [labels[(i + shift) % circle] if i < circle else labels[i] for i in range(len(labels))]


def permuted_inner_products(A, B):
    """Return sum_ij A_ij B_{p(i) p(j)} for every permutation p."""
    indices = range(len(A))
    return [sum(A[i][j] * B[p[i]][p[j]] for i in indices for j in indices) for p in itertools.permutations(indices)]


def partners(order, places, circle, shift):
    """Return the partner p(i) of every row i when the rows at `places`, the circle first, are shifted along it.

    Row order[k] meets row places[k + shift] on the circle and row places[k] beyond it.
    """
    p = [None] * len(order)
    for k, row in enumerate(order):
        p[row] = places[(k + shift) % circle] if k < circle else places[k]
    return p


def hsic_biased(K, L):
    """Return HSIC_b, the V-statistic with its sums over i, j, q, r (Gretton et al. 2008, eq. 4)."""
    n, rows = len(K), range(len(K))
    together = sum(K[i][j] * L[i][j] for i in rows for j in rows)
    crossed = sum(K[i][j] * L[i][q] for i in rows for j in rows for q in rows)
    apart = sum(K[i][j] for i in rows for j in rows) * sum(L[q][r] for q in rows for r in rows)
    return together / n**2 - 2 * crossed / n**3 + apart / n**4


def hsic_unbiased(K, L):
    """Return HSIC_u as what it estimates, averaged over all four different rows: a U-statistic (Song et al. 2012).

    HSIC = E[k(x, x') l(y, y')] - 2 E[k(x, x') l(y, y'')] + E[k(x, x') l(y'', y''')]. Cost: O(n^4).
    """
    n = len(K)
    total = sum(K[i][j] * (L[i][j] - 2 * L[i][q] + L[q][r]) for i, j, q, r in itertools.permutations(range(n), 4))
    return total / (n * (n - 1) * (n - 2) * (n - 3))


hsic = {"unbiased": hsic_unbiased, "biased": hsic_biased}


def hsic_effect(K, L):
    """Return sqrt(max(r, 0)), r = HSIC_u(K, L) / sqrt(HSIC_u(K, K) HSIC_u(L, L)); 0 where one of these is 0."""
    A, B = u_centred(K), u_centred(L)
    scale = math.sqrt(matrix_inner(A, A) * matrix_inner(B, B))
    return math.sqrt(max(matrix_inner(A, B) / scale, 0.0)) if scale else 0.0


def effect_between(K, labels):
    """Return sqrt(max(r, 0)), r = HSIC(K, L) / sqrt(HSIC(K, K) HSIC(L, L)) for a row that is of each of k groups as probably.

    L_ij = 1 where i and j are of one group. HSIC(K, L) is the mean MMD_u^2 of two groups, (k - 1) / 2 k^2 times; HSIC(K, K) the
    mean of K_ij^2 - 2 K_ij K_iq + K_ij K_qr over different rows, each as heavy as its group has few.
    """
    n, k = len(K), len(set(labels))
    w = [1.0 / labels.count(one) for one in labels]

    def mean(number, of):
        found = [(math.prod(w[i] for i in rows), of(*rows)) for rows in itertools.permutations(range(n), number)]
        return sum(weight * value for weight, value in found) / sum(weight for weight, _ in found)

    square = mean(2, lambda i, j: K[i][j] ** 2) - 2.0 * mean(3, lambda i, j, q: K[i][j] * K[i][q])
    square += mean(4, lambda i, j, q, r: K[i][j] * K[q][r])
    distances = []
    for g, h in itertools.combinations(sorted(set(labels)), 2):
        rows = [i for i in range(n) if labels[i] in (g, h)]
        distances.append(mmd2_unbiased([[K[i][j] for j in rows] for i in rows], [int(labels[i] == g) for i in rows]))
    r = sum(distances) / k**3 / math.sqrt(max(square, 0.0) * (k - 1) / k**2) if square > 0 else 0.0
    return math.sqrt(min(max(r, 0.0), 1.0))


def hsic_gamma_moments(K, L):
    """Return mean and variance of HSIC_b under independence for unit diagonals (Gretton et al. 2008, eq. 9, theorem 4)."""
    n, rows = len(K), range(len(K))
    mean_x, mean_y = (sum(M[i][j] for i in rows for j in rows if i != j) / (n * (n - 1)) for M in (K, L))
    A, B = doubly_centred(K), doubly_centred(L)
    squares = sum((A[i][j] * B[i][j]) ** 2 for i in rows for j in rows if i != j) / (n * (n - 1))
    mean = (1 + mean_x * mean_y - mean_x - mean_y) / n
    return mean, 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3)) * squares


def ridge(K, y, penalty, weights=None):
    """Return alpha and b of kernel ridge regression with a free intercept, from the whole linear system.

    (K + lambda W^-1) alpha + b 1 = y, 1' alpha = 0.
    """
    n = len(y)
    weights = weights or [1] * n
    rows = [[K[i][j] + (penalty / weights[i] if i == j else 0) for j in range(n)] + [1, y[i]] for i in range(n)]
    rows.append([1] * n + [0, 0])
    solution = gauss(rows)
    return solution[:n], solution[n]


def gauss(rows):
    """Solve a linear system by elimination with pivoting; the last column is the right-hand side."""
    rows = [list(row) for row in rows]
    m = len(rows)
    for k in range(m):
        pivot = max(range(k, m), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, m):
            factor = rows[i][k] / rows[k][k]
            rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    solution = [0.0] * m
    for k in reversed(range(m)):
        known = sum(rows[k][j] * solution[j] for j in range(k + 1, m))
        solution[k] = (rows[k][m] - known) / rows[k][k]
    return solution


def ridge_left_out(K, y, penalty, groups, weights=None):
    """Return y less the prediction of a fit without the row's group, by as many refits as there are groups."""
    n = len(y)
    weights = weights or [1.0] * n
    residuals = [0.0] * n
    for group in sorted(set(groups)):
        kept = [i for i in range(n) if groups[i] != group]
        part = [[K[i][j] for j in kept] for i in kept]
        alpha, b = ridge(part, [y[i] for i in kept], penalty, [weights[i] for i in kept])
        for i in range(n):
            if groups[i] == group:
                residuals[i] = y[i] - b - sum(a * K[i][j] for a, j in zip(alpha, kept, strict=True))
    return residuals


def ridge_hat(K, penalty, weights=None):
    """Return the hat matrix, its column j from the fit to the j-th unit vector."""
    n = len(K)
    columns = []
    for j in range(n):
        alpha, b = ridge(K, [float(i == j) for i in range(n)], penalty, weights)
        columns.append([b + sum(K[i][k] * alpha[k] for k in range(n)) for i in range(n)])
    return [[columns[j][i] for j in range(n)] for i in range(n)]


def eigenpairs(A):
    """Return the eigenvalues of a symmetric matrix, descending, and its eigenvectors, by Jacobi's rotations."""
    n = len(A)
    A = [list(row) for row in A]
    vectors = [[float(i == j) for j in range(n)] for i in range(n)]
    for _ in range(60):
        for p in range(n):
            for q in range(p + 1, n):
                if A[p][q] == 0:
                    continue
                angle = 0.5 * math.atan2(2 * A[p][q], A[q][q] - A[p][p])
                c, s = math.cos(angle), math.sin(angle)
                for k in range(n):
                    A[k][p], A[k][q] = c * A[k][p] - s * A[k][q], s * A[k][p] + c * A[k][q]
                for k in range(n):
                    A[p][k], A[q][k] = c * A[p][k] - s * A[q][k], s * A[p][k] + c * A[q][k]
                for row in vectors:
                    row[p], row[q] = c * row[p] - s * row[q], s * row[p] + c * row[q]
    order = sorted(range(n), key=lambda j: -A[j][j])
    return [A[j][j] for j in order], [[vectors[i][j] for i in range(n)] for j in order]


def component_scores(K, rows, count):
    """Return the scores of new rows, given as kernel values with the training rows, on the first components.

    <f_j, phi(x) - m> with f_j = sum_i v_ij (phi(x_i) - m) / sqrt(eigenvalue), written out.
    """
    n = len(K)
    values, vectors = eigenpairs(doubly_centred(K))
    means = [sum(row) / n for row in K]
    whole = sum(means) / n
    scores = []
    for row in rows:
        centred = [k - sum(row) / n - mean + whole for k, mean in zip(row, means, strict=True)]
        scores.append(
            [sum(v * k for v, k in zip(vectors[j], centred, strict=True)) / math.sqrt(values[j]) for j in range(count)]
        )
    return scores


def distance_to_projection(K, row, own, components):
    """Return |phi(x) - P phi(x)|^2 for a row x with kernel values `row` and k(x, x), by the centred inner products."""
    n = len(K)
    scores = component_scores(K, [row], components)[0]
    whole = sum(map(sum, K)) / n**2
    return own - 2 * sum(row) / n + whole - sum(score**2 for score in scores)


def step_down(scores):
    """Return p-values of Westfall and Young (1993, algorithm 4.1), one maximum at a time; the first of each is observed."""
    order = sorted(range(len(scores)), key=lambda k: -scores[k][0])
    adjusted, largest = [None] * len(scores), 0.0
    for place, k in enumerate(order):
        maxima = [max(scores[j][r] for j in order[place:]) for r in range(len(scores[0]))]
        largest = max(largest, sum(m >= scores[k][0] - 1e-9 for m in maxima) / len(maxima))
        adjusted[k] = largest
    return adjusted


def embedding_errors(K, cells, weights, units, witness):
    """Return tr C^2, tr C^3 and <D, C^2 D> of the errors of a weighted difference of means, as `margins.errors_of` defines them.

    `weights` are those of the rows, corrected for the means that were taken out; only different units have a part.
    """
    rows, own = range(len(K)), {c: [i for i in range(len(K)) if cells[i] == c] for c in set(cells)}

    def centred(i, j):
        a, b = own[cells[i]], own[cells[j]]
        left = sum(K[k][j] for k in a) / len(a)
        right = sum(K[i][k] for k in b) / len(b)
        return K[i][j] - left - right + sum(K[k][m] for k in a for m in b) / (len(a) * len(b))

    count = max(units) + 1
    G = [[0.0] * count for _ in range(count)]
    d = [0.0] * count
    for i in rows:
        d[units[i]] += weights[i] * (witness[i] - sum(witness[k] for k in own[cells[i]]) / len(own[cells[i]]))
        for j in rows:
            if units[i] != units[j]:
                G[units[i]][units[j]] += weights[i] * weights[j] * centred(i, j)
    each = range(count)
    return (
        sum(G[u][v] ** 2 for u in each for v in each),
        sum(G[u][v] * G[v][w] * G[w][u] for u in each for v in each for w in each),
        sum(d[u] * G[u][v] * d[v] for u in each for v in each),
    )


def mmd_of_a_shift(rows, column, by, kernel):
    """Return MMD between rows and the same rows moved in a column, from pairs of different rows."""
    moved = [[value + by * (place == column) for place, value in enumerate(row)] for row in rows]
    pairs = [(i, j) for i in range(len(rows)) for j in range(len(rows)) if i != j]
    total = sum(kernel(rows[i], rows[j]) + kernel(moved[i], moved[j]) - 2 * kernel(rows[i], moved[j]) for i, j in pairs)
    return math.sqrt(total / len(pairs))
