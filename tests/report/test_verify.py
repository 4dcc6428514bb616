"""A bundle that anybody may have changed: what is found without the data, and with it."""

from __future__ import annotations

import io
import json
import os
import random
import re
import stat
import subprocess
import sys
import tomllib
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import localparity
from localparity.cli._app import app
from localparity.report._bundle import METHODS, packed
from policies import write_scores

OPTIONS = ["--score", "p", "--group", "sex", "--label", "y", "--resamples", "39", "--max-mcdp", "0.3"]
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("verify")
    write_scores(found)
    (found / "same.csv").write_text((found / "scores.csv").read_text().replace("0.1", "0.2"))
    return found


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


def made(folder: Path, *options: str) -> Files:
    """The files of a new bundle, without their checksums."""
    path = folder / "made.zip"
    done = CliRunner().invoke(
        app, ["audit", "scores.csv", *(options or OPTIONS), "--out", str(path), "--force"]
    )
    assert done.exit_code < 2, done.stderr
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != "SHA256SUMS"}


@pytest.fixture(scope="module")
def files(folder: Path) -> Files:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return made(folder)


def verified(files: Files | bytes, *words: str) -> tuple[int, str]:
    path = Path("checked.zip")
    path.write_bytes(files if isinstance(files, bytes) else packed(files))
    done = CliRunner().invoke(app, ["verify", str(path), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


DATA = ("--data", "scores.csv")


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        [*OPTIONS[:-2], "--epsilon", "0.05", "--compare", "to_overall", "--higher-is", "worse"],
        [*OPTIONS, "--group", "race", "--criterion", "equalized_odds", "--decide-by", "upper"],
        [*OPTIONS, "--weight", "w", "--confidence", "0.9"],
        [*OPTIONS, "--cluster", "person", "--score-range", "rank"],
        [*OPTIONS, "--group", "rare", "--min-ratio", "0.8", "--scoring-rates", "--not-assessed", "allow"],
        [*OPTIONS, "--group", "race", "--scoring-rates", "--cutoff", "0.4", "--data-source", "of 2025"],
        [*OPTIONS, "--decision", "y", "--distribution-date", "2025-01-31"],
        ["--score", "p", "--group", "race", "--missing-groups", "bound", "--missing-value", "b", *OPTIONS[6:]],
        ["--score", "p", "--group", "sex", "--control", "job", "--resamples", "0"],
        ["same.csv", *OPTIONS, "--id", "id"],
    ],
)  # fmt: skip
def test_what_the_command_wrote_agrees(folder: Path, options: list[str]) -> None:
    files = made(folder, *options)
    code, output = verified(files)
    assert (code, "differs" in output) == (0, False), output
    data = [*DATA, *(["--data", "same.csv"] if "same.csv" in options else [])]
    code, output = verified(files, *data)
    assert (code, output.splitlines()[-1]) == (0, "yes: the bundle is what the data gives"), output


def test_rates_that_do_not_agree_are_found_without_the_data(folder: Path) -> None:
    files = made(
        folder, *OPTIONS, "--group", "race", "--scoring-rates", "--cutoff", "0.4", "--data-source", "all"
    )
    for key in ("scoring_rates", "selection_rates"):
        for name, value in (("impact_ratio", 0.123), ("rate", 0.123), ("share", 0.5), ("people", 77)):
            plain = json.loads(files["audit.json"])
            plain["audits"][0][key]["tables"][0]["categories"][0][name] = value
            lying = {**files, "audit.json": f"{json.dumps(plain, indent=2)}\n".encode()}
            code, output = verified(lying)
            assert (code, "differs" in output) == (1, True), (key, name, output)
    page = files["report.html"].decode()
    assert "Selection rates by sex × race" in page
    told = {**files, "report.html": page.replace("<bdi>all</bdi>", "<bdi>some</bdi>").encode()}
    assert verified(told)[0] == 1


# Single changes, with checksums that fit.


