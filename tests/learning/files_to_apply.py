"""Rows with columns of every kind, and models of every kind to be applied to them."""

import numpy as np
import pandas as pd
import pyarrow as pa

from kerntest import SVM, KernelRidge, train_kpca, train_ridge, train_svm


def rows(count, seed=0):
    """Return a table with a column of every kind, one that never changes, and texts that are hard to cut at the right place."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, count)
    return pd.DataFrame(
        {
            "id": np.arange(count),
            "size": np.round(np.cos(angle) + 0.3 * rng.normal(size=count), 4),
            "note": [f'text "{k}"' + ("\nmore" if k % 7 == 0 else "") for k in range(count)],
            "fixed": np.full(count, 2.5),
            "colour": rng.choice(["red", "green", "1", "a,b"], count),
            "flag": rng.choice(["true", "false"], count),
            "day": (np.datetime64("2024-01-01") + (150 * (1 + np.sin(angle))).astype(int)).astype(str),
            "weight": np.round(100 * rng.normal(size=count), 2),
        }
    )


def as_arrow(count=500):
    table = rows(count)
    return pa.Table.from_pandas(table.assign(flag=table["flag"] == "true", day=pd.to_datetime(table["day"])))


def write_models(path):
    """Write models of every kind, what they were trained on, and 500 rows to apply them to."""
    train = rows(150, seed=1)
    kind = train["size"] + (train["colour"] == "red") + 0.5 * (train["flag"] == "true")
    train["kind"] = np.where(kind > 1, 10, np.where(train["weight"] > 50, 20, 30))
    train.drop(columns=["id", "note"]).to_csv(path / "train.csv", index=False)
    train_svm(path / "train.csv", "kind", probability=True, output=path / "kind.kt")
    train_svm(path / "train.csv", "weight", task="regress", exclude="kind", output=path / "weight.kt")
    SVM(task="one-class", nu=0.2).fit(train[["size", "weight"]]).save(path / "usual.kt")
    train_ridge(path / "train.csv", "weight", exclude="kind", output=path / "ridge.kt")
    both = train[["weight"]].assign(power=train["weight"] ** 2)
    KernelRidge(0.1).fit(train[["size", "colour"]], both).save(path / "both.kt")
    train_kpca(path / "train.csv", components=6, exclude="kind", output=path / "all.kt")
    train_kpca(
        path / "train.csv", components=3, columns="size,weight,fixed", kernel="gaussian(1)", output=path / "two.kt"
    )
    rows(500).to_csv(path / "new.csv", index=False)
