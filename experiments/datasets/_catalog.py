"""What can be loaded: one row per dataset in CATALOG, one row per file in FILES. Must not know models or noise."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from derand.datasets import CATALOG as BUNDLED
from derand.datasets import Dataset, Entry, Split, draw_folds
from experiments.datasets._files import DataFile, read_checked

_CSV = "as a CSV file with one header line, rows in the order of the source, cells without surrounding white space"
_GAPS = _CSV + ", an empty cell for each ?"
_NPZ = "as a NumPy archive of the uint8 arrays x_train, y_train, x_test and y_test"


def _uci(number: int, name: str) -> str:
    return f"https://archive.ics.uci.edu/dataset/{number}/{name}"


FILES: Mapping[str, DataFile] = {
    file.name: file
    for file in (
        DataFile(
            "breast_cancer.csv",
            "04321d55c1c0d1d61f527552a65b29cd6c1e3f7a5a933e32111c7cc1147d3822",
            "UCI, Breast Cancer Wisconsin (Original), breast-cancer-wisconsin.data",
            _uci(15, "breast+cancer+wisconsin+original"),
            _GAPS,
        ),
        DataFile(
            "diabetes.csv",
            "bf81d06e0c0512662862248241ab46d7c29258c6ceaad32f3cab56b52a17fdab",
            "Pima Indians Diabetes, National Institute of Diabetes and Digestive and Kidney Diseases",
            "https://www.kaggle.com/datasets/uciml/pima-indians-diabetes-database",
            _CSV,
        ),
        DataFile(
            "spambase.csv",
            "43cbe9a4be4f1261587a0d094f331fbfb2f20c1284d733d3a612a3692a19ab4b",
            "UCI, Spambase, spambase.data",
            _uci(94, "spambase"),
            _CSV,
        ),
        DataFile(
            "adult.csv",
            "f2c62076f19504d99a38b22badf445a7f42530ade6b827acf78dd143fbce38bb",
            "UCI, Adult (Census Income), adult.data",
            _uci(2, "adult"),
            _CSV,
        ),
        DataFile(
            "credit.csv",
            "f029d98a12c1472ae970712a23635b5da0e0613062dde456191caaedfccc0a66",
            "UCI, Statlog (German Credit Data), german.data",
            _uci(144, "statlog+german+credit+data"),
            _CSV,
        ),
        DataFile(
            "mammographic.csv",
            "ba2950119501a190a39a4c978de3321f676a74beb4a36b165e49f68df46b38a2",
            "UCI, Mammographic Mass, mammographic_masses.data",
            _uci(161, "mammographic+mass"),
            _GAPS,
        ),
        DataFile(
            "bank.csv",
            "09de0bb208744ae3f9856b3cdf80c47bc249e651fb3f42d21aff19f927e61f5a",
            "UCI, Bank Marketing, the sample bank.csv",
            _uci(222, "bank+marketing"),
            _CSV,
        ),
        DataFile(
            "mushroom.csv",
            "7204d38399e2c7c84d85e7a2019081724bb943613e82be5d3523156cfbcf9f64",
            "UCI, Mushroom, agaricus-lepiota.data",
            _uci(73, "mushroom"),
            _CSV,
        ),
        DataFile(
            "mnist.npz",
            "06af5dfe73b70e3bc1c36439982b18a8d76803db9b544f6fdf838a37fbb01b64",
            "the MNIST database of handwritten digits (LeCun, Cortes, Burges)",
            "http://yann.lecun.com/exdb/mnist/",
            _NPZ,
        ),
        DataFile(
            "fashion_mnist.npz",
            "5b6d2c4c694a91887af8ab7d039c04f80af3c29378d731c93a538d2e831aa469",
            "Fashion-MNIST (Zalando Research)",
            "https://github.com/zalandoresearch/fashion-mnist",
            _NPZ,
        ),
    )
}


def split_by_position(n_rows: int, share: float) -> Split:
    """The first `int(share * n_rows)` rows for training, the others for testing."""
    n_train = int(share * n_rows)
    return Split(np.arange(n_train), np.arange(n_train, n_rows))


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A CSV file. The classes are given as (text in the file, name), class 0 first."""

    summary: str
    file: str
    target: str
    classes: tuple[tuple[str, str], tuple[str, str]]
    share: float
    categorical: tuple[int, ...] = ()
    dropped: tuple[str, ...] = ()
    note: str = ""

    def read(self) -> Dataset:
        """Read the table; rows with an empty cell are dropped before anything else."""
        file = FILES[self.file]
        header, *lines = csv.reader(io.StringIO(read_checked(file).decode("ascii")))
        table = np.array([line for line in lines if all(line)], dtype=object)
        names = [name for name in header if name != self.target and name not in self.dropped]
        X = table[:, [header.index(name) for name in names]]
        numerical = [column for column in range(len(names)) if column not in self.categorical]
        X[:, numerical] = X[:, numerical].astype(np.float64)
        labels = table[:, header.index(self.target)]
        return Dataset(
            X=X if self.categorical else X.astype(np.float64),
            y=(labels == self.classes[1][0]).astype(np.int64),
            target_names=(self.classes[0][1], self.classes[1][1]),
            feature_names=tuple(names),
            categorical=self.categorical,
            split=split_by_position(len(X), self.share),
            fold=draw_folds(len(X)),
            provenance=" ".join(filter(None, [f"{file.origin} ({file.address}).", self.note])),
        )


