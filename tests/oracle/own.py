#!/usr/bin/env python3
"""What scikit-learn reaches on the data that the test cli.own trains on: writes tests/oracle/recorded/own.

usage: $(tests/oracle/setup sklearn)/bin/python tests/oracle/own.py

figures.txt has a line for each data set and estimator: NAME ESTIMATOR FIGURE. For classes the figure is the accuracy on
the test part, for numbers the root of the mean squared error. Features are scaled to mean 0 and deviation 1 by the
training part; pixels are byte / 255. iris/ and diabetes/ are scikit-learn's data, split once.
"""
import gzip
import os
import struct

import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

HERE = os.path.dirname(os.path.realpath(__file__))
OUT = os.path.join(HERE, "recorded", "own")
DIGITS = os.path.join(HERE, "..", "..", "examples", "data", "digits")


def idx(name):
    path = os.path.join(DIGITS, name)
    with (gzip.open(path + ".gz") if not os.path.exists(path) else open(path, "rb")) as file:
        data = file.read()
    ndim = data[3]
    shape = struct.unpack(">%dI" % ndim, data[4:4 + 4 * ndim])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * ndim).reshape(shape)


def table(folder, part, names, x, y):
    with open(os.path.join(OUT, folder, part + ".csv"), "w", encoding="ascii", newline="\n") as file:
        file.write(",".join(names) + "\n")
        for row, label in zip(x, y):
            file.write(",".join("%.10g" % v for v in row) + "," + str(label) + "\n")


def classes(name, x, y, xt, yt, figures):
    for what, model in (("logistic", LogisticRegression(max_iter=2000)),
                        ("mlp", MLPClassifier((128, 64), max_iter=500, random_state=0))):
        figures.append("%s %s %.6f" % (name, what, model.fit(x, y).score(xt, yt)))


def main():
    figures = []
    for folder in ("iris", "diabetes"):
        os.makedirs(os.path.join(OUT, folder), exist_ok=True)
    x, xt = (idx(part + "-images-idx3-ubyte").reshape(-1, 64) / 255 for part in ("train", "t10k"))
    classes("digits", x, idx("train-labels-idx1-ubyte"), xt, idx("t10k-labels-idx1-ubyte"), figures)

    iris = load_iris()
    names = [n.replace(" (cm)", "").replace(" ", "_") for n in iris.feature_names] + ["kind"]
    x, xt, y, yt = train_test_split(iris.data, iris.target, test_size=0.2, random_state=0, stratify=iris.target)
    table("iris", "train", names, x, iris.target_names[y])
    table("iris", "test", names, xt, iris.target_names[yt])
    scale = StandardScaler().fit(x)
    classes("iris", scale.transform(x), y, scale.transform(xt), yt, figures)

    people = load_diabetes(scaled=False)
    x, xt, y, yt = train_test_split(people.data, people.target, test_size=0.2, random_state=0)
    table("diabetes", "train", people.feature_names + ["progression"], x, ["%g" % v for v in y])
    table("diabetes", "test", people.feature_names + ["progression"], xt, ["%g" % v for v in yt])
    scale = StandardScaler().fit(x)
    error = Ridge(1.0).fit(scale.transform(x), y).predict(scale.transform(xt)) - yt
    figures.append("diabetes ridge %.6f" % np.sqrt(np.mean(error ** 2)))
    with open(os.path.join(OUT, "figures.txt"), "w", encoding="ascii") as file:
        file.write("# scikit-learn, by tests/oracle/own.py\n" + "\n".join(figures) + "\n")


if __name__ == "__main__":
    main()
