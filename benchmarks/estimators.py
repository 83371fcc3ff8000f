"""Compare the errors of two estimates of resemblance: Broder's, over the k smallest of the union, and the KMV form.

    python -m benchmarks.estimators [--pairs 2000] [--plot docs/estimators.svg]

Draws pairs of random shingle sets of known resemblance (0.1 to 0.95, 200 to 4,000 shingles, of unequal length) and
prints the root mean square error of both estimates for several k, with the theoretical error of Broder's.
"""

from __future__ import annotations

import argparse

import numpy as np

from ndd_search.core.matching.similarity_measures import estimate
from ndd_search.core.recipe import Recipe
from ndd_search.core.sketching.estimate_similarity import resemblance, standard_error
from ndd_search.core.sketching.sketches import VALUES

KS = (32, 64, 128, 256)


def pair(rng: np.random.Generator, truth: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Draw two sorted sets of 31-bit values; return them with their true resemblance, which is close to `truth`."""
    union = int(rng.integers(200, 4000))
    shared = round(truth * union)
    values = rng.choice(VALUES, union, replace=False)
    left = shared + int(rng.integers(0, union - shared + 1))
    first, second = values[:left], np.concatenate((values[:shared], values[left:]))
    return np.sort(first), np.sort(second), shared / union


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=2000, help="pairs to draw (2000)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plot", help="write the error over the true resemblance to this picture (needs matplotlib)")
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    truths, broder, kmv = [], [], []
    for _ in range(arguments.pairs):
        first, second, true = pair(rng, rng.uniform(0.1, 0.95))
        truths.append(true)
        broder.append([estimate(first[:k], second[:k], Recipe(k=k, estimator="broder")).value for k in KS])
        kmv.append([resemblance(first[:k], second[:k], k) for k in KS])
    truth = np.array(truths)
    errors = {name: np.array(found) - truth[:, None] for name, found in (("Broder", broder), ("KMV", kmv))}
    print("| k | RMSE Broder | RMSE KMV | KMV / Broder | bias KMV | theory |\n|--:|--:|--:|--:|--:|--:|")
    for column, k in enumerate(KS):
        a, b = (float(np.sqrt((errors[name][:, column] ** 2).mean())) for name in ("Broder", "KMV"))
        theory = float(np.sqrt(np.mean([standard_error(one, k) ** 2 for one in truths])))
        print(f"| {k} | {a:.4f} | {b:.4f} | {b / a:.2f} | {errors['KMV'][:, column].mean():+.4f} | {theory:.4f} |")
    if arguments.plot:
        plot(arguments.plot, truth, errors)


def plot(path: str, truth: np.ndarray, errors: dict[str, np.ndarray]) -> None:
    """Plot the root mean square error against the true resemblance, in bins of 0.1."""
    from matplotlib import pyplot

    edges = np.linspace(0.1, 0.95, 10)
    centres = (edges[1:] + edges[:-1]) / 2
    which = np.digitize(truth, edges[1:-1])
    figure, axes = pyplot.subplots(figsize=(7, 4))
    for column, k in enumerate(KS):
        for name, style in (("Broder", "--"), ("KMV", "-")):
            rmse = [np.sqrt((errors[name][which == i, column] ** 2).mean()) for i in range(len(centres))]
            axes.plot(centres, rmse, style, color=f"C{column}", label=f"{name}, k = {k}")
    axes.set(xlabel="true resemblance", ylabel="root mean square error", ylim=(0, None))
    axes.legend(ncols=2, fontsize=8)
    figure.savefig(path, bbox_inches="tight")


if __name__ == "__main__":
    main()
