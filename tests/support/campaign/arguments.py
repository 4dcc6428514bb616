"""Argument lists for every command: right ones with some words lost, doubled, misspelt or made absurd."""

from __future__ import annotations

import random

VALUES = (
    *(
        "",
        " ",
        "0",
        "1",
        "-1",
        "2",
        "0.5",
        "-0.5",
        "1e308",
        "1e-320",
        "nan",
        "inf",
        "-inf",
        "1e999",
        "9" * 400,
        "abc",
        "½",
    ),
    *(
        "2147483647",
        "2147483648",
        "9223372036854775808",
        "1000000000",
        "99999999999999999999",
        "1_000",
        "0x10",
        "1,2",
        "1,2,3",
    ),
    *(
        ",",
        "0,1",
        "1,0",
        "0,0",
        "nan,1",
        "-1e308,1e308",
        "0,1e-320",
        "true",
        "None",
        "--",
        "-",
        "-h",
        "*",
        "~",
        "~nobody/x",
        ".",
        "..",
    ),
    *(
        "/",
        "/dev/null",
        "/dev/full",
        "/proc/self/mem",
        "/nonexistent/x",
        "s3://bucket/x.csv",
        "https://127.0.0.1:9/x.csv",
        "file:///x",
    ),
    *(
        "{in}/people.csv",
        "{in}/model",
        "{in}",
        "{out}/x.csv",
        "{out}/x.parquet",
        "{out}/x.html",
        "{out}/x",
        "{in}/missing.csv",
    ),
    *(
        "demographic_parity",
        "equal_opportunity",
        "to_overall",
        "drop",
        "group",
        "bound",
        "upper",
        "bootstrap",
        "day",
        "hour",
    ),
    *(
        "p",
        "sex",
        "y",
        "age",
        "score",
        "income",
        "nothing",
        "P",
        "sex ",
        "'",
        '"',
        "a\nb",
        "\u202e",
        "\x1b[31m",
        "[red]",
        "\udcff",
    ),
    *(
        "2026-05-17",
        "2026-13-01",
        "0001-01-01T00:00+14:00",
        "9999-12-31T23:59-14:00",
        "now",
        "lightgbm",
        "xgboost",
        "cpu",
        "cuda",
        "mps",
    ),
)
OPTIONS = (
    *(
        "--score",
        "--group",
        "--label",
        "--weight",
        "--epsilon",
        "--criterion",
        "--compare",
        "--score-range",
        "--threshold",
    ),
    *(
        "--min-group-size",
        "--missing-groups",
        "--missing",
        "--cluster",
        "--id",
    ),
    *(
        "--higher-is",
        "--method",
        "--confidence",
        "--resamples",
        "--seed",
        "--jobs",
        "--json",
        "--max-mcdp",
        "--decide-by",
    ),
    *(
        "--report",
        "--force",
        "--model",
        "--target",
        "--out",
        "--steps",
        "--strength",
        "--drop",
        "--text",
        "--feature",
        "--preset",
        "--device",
    ),
    *(
        "--keep",
        "--every",
        "--at",
        "--alarm-rate",
        "--store",
        "--methods",
        "--strengths",
        "--seeds",
        "--rows",
        "--power",
        "--mcdp",
    ),
    *(
        "--nothing",
        "-x",
        "--help",
        "--version",
        "--encoding",
        "--decimal",
        "--sheet",
        "--missing-value",
        "--figure",
        "--quiet",
    ),
)
_PEOPLE = "{in}/people.csv --target income --group sex --drop score"
BASES = {
    "audit": "audit {in}/people.csv --score score --group sex --resamples 0 --jobs 1 --json",
    "audit --report": "audit {in}/people.csv --score score --group sex --resamples 19 --jobs 1 --report {out}/page.html",
    "audit --model": "audit {in}/people.csv --model {in}/model --target income --group sex --resamples 0 --jobs 1",
    "train": f"train {_PEOPLE} --out {{out}}/model --steps 2",
    "train trees": f"train {_PEOPLE} --out {{out}}/model --model lightgbm --strength 0",
    "repair": f"repair {_PEOPLE} --out {{out}}/model --group-aware --max-mcdp 0.3",
    "predict": "predict {in}/model {in}/people.csv --out {out}/scores.csv --keep sex --force",
    "monitor append": "monitor append {out}/monitor {in}/people.csv --score score --group sex --at 2026-05-17 --id a",
    "monitor show": "monitor show {in}/monitor --epsilon 0.05 --json",
    "monitor report": "monitor report {in}/monitor --out {out}/page.html --title x --force",
    "monitor serve": "monitor serve {in}/monitor --textfile {out}/x.prom --name x",
    "monitor prune": "monitor prune {in}/monitor --keep 3 --json",
    "plan": "plan --group-sizes 300,500 --resamples 199 --jobs 1 --json",
    "fetch": "fetch bank --data-home {out}/cache --json",
    "demo": "demo --rows 200 --report {out}/page.html --json",
    "reproduce": "reproduce adult --methods erm --seeds 1 --device cpu --store {out}/store --dry-run",
    "reproduce tables": "reproduce tables --store {in}/store --out {out}/tables",
    "compare": f"compare {_PEOPLE} --steps 2 --resamples 19",
}
_SLOW = ("compare", "demo")
"""Of these, only lists that a wrong number or word may end."""


def make_words(rng: random.Random) -> tuple[str, list[str]]:
    """A command's name and its words, of which one to three are wrong."""
    name = rng.choice(tuple(BASES))
    words = BASES[name].split()
    if name in _SLOW:
        words += [
            rng.choice(OPTIONS),
            rng.choice(("-1", "nan", "abc", "9" * 30, "/dev/null/x", "2147483648")),
        ]
        return name, words
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randrange(1, len(words))
        kind = rng.randrange(6)
        if kind == 0:
            del words[at]
        elif kind == 1:
            words[at] = rng.choice(VALUES)
        elif kind == 2:
            words.insert(at, rng.choice(VALUES))
        elif kind == 3:
            words += [rng.choice(OPTIONS), rng.choice(VALUES)]
        elif kind == 4:
            words += [f"{rng.choice(OPTIONS)}={rng.choice(VALUES)}"]
        elif kind == 5:
            words += words[at : at + 2]
    return name, words