def leaves(plain: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(plain, dict | list):
        for key, value in plain.items() if isinstance(plain, dict) else enumerate(plain):
            yield from leaves(value, (*place, key))
    else:
        yield place


def changed_json(content: bytes, rng: random.Random) -> bytes:
    """JSON in which one number, word or truth is another."""
    plain = json.loads(content)
    *path, last = rng.choice(list(leaves(plain)))
    inside = plain
    for key in path:
        inside = inside[key]
    value = inside[last]
    if isinstance(value, bool):
        inside[last] = not value
    elif isinstance(value, int):
        inside[last] = value + rng.choice([-1, 1, 10])
    elif isinstance(value, float):
        inside[last] = value * (1 + rng.choice([1e-9, 1e-3, 0.5])) + (value == 0) * 0.001
    elif value is None:
        inside[last] = 0.5
    else:
        inside[last] = value + "x" if len(value) < 4 else changed_text(value.encode(), rng).decode()
    indent = 2 if b'\n  "' in content else None
    return f"{json.dumps(plain, indent=indent, ensure_ascii=False)}\n".encode()


def changed_text(content: bytes, rng: random.Random) -> bytes:
    """A text in which one digit or letter is another."""
    text = content.decode()
    places = [found.start() for found in re.finditer(r"[A-Za-z0-9]", text)]
    place = rng.choice(places)
    other = rng.choice(
        [one for one in ("0123456789" if text[place].isdigit() else "aeiou") if one != text[place]]
    )
    return (text[:place] + other + text[place + 1 :]).encode()


def changed_policy(content: bytes, rng: random.Random) -> bytes:
    lines = content.decode().splitlines()
    way = rng.randrange(3)
    if way == 0:
        del lines[rng.randrange(len(lines))]
    elif way == 1:
        lines.insert(0, rng.choice(["random_state = 1", "min_group_size = 11", 'not_assessed = "allow"']))
    else:
        place = rng.randrange(len(lines))
        lines[place] = changed_text(lines[place].encode(), rng).decode()
    return ("\n".join(lines) + "\n").encode()


CHANGES: dict[str, tuple[Callable[[bytes, random.Random], bytes], int]] = {
    "audit.json": (changed_json, 80),
    "record.json": (changed_json, 40),
    "policy.toml": (changed_policy, 25),
    "audit.md": (changed_text, 25),
    "report.html": (changed_text, 25),
    "command.txt": (changed_text, 5),
}


def mutants(files: Files, share: int = 1) -> Iterator[tuple[str, int, Files]]:
    for name, (change, count) in CHANGES.items():
        for seed in range(count // share):
            content = files[name]
            while content == files[name]:
                content = change(files[name], random.Random(f"{name} {seed}"))
            yield name, seed, {**files, name: content}


def test_some_changes_are_found_with_the_data(files: Files) -> None:
    for name, seed, mutant in mutants(files, 10):
        assert verified(mutant, *DATA)[0] != 0, (name, seed)


@pytest.mark.slow
def test_each_of_200_changes_is_found_with_the_data(files: Files) -> None:
    found = [(name, seed, verified(mutant, *DATA)[0]) for name, seed, mutant in mutants(files)]
    assert len(found) == 200
    assert [one for one in found if one[2] == 0] == []


def edited(files: Files, edit: Callable[[Any], Any], name: str = "audit.json") -> Files:
    plain = json.loads(files[name])
    edit(plain)
    return {**files, name: f"{json.dumps(plain, indent=2, ensure_ascii=False)}\n".encode()}


def test_without_the_data_what_makes_two_files_differ_is_found(files: Files) -> None:
    audit = json.loads(files["audit.json"])["audits"][0]
    number = repr(audit["findings"][0]["mcdp"])
    for name in ("audit.json", "audit.md"):
        one = {**files, name: files[name].replace(number.encode(), b"0.123456789")}
        assert one != files
        assert verified(one)[0] == 1, name
    for name in ("audit.md", "report.html"):
        words = audit["answer"]["headline"].split()[-3].encode()
        assert verified({**files, name: files[name].replace(words, b"never")})[0] == 1, name
    for text in (b"max_mcdp = 0.9", b'decide_by = "lower"', b"\n"):
        assert verified({**files, "policy.toml": files["policy.toml"] + text})[0] == 1, text
    assert verified({**files, "command.txt": b"localparity audit\n"})[0] == 1


def test_without_the_data_a_verdict_that_does_not_follow_is_found(files: Files) -> None:
    def turn(plain: Any) -> None:
        bound = plain["audits"][0]["bound"]
        bound["verdict"], bound["passes"] = "within", True
        answer = plain["audits"][0]["answer"]
        answer["verdict"] = re.sub("^(Above|Undecided at)", "Within", answer["verdict"])

    one = edited(files, turn)
    words = [(word.encode(), b"Within the bound") for word in ("Undecided at the bound", "Above the bound")]
    for name in ("audit.md", "report.html"):
        for old, new in words:
            one[name] = one[name].replace(old, new)
    code, output = verified(one)
    assert (code, "the bound's" in output) == (1, True), output


def everywhere(files: Files, old: str, new: str) -> Files:
    """A text changed in every file alike."""
    changed = {name: content.replace(old.encode(), new.encode()) for name, content in files.items()}
    assert changed != files
    return changed


@pytest.mark.parametrize("sentence", ["headline", "rates", "sure", "verdict"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--epsilon", "0.05"],
        ["--compare", "to_overall"],
        ["--cluster", "person"],
        ["--not-assessed", "allow"],
    ],
    ids=lambda options: " ".join(options) or "two groups",
)
def test_without_the_data_a_sentence_that_its_numbers_do_not_say_is_found(
    folder: Path, options: list[str], sentence: str
) -> None:
    """The sentence is changed in every file alike, which differ from each other in nothing."""
    files = made(folder, *OPTIONS, *options)
    said = json.loads(files["audit.json"])["audits"][0]["answer"][sentence]
    number = re.findall(r"\d+(?=%| points| to )", said)[-1 if sentence != "headline" else 0]
    other = said.replace(number, str(int(number) - 1), 1)
    code, output = verified(everywhere(files, said, other))
    assert (code, "words" in output) == (1, True), output


@pytest.mark.parametrize("name", ["share_above", "low", "high"])
def test_without_the_data_a_share_that_does_not_follow_is_found(files: Files, name: str) -> None:
    value = json.loads(files["audit.json"])["audits"][0]["answer"]["groups"][0][name]
    code, output = verified(everywhere(files, repr(value), repr(value * 0.999)))
    assert code == 1, output


def test_without_the_data_what_no_bundle_has_is_found(files: Files) -> None:
    for name in ("audit.json", "record.json"):
        assert verified(edited(files, lambda plain: plain.update(approved=True), name))[0] == 1, name
    assert (
        verified(edited(files, lambda plain: plain.update(counts={"scores.csv": None}), "record.json"))[0]
        == 1
    )
    bare = edited(files, lambda plain: plain.update(policy=None, policy_sha256=None), "record.json")
    del bare["policy.toml"]
    assert verified(bare)[0] == 1
    assert verified({**files, "model_card.md": b"# A good model\n"})[0] == 1
    assert verified({**files, "model_card.md": b"# A good model\n"}, *DATA)[0] == 1
    number = json.loads(files["audit.json"])["audits"][0]["findings"][0]["mcdp"]
    behind = files["report.html"].decode().replace(f'"mcdp":{number!r}', '"mcdp":0.01')
    assert verified({**files, "report.html": behind.encode()})[0] == 1


def test_methods_that_this_version_never_had_are_found(files: Files) -> None:
    assert verified(edited(files, lambda plain: plain.update(methods=0), "record.json"))[0] == 1


def test_without_the_data_a_number_beyond_its_bounds_is_found(files: Files) -> None:
    """The number is changed in every file alike; only the counts tell."""
    audit = json.loads(files["audit.json"])["audits"][0]
    mcdp = audit["findings"][0]["mcdp"]
    changed = {
        name: content.replace(repr(mcdp).encode(), repr(mcdp * 0.4).encode())
        for name, content in files.items()
    }
    code, output = verified(changed)
    assert code == 1
    assert "bounds" in output or "10 people: not so" in output, output
    counts = edited(
        files, lambda plain: plain["counts"]["scores.csv"]["groups"][0]["rows"].append(10), "record.json"
    )
    assert verified(counts)[0] == 1


def older(files: Files, methods: int = METHODS) -> Files:
    """The same as another version would have written it."""
    texts = [
        (f'"{localparity.__version__}"', '"0.1.9"'),
        (f"localparity {localparity.__version__}", "localparity 0.1.9"),
    ]
    for old, new in texts:
        files = everywhere(files, old, new)
    return (
        files if methods == METHODS else everywhere(files, f'"methods": {METHODS}', f'"methods": {methods}')
    )


def test_another_version_of_the_methods_cannot_tell(files: Files) -> None:
    one = older(files, methods=0)
    assert verified(one)[0] == 0  # no number is made again
    code, output = verified(one, *DATA)
    assert (code, "made them by other methods" in output) == (2, True), output


def test_another_version_of_the_words_compares_numbers(files: Files) -> None:
    assert verified(older(files), *DATA)[0] == 0
    headline = json.loads(files["audit.json"])["audits"][0]["answer"]["headline"]
    for data in ((), DATA):
        code, output = verified(everywhere(older(files), headline, f"{headline}, it seems"), *data)
        assert (code, "pip install localparity==0.1.9 checks" in output) == (2, True), output
    mean = json.loads(files["audit.json"])["audits"][0]["findings"][0]["test"]["null_mean"]
    assert verified(everywhere(older(files), repr(mean), "0.5"), *DATA)[0] == 1


def test_other_data_is_told(files: Files) -> None:
    code, output = verified(files, "--data", "other.csv")
    assert (code, "sha256" in output) == (1, True)


# Zip files that no audit wrote.


def zipped(entries: list[tuple[Any, bytes]], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", **options) as archive:
        warnings.simplefilter("ignore")
        for entry, content in entries:
            archive.writestr(entry, content)
    return buffer.getvalue()


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK not a zip",
        zipped([]),
        zipped([("../audit.json", b"{}")]),
        zipped([("/etc/audit.json", b"{}")]),
        zipped([("a/audit.json", b"{}")]),
        zipped([("audit.json", b"{}"), ("audit.json", b"{}")]),
        zipped([(link("audit.json"), b"/etc/passwd")]),
        zipped([("report.html", bytes(300_000_000))], compression=zipfile.ZIP_DEFLATED),
    ],
)
def test_what_is_no_bundle_is_refused(content: bytes) -> None:
    code, output = verified(content)
    assert (code, "is not a bundle" in output) == (2, True), output


def test_a_size_that_lies_is_refused(files: Files) -> None:
    bomb = zipped([*((name, b"{}") for name in files), ("SHA256SUMS", b"")], compression=zipfile.ZIP_DEFLATED)
    half = bomb.replace((2).to_bytes(4, "little"), (1).to_bytes(4, "little"))
    assert verified(half)[0] == 2


@pytest.mark.parametrize(
    "text", [b"[]", b'{"a": 1e999}', b'{"a": NaN}', b'{"a": 1, "a": 2}', b"9" * 5000, b"[" * 100_000, b"\xff"]
)
def test_json_that_cannot_be_is_refused(files: Files, text: bytes) -> None:
    for name in ("audit.json", "record.json"):
        code, output = verified({**files, name: text})
        assert (code, "cannot be read" in output) == (2, True), output


def test_a_long_name_makes_no_long_line(files: Files) -> None:
    one = everywhere(files, "scores.csv", "a" * 100_000)
    for words in ((), ("--json",)):
        assert max(map(len, verified(one, *words)[1].splitlines())) < 1000


def test_json_of_any_shape_is_no_crash(files: Files) -> None:
    for name in ("audit.json", "record.json"):
        plain = json.loads(files[name])
        for place in list(leaves(plain))[::40]:
            for value in ([], {}, "x", -1e300):
                inside = json.loads(files[name])
                top = inside
                for key in place[:-1]:
                    inside = inside[key]
                inside[place[-1]] = value
                assert verified({**files, name: json.dumps(top).encode()})[0] < 3, (name, place, value)


@pytest.mark.parametrize(
    "options",
    [
        ["--epsilon", "0,0.02"],
        ["--epsilon", "0.02,0.05"],
        ["--epsilon", "0,0.05", "--compare", "to_overall"],
        ["--method", "bootstrap"],
        ["--criterion", "equalized_odds"],
    ],
    ids=lambda options: " ".join(options[1:]),
)
@pytest.mark.parametrize("end", ["low", "high", "radius"])
def test_without_the_data_an_end_that_the_method_does_not_give_is_found(
    folder: Path, options: list[str], end: str
) -> None:
    """The end is changed in every file alike, and so little that no text shows it."""
    files = made(folder, *OPTIONS, "--group", "race", *options)
    pairs = json.loads(files["audit.json"])["audits"][0]["pairs"]
    numbers = [pair["radius"] if end == "radius" else pair["intervals"][0][end] for pair in pairs]
    is_free = end == "high" and "0.02,0.05" in options  # above 0 it is known to be no larger than at 0
    for number in sorted({number for number in numbers if 0.0 < number < 1.0})[-2:]:
        moved = repr(1.5 * number if is_free else number + 1e-6).encode()
        changed = {name: content.replace(repr(number).encode(), moved) for name, content in files.items()}
        code, output = verified(changed)
        assert code == 1, (number, output)
        assert is_free or "the interval of" in output, output


def test_intervals_of_other_methods_are_not_made_again(files: Files) -> None:
    number = json.loads(files["audit.json"])["audits"][0]["pairs"][0]["radius"]
    moved = repr(number * 1.00001).encode()
    other = {name: content.replace(repr(number).encode(), moved) for name, content in files.items()}
    assert verified(other)[0] == 1
    assert verified(older(other, methods=0))[0] == 0


_BARE = """
import importlib.util, re, sys
from importlib.metadata import packages_distributions, requires

def needed(name, known):
    for line in requires(name) or []:
        one = re.match(r"[\\w.-]+", line)[0].lower().replace("_", "-")
        if "extra ==" not in line and one not in known:
            known.add(one)
            try:
                needed(one, known)
            except ImportError:
                known.discard(one)  # of another platform
    return known

kept = {"localparity", *BASE}
for name in BASE:
    needed(name, kept)
installed = packages_distributions()
mine = {module for module, names in installed.items()
        if any(name.lower().replace("_", "-") in kept for name in names)}

def absent(name):
    top = name.partition(".")[0]
    return top in installed and top not in mine

class Absent:
    def find_spec(self, name, path=None, target=None):
        if absent(name):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if absent(name) else find_spec(name, package)
from localparity.cli import main
sys.argv = ["localparity", "verify", *ARGUMENTS]
main()
"""


@pytest.mark.parametrize("words", [(), DATA])
def test_it_needs_nothing_beyond_the_base_dependencies(files: Files, words: tuple[str, ...]) -> None:
    root = Path(__file__).parents[2]
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    base = [re.split(r"[^\w.-]", one)[0] for one in declared]
    Path("bare.zip").write_bytes(packed(files))
    program = f"BASE = {base!r}\nARGUMENTS = {['bare.zip', *words]!r}\n{_BARE}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(localparity.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "yes: the bundle" in done.stdout