@dataclass(frozen=True, slots=True)
class ImageEntry:
    """Some or all classes of an image collection, class 0 first; pixels count from 0 to 1."""

    summary: str
    file: str
    classes: tuple[tuple[int, str], ...]

    def read(self) -> Dataset:
        """Read the images of these classes, the collection's training images first."""
        file = FILES[self.file]
        with np.load(io.BytesIO(read_checked(file)), allow_pickle=False) as archive:
            images = np.concatenate([archive["x_train"], archive["x_test"]])
            labels = np.concatenate([archive["y_train"], archive["y_test"]])
            n_train = len(archive["y_train"])
        codes = np.array([code for code, _ in self.classes])
        picked = np.flatnonzero(np.isin(labels, codes))
        height, width = images.shape[1:]
        return Dataset(
            X=images[picked].reshape(picked.size, -1) / 255.0,
            y=(labels[picked][:, None] == codes).argmax(axis=1),
            target_names=tuple(name for _, name in self.classes),
            feature_names=tuple(f"pixel_{row}_{column}" for row in range(height) for column in range(width)),
            categorical=(),
            split=Split(np.flatnonzero(picked < n_train), np.flatnonzero(picked >= n_train)),
            fold=draw_folds(len(labels))[picked],  # drawn over the whole collection
            provenance=f"{file.origin} ({file.address}). Pixels are divided by 255.",
        )


_CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")

_BREAST_CANCER = TableEntry(
    "cell samples, nine clinical scores",
    "breast_cancer.csv",
    target="class",
    classes=(("2", "benign"), ("4", "malignant")),
    share=0.8,
    dropped=("sample_code_number",),
    note="Rows with a missing cell and the sample number are dropped.",
)

CATALOG: Mapping[str, Entry] = {
    **BUNDLED,
    "breast_cancer": _BREAST_CANCER,
    "breast_cancer_with_id": replace(
        _BREAST_CANCER,
        summary="the same with the sample number as a feature, as the paper has it",
        dropped=(),
        note="Rows with a missing cell are dropped; the sample number is kept as a feature.",
    ),
    "diabetes": TableEntry(
        "patients, eight measurements",
        "diabetes.csv",
        target="Outcome",
        classes=(("0", "healthy"), ("1", "diabetic")),
        share=0.8,
        note="Zeros that stand for unknown values are kept as numbers.",
    ),
    "spambase": TableEntry(
        "mails, 57 word and character counts",
        "spambase.csv",
        target="spam",
        classes=(("0", "mail"), ("1", "spam")),
        share=0.8,
        note="The source is sorted by class, so that only the five folds are meaningful.",
    ),
    "mnist": ImageEntry("handwritten digits", "mnist.npz", classes=tuple((digit, str(digit)) for digit in range(10))),
    "fashion_mnist": ImageEntry("pictures of clothes", "fashion_mnist.npz", classes=tuple(enumerate(_CLOTHES))),
    "mnist_1v5": ImageEntry("handwritten 1 and 5", "mnist.npz", classes=((5, "5"), (1, "1"))),
    "mnist_2v6": ImageEntry("handwritten 2 and 6", "mnist.npz", classes=((6, "6"), (2, "2"))),
    "fmnist_shoes": ImageEntry(
        "pictures of sneakers and sandals", "fashion_mnist.npz", classes=((7, "sneaker"), (5, "sandal"))
    ),
    "adult": TableEntry(
        "census, six numbers and eight categories; income",
        "adult.csv",
        target="income",
        classes=(("<=50K", "<=50K"), (">50K", ">50K")),
        share=0.7,
        categorical=(1, 3, 5, 6, 7, 8, 9, 13),
        note="A ? counts as a category.",
    ),
    "credit": TableEntry(
        "loans, seven numbers and thirteen categories; repayment",
        "credit.csv",
        target="credit",
        classes=(("1", "good"), ("2", "bad")),
        share=0.7,
        categorical=(0, 2, 3, 5, 6, 8, 9, 11, 13, 14, 16, 18, 19),
    ),
    "mammographic": TableEntry(
        "mammograms, three numbers and two categories",
        "mammographic.csv",
        target="severity",
        classes=(("0", "benign"), ("1", "malignant")),
        share=0.7,
        categorical=(2, 3),
        note="Rows with a missing cell are dropped.",
    ),
    "bank": TableEntry(
        "phone calls, seven numbers and nine categories; success",
        "bank.csv",
        target="y",
        classes=(("no", "no"), ("yes", "yes")),
        share=0.7,
        categorical=(1, 2, 3, 4, 6, 7, 8, 10, 15),
    ),
    "mushroom": TableEntry(
        "mushrooms, 22 categories",
        "mushroom.csv",
        target="class",
        classes=(("e", "edible"), ("p", "poisonous")),
        share=0.7,
        categorical=tuple(range(22)),
        note="A ? counts as a category.",
    ),
}
