"""What the paper reports, in percent."""

from __future__ import annotations

from localparity.paper._selection import Measured

METRICS = ("ap", "delta_dp", "abcc", "mcdp_0")

# Tables 1 and 2: AP, delta-DP, ABCC and MCDP(0), each with its deviation.
_RESULTS: dict[str, dict[str, tuple[float, ...]]] = {
    "adult": {
        "erm": (76.77, 0.54, 19.67, 0.94, 18.89, 0.29, 36.62, 0.53),
        "advdebias": (76.52, 0.62, 12.73, 1.81, 12.95, 1.35, 29.28, 2.26),
        "diffdp": (75.02, 0.28, 7.77, 1.20, 8.97, 0.73, 22.37, 1.11),
        "fairmixup": (74.52, 0.40, 3.87, 1.20, 7.34, 0.62, 24.87, 1.53),
        "dralign": (74.98, 0.28, 7.64, 1.22, 8.86, 0.75, 22.08, 1.19),
        "diffabcc": (74.19, 0.24, 5.90, 1.28, 7.83, 0.74, 21.18, 1.23),
        "diffmcdp": (73.90, 0.29, 6.63, 0.85, 6.09, 0.59, 11.53, 1.12),
    },
    "bank": {
        "erm": (61.02, 1.12, 9.85, 1.28, 9.83, 0.98, 25.36, 1.81),
        "advdebias": (60.54, 1.02, 1.95, 2.76, 3.95, 0.97, 17.52, 4.12),
        "diffdp": (58.36, 1.67, 1.03, 0.23, 2.13, 0.20, 14.01, 1.34),
        "fairmixup": (59.45, 1.94, 1.28, 0.44, 2.95, 0.91, 13.22, 2.91),
        "dralign": (58.19, 1.54, 1.15, 0.41, 1.98, 0.23, 13.58, 1.26),
        "diffabcc": (58.06, 1.60, 0.99, 0.44, 2.23, 0.19, 14.67, 1.35),
        "diffmcdp": (59.98, 1.80, 2.13, 0.72, 1.83, 0.28, 11.02, 1.00),
    },
    "celeba-a": {
        "erm": (84.62, 0.38, 54.32, 0.77, 37.20, 0.69, 54.85, 0.92),
        "advdebias": (84.04, 0.51, 46.90, 1.89, 30.72, 2.05, 47.45, 1.83),
        "diffdp": (82.52, 0.42, 36.03, 1.77, 21.33, 1.40, 36.40, 1.61),
        "fairmixup": (80.70, 1.03, 34.64, 3.23, 14.15, 1.63, 35.52, 2.67),
        "dralign": (80.45, 1.05, 26.36, 2.48, 15.25, 1.71, 27.38, 2.46),
        "diffabcc": (80.71, 0.86, 28.05, 1.83, 15.70, 1.67, 28.94, 1.89),
        "diffmcdp": (80.32, 0.67, 21.10, 1.94, 16.03, 1.61, 23.10, 1.66),
    },
    "celeba-w": {
        "erm": (77.16, 0.68, 34.02, 2.24, 28.94, 1.36, 48.96, 2.16),
        "advdebias": (77.19, 0.47, 31.14, 1.44, 25.27, 2.48, 43.11, 5.20),
        "diffdp": (75.04, 1.60, 23.01, 0.95, 16.99, 1.29, 29.17, 3.00),
        "fairmixup": (75.45, 0.72, 26.49, 4.48, 17.96, 1.04, 39.61, 3.01),
        "dralign": (74.86, 1.49, 22.20, 1.54, 16.95, 1.11, 29.16, 2.76),
        "diffabcc": (73.38, 1.69, 19.93, 1.85, 13.67, 0.88, 23.77, 3.44),
        "diffmcdp": (74.14, 1.26, 19.58, 1.91, 15.35, 1.26, 20.29, 1.78),
    },
}


def published(dataset: str, method: str) -> dict[str, Measured]:
    """What the paper reports of a method on a data set, by metric; {} if it reports nothing."""
    values = _RESULTS.get(dataset, {}).get(method, ())
    pairs = zip(values[::2], values[1::2], strict=True)
    return {metric: Measured(*pair) for metric, pair in zip(METRICS, pairs, strict=False)}
