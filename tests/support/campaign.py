"""``python -m campaign``: thousands of bad files and argument lists for every command; see ``make campaign``.

A case is known by its number. It fails where there is a traceback, an exit code other than 0, 1 and 2, no line that says what
is wrong, ten seconds of the processor, or an MCDP(0) other than that of a slow reader of another making.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import math
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import zipfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks._commit import current_commit

from faults.commands import write_inputs
from faults.stand_ins import installed
from fuzzing import damage, damage_json, sealed
from localparity._io._files import sha256_of
from localparity.monitoring import Monitor
from localparity.monitoring._sketch import join_parts, split_parts
from localparity.report._bundle import CHECKSUMS, packed
from processes import CommandLine, Journal, fork, memory_folder, type_command, write_to
from results_page import rows_of, write_page

MOST_SECONDS = 10.0
"""Of the processor, which other work does not change."""
_BATCH = 50
_LONGEST = 20_000
"""Of what a command prints; help takes a third of it."""

# Words with a space, or that a terminal would show otherwise, stand apart.
_VALUES = """
0 1 -1 2 0.5 -0.5 1e308 1e-320 nan inf -inf 1e999 abc ½ 2147483647 2147483648 9223372036854775808 1000000000
99999999999999999999 1_000 0x10 1,2 1,2,3 , 0,1 1,0 0,0 nan,1 -1e308,1e308 0,1e-320 true None -- - -h * ~ ~nobody/x . .. /
/dev/null /dev/full /proc/self/mem /nonexistent/x s3://bucket/x.csv https://127.0.0.1:9/x.csv file:///x
{in}/people.csv {in}/model {in} {out}/x.csv {out}/x.parquet {out}/x.html {out}/x {in}/missing.csv
demographic_parity equal_opportunity to_overall drop group bound upper bootstrap day hour
p sex y age score income nothing P ' " [red] 2026-05-17 2026-13-01 0001-01-01T00:00+14:00 9999-12-31T23:59-14:00 now
lightgbm xgboost cpu cuda mps
"""
VALUES = [*_VALUES.split(), "", " ", "9" * 400, "sex ", "a\nb", "\u202e", "\x1b[31m", "\udcff"]
_OPTIONS = """
--score --group --label --weight --epsilon --criterion --compare --score-range --threshold --min-group-size
--missing-groups --missing --cluster --id --higher-is --method --confidence --resamples --seed --jobs --json
--max-mcdp --decide-by --report --force --model --target --out --steps --strength --drop --text --feature --preset --device
--keep --every --at --alarm-rate --store --methods --strengths --seeds --rows --power --mcdp --nothing -x --help --version
--encoding --decimal --sheet --missing-value --figure --quiet
"""
OPTIONS = _OPTIONS.split()
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
    "compare": f"compare {_PEOPLE} --network-steps 2 --resamples 19",
    "verify": "verify {in}/bundle/audit.zip --data {in}/people.csv --json",
}
_SLOW = ("compare", "demo")
"""Of these, only lists that a wrong number or word may end."""
_PREPARE = (
    f"train {_PEOPLE} --out {{in}}/model --steps 3",
    "train {in}/scored.csv --target y --group sex --out {in}/scorer --steps 3",
    "reproduce adult --methods erm --device cpu --quiet --store {in}/store --seeds 2",
    "monitor append {in}/monitor {in}/people.csv --score score --group sex --at 2026-05-17",
    f"train {_PEOPLE} --out {{in}}/lightgbm --model lightgbm --strength 0.1",
    f"train {_PEOPLE} --out {{in}}/xgboost --model xgboost --strength 0.1",
    f"repair {_PEOPLE} --out {{in}}/repair --group-aware --max-mcdp 0.3",
    f"repair {_PEOPLE} --out {{in}}/blind --max-mcdp 0.6",
    "audit {in}/people.csv --score score --group sex --resamples 19 --max-mcdp 0.9 --scoring-rates --out {in}/bundle/audit.zip",
)
TABLES = {
    "audit": "audit {table} --score p --group sex --resamples 0 --jobs 1 --min-group-size 1 --epsilon 0 --json",
    "monitor": "monitor append {out}/monitor {table} --score p --group sex --at 2026-05-17 --min-group-size 1 --json",
    "train": "train {table} --target y --group sex --out {out}/model --steps 2",
    "predict": "predict {in}/scorer {table} --out {out}/scores.csv",
}
KEPT = {
    "model": "predict {out}/model {in}/people.csv --out {out}/scores.csv",
    "store": "reproduce tables --store {out}/store --out {out}/tables",
    "monitor": "monitor show {out}/monitor --json",
}
"""Commands that read what others wrote, and what they read."""

LIARS = {
    "network": KEPT["model"],
    "lightgbm": "predict {out}/lightgbm {in}/people.csv --out {out}/scores.csv",
    "xgboost": "predict {out}/xgboost {in}/people.csv --out {out}/scores.csv",
    "repair": "predict {out}/repair {in}/people.csv --out {out}/scores.csv --group sex",
    "blind": "predict {out}/blind {in}/people.csv --out {out}/scores.csv",
    "store": KEPT["store"],
    "monitor": KEPT["monitor"],
    "bundle": "verify {out}/bundle/audit.zip",
}
"""The same for files whose checksums fit, whatever became of their values."""
_FIRST_LIE = 10**6


@dataclass(frozen=True)
class Case:
    """A command, its words, and MCDP(0) where a slow reader finds it and the command prints it."""

    name: str
    words: list[str]
    expected: float | None = None
    prints: bool = False


def make_case(number: int, line: CommandLine) -> Case:
    """Make the case of a number, and its files in `out`, which is emptied."""
    rng = random.Random(number)
    shutil.rmtree(line.out, ignore_errors=True)
    line.out.mkdir()
    if number >= _FIRST_LIE:
        return make_lie(_liar(number), line, rng)
    kind = rng.random()
    if kind < 0.5:
        name, words = make_words(rng)
        return Case(f"arguments of {name}", line.words(words))
    if kind < 0.9:
        path = make_table(line.out, rng)
        command = rng.choice(("audit", "audit", *TABLES))
        words = line.words(TABLES[command].replace("{table}", str(path)))
        expected = slow_mcdp(path) if command == "audit" else None
        return Case(f"a table for {command}", words, expected, prints=command == "audit")
    owner = rng.choice(tuple(KEPT))
    shutil.copytree(line.inputs / owner, line.out / owner)
    files = [path for path in sorted((line.out / owner).rglob("*")) if path.is_file()]
    path = rng.choice([path for path in files if not path.name.startswith("model_card")])
    path.write_bytes(damage(path.read_bytes(), rng.choice))
    return Case(f"a damaged {owner}", line.words(KEPT[owner]))


def _liar(number: int) -> str:
    """The kind of lying file that a number stands for."""
    return tuple(LIARS)[number % len(LIARS)]


def make_lie(owner: str, line: CommandLine, rng: random.Random) -> Case:
    """Change values of what a command reads, and make its checksums fit."""
    source = "model" if owner == "network" else owner
    folder = line.out / source
    shutil.copytree(line.inputs / source, folder)
    if owner == "monitor":
        _lie_in_monitor(folder, rng)
    elif owner == "bundle":
        _lie_in_bundle(folder / "audit.zip", rng)
    else:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "card" not in path.name]
        path = rng.choice(files)
        if path.suffix == ".json":
            path.write_bytes(sealed(damage_json(json.loads(path.read_bytes()), rng.choice)))
        else:
            path.write_bytes(damage(path.read_bytes(), rng.choice))
        _refit(folder)
    return Case(f"a lying {owner}", line.words(LIARS[owner]))


def _refit(folder: Path) -> None:
    """Make the checksums of files fit in the descriptions that have them, the innermost first."""
    for path in sorted(folder.rglob("*.json"), key=lambda path: -len(path.parts)):
        with suppress(ValueError, TypeError, KeyError, AttributeError, OSError):
            facts = json.loads(path.read_bytes())
            if path.name == "model.json":
                data = path.parent / facts.get("data", "")
                facts["files"] |= {name: sha256_of(data / name) for name in facts["files"]}
            elif "scores_sha256" in facts:
                facts["scores_sha256"] = sha256_of(path.with_suffix(".parquet"))
            path.write_bytes(sealed(facts))


def _lie_in_monitor(folder: Path, rng: random.Random) -> None:
    """Change the state of a monitor, or a period: what describes it, or its sketches."""
    store = Monitor(folder).store
    kind = rng.choice(("state", "period", "period"))
    name, payload = rng.choice(sorted(store.recall(kind).items()))
    header, parts = (json.loads(payload), []) if kind == "state" else split_parts(payload, "it")
    if parts and rng.random() < 0.5:
        at = rng.randrange(len(parts))
        parts = [*parts[:at], damage(parts[at], rng.choice), *parts[at + 1 :]]
    else:
        header = damage_json(header, rng.choice)
    if kind == "period" and isinstance(header, dict):
        content = join_parts(header, parts)
    else:
        content = json.dumps(header).encode()
    with store.writing():
        store.remember(kind, {name: content})


def _lie_in_bundle(path: Path, rng: random.Random) -> None:
    """Change one file of a bundle."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name != CHECKSUMS}
    name = rng.choice(sorted(files))
    if name.endswith(".json"):
        files[name] = json.dumps(damage_json(json.loads(files[name]), rng.choice)).encode()
    else:
        files[name] = damage(files[name], rng.choice)
    path.write_bytes(packed(files))


def make_words(rng: random.Random) -> tuple[str, list[str]]:
    """A command's name and its words, of which one to three are wrong."""
    name = rng.choice(tuple(BASES))
    words = BASES[name].split()
    if name in _SLOW:
        wrong = ("-1", "nan", "abc", "9" * 30, "/dev/null/x", "2147483648")
        return name, [*words, rng.choice(OPTIONS), rng.choice(wrong)]
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


Rows = list[dict[str, str]]
_ODD_SCORES = "0 1 0.5 .5 5e-1 1e-320 -0.0 0.50 +0.5 1.0000000000000002 2 -1 nan inf NA 1e999 0,5 ½ 0x1p-1 1_0 true None '0.5 1/2"
_ODD_GROUPS = 'f m other ä q"q a,b 0 1 NULL =1+1 [b] nan'
ODD = {
    "p": [*_ODD_SCORES.split(), "", " ", "0.5 ", " 0.5", "9" * 400],
    "sex": [*_ODD_GROUPS.split(), "x y", "", " ", "\u202e"],
    "y": ["0", "1", "2", "", "yes", "1.0"],
}


def make_table(folder: Path, rng: random.Random) -> Path:
    """Write a table and return its path: as it should be, with odd values, or with damaged bytes."""
    rows, kind = valid_rows(rng), rng.choice(tuple(FORMS))
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 2, 5))):
            row, column = rng.choice(rows), rng.choice(tuple(ODD))
            row[column] = rng.choice(ODD[column])
    content = FORMS[kind](rows, rng)
    if rng.random() < 0.5:
        content = damage(content, rng.choice)
    packed = rng.random() < 0.1
    path = folder / f"table{kind}{'.gz' if packed else ''}"
    if packed:
        content = gzip.compress(content)
        content = damage(content, rng.choice) if rng.random() < 0.5 else content
    path.write_bytes(content)
    return path


def valid_rows(rng: random.Random) -> Rows:
    """Rows of two groups or three, with scores of up to three decimals."""
    groups = ("f", "m", "other")[: rng.choice((2, 2, 3))]
    return [
        {"p": f"{rng.random():.{rng.choice((1, 2, 3))}f}", "sex": rng.choice(groups), "y": rng.choice("01")}
        for _ in range(rng.choice((4, 24, 60)))
    ]


def as_csv(rows: Rows, rng: random.Random) -> bytes:
    """Rows as CSV in one of its dialects."""
    stream = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    end = rng.choice(("\n", "\n", "\r\n"))
    writer = csv.DictWriter(stream, list(rows[0]), lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    text = stream.getvalue()
    if rng.random() < 0.2:
        text = text.removesuffix(end)
    return rng.choice((b"", b"", b"\xef\xbb\xbf")) + text.encode()


def as_lines(rows: Rows, rng: random.Random) -> bytes:
    """Rows as JSON lines; numbers as numbers or as texts."""
    number: Callable[[str], object] = rng.choice((str, _number))
    return "\n".join(json.dumps({**row, "p": number(row["p"])}) for row in rows).encode()


def as_array(rows: Rows, rng: random.Random) -> bytes:
    """Rows as a JSON array."""
    values = [{**row, "p": _number(row["p"])} for row in rows]
    return json.dumps(values, indent=rng.choice((None, 1))).encode()


def _number(text: str) -> object:
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


FORMS = {".csv": as_csv, ".jsonl": as_lines, ".json": as_array}


def slow_mcdp(path: Path) -> float | None:
    """The largest gap between two groups' distributions in a file; None where the file is not plainly right."""
    try:
        rows = _slow_rows(path)
    except (ValueError, KeyError, TypeError, EOFError, OSError, csv.Error, zlib.error):
        return None
    by_group: dict[object, list[float]] = defaultdict(list)
    for score, group in rows:
        if not 0.0 <= score <= 1.0 or not isinstance(group, str) or not group.strip():
            return None
        by_group[group].append(score)
    if len(by_group) < 2:
        return None
    scores = sorted({score for own in by_group.values() for score in own})
    shares = [
        [sum(other <= score for other in own) / len(own) for score in scores] for own in by_group.values()
    ]
    return max(
        abs(a - b) for first in shares for second in shares for a, b in zip(first, second, strict=True)
    )


def _slow_rows(path: Path) -> list[tuple[float, object]]:
    content = path.read_bytes()
    if path.suffix == ".gz":
        content, path = gzip.decompress(content), path.with_suffix("")
    text = content.decode().removeprefix("\ufeff")
    if path.suffix == ".csv":
        header, *rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
        if len(set(header)) < len(header) or any(len(row) != len(header) for row in rows):
            raise ValueError("rows of other lengths")
        return [(_slow_number(row[header.index("p")]), row[header.index("sex")]) for row in rows]
    lines = [text] if path.suffix == ".json" else [line for line in text.split("\n") if line.strip()]
    values = [json.loads(line) for line in lines]
    return [(_slow_number(row["p"]), row["sex"]) for row in (values[0] if path.suffix == ".json" else values)]


def _slow_number(value: object) -> float:
    """A number, or true and false as 1 and 0."""
    text = str(value).strip().lower()
    return float({"true": "1", "false": "0"}.get(text, text))


def problem_of(case: Case, code: int, said: str) -> str:
    """What is wrong with how a case ended; empty where nothing is."""
    if "Traceback (most recent call last)" in said:
        return "a traceback"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if code == 2 and not re.search(r"^error: .+\Z|Usage:", said.strip(), re.M):
        return "no line that says what is wrong"
    if len(said) > _LONGEST and not case.prints and "--json" not in case.words:
        return f"{len(said):,} characters"
    if not case.prints or code == 2:
        return ""
    try:
        printed = json.loads(said[said.index("{") :])["audits"][0]["findings"][0]["mcdp"]
    except (ValueError, KeyError, IndexError):
        return "its JSON cannot be read"
    if case.expected is None:
        return "accepted, though the slow reader refuses it"
    if abs(printed - case.expected) > 1e-9:
        return f"MCDP is {printed}, expected {case.expected}"
    return ""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument(
        "--lies", type=int, default=0, help="so many cases for each kind of lying file, instead"
    )
    parser.add_argument("--only", choices=LIARS, help="the kind of lying file; all by default")
    parser.add_argument(
        "--write", action="store_true", help="write results/campaign.md, and go on where it stops"
    )
    options = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "110", "TERM": "dumb"}
    numbers = range(options.first, options.first + options.cases)
    if options.lies:
        numbers = range(_FIRST_LIE, _FIRST_LIE + options.lies * len(LIARS))
    wanted = [number for number in numbers if options.only in (None, _liar(number))]
    rows: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(dir=memory_folder()) as folder, installed(Path(folder)):
        os.environ["HOME"] = folder
        line = _prepared(Path(folder), () if options.lies else BASES.values())
        journal, commit = Journal("campaign"), current_commit()
        if options.write:
            known = journal.known().items()
            here = {int(key): row for key, row in known if row["commit"] == commit}
            rows = {number: here[number] for number in wanted if number in here}
        for number, row in _try(line, [number for number in wanted if number not in rows]):
            rows[number] = row
            if options.write:
                journal.add(str(number), commit=commit, **row)
            if row["problem"]:
                print(f"case {number}: {row['problem']}: {row['words']}: {row['said'][-150:]!r}", flush=True)
    failed = sum(bool(row["problem"]) for row in rows.values())
    if options.write:
        _write(rows)
    for (name, how), count in sorted(Counter((row["name"], row["how"]) for row in rows.values()).items()):
        print(f"{count:7,}  {name}: {how}")
    print(f"{len(rows):,} cases, {failed} failed")
    return int(failed > 0)


def _prepared(folder: Path, bases: Iterable[str]) -> CommandLine:
    """The files that are read, and the modules that commands import."""
    line = CommandLine(folder)
    write_inputs(line.inputs)
    scored = "".join(f"0.{i:02d},{'fm'[i % 2]},{i // 3 % 2}\n" for i in range(60))
    (line.inputs / "scored.csv").write_text(f"p,sex,y\n{scored}")
    whole = [re.sub(r"\{out\}/(?!scores|tables)", "{in}/", text) for text in LIARS.values()]
    for text in (*_PREPARE, *whole, *bases):
        shutil.rmtree(line.out)
        line.out.mkdir()
        line.type_well(text)
    return line


def _try(line: CommandLine, numbers: list[int]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Try cases, many in a child; where one takes it along, the next child goes on after it."""
    told = line.folder / "told.jsonl"
    while numbers:
        batch = numbers[:_BATCH]
        told.write_text("")
        ended = fork(lambda batch=batch: _try_batch(line, batch, told), line.said, seconds=900)  # type: ignore[misc]
        rows = [json.loads(text) for text in told.read_text().splitlines()]
        if len(rows) < len(batch):
            case = make_case(batch[len(rows)], line)
            how = "a hang" if ended.code == -signal.SIGPROF else f"the process ended with {ended.code}"
            rows.append(_row(case, how, how, ended.said))
        yield from zip(batch, rows, strict=False)
        numbers = numbers[len(rows) :]


def _try_batch(line: CommandLine, numbers: list[int], told: Path) -> int:
    """Try cases in this process, and write a line about each."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    said = line.folder / "case.txt"
    for number in numbers:
        case = make_case(number, line)
        os.chdir(line.out)
        write_to(said)
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        code = type_command(case.words)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.flush()
        sys.stderr.flush()
        text = said.read_text(errors="replace")
        how = {0: "done", 1: "above the bound", 2: "refused"}.get(code, f"exit code {code}")
        with told.open("a") as lines:
            lines.write(json.dumps(_row(case, how, problem_of(case, code, text), text)) + "\n")
    return 0


def _row(case: Case, how: str, problem: str, said: str) -> dict[str, Any]:
    return {"name": case.name, "how": how, "problem": problem, "words": case.words, "said": said[-300:]}


_APART = """Tried apart, by tests or by hand, at 18aac45; in each, 0 crashes, hangs, leaks, losses and wrong answers:

- 12 odd answers of a webhook, 10 bad URLs, 7 damaged notes (tests/monitoring/test_webhook.py).
- 256 slow clients, 3 resets and 27 odd requests for monitor serve (tests/integrations/test_prometheus.py).
- 28 commands with a secret in 19 kinds of addresses each (tests/cli/test_secrets.py).
- 7 hostile databases by 4 names each, 11 hostile monitors and an endless file (test_databases.py, test_stores.py).
- 3 signals in 4 states of a command (tests/cli/test_interrupts.py).
- By hand: monitor append killed by strace at 22 sends to PostgreSQL, commits among them; a full and a read-only tmpfs, 4 commands.

Privacy, at 78bfba5f: page, JSON and record of 4 audits of one file (two epsilons more, and `to_overall`), each file alone and all 66 pairs.
Alone, none parts fewer than ten people. A pair tells of up to 5 such cells of a group, all beside the cutoffs of the two answers; before, of
up to 100, down to one person. docs/how_to/privacy.rst says what is left (tests/report/test_bundle.py, tests/counts/test_disclosure.py)."""


def _write(rows: dict[int, dict[str, Any]]) -> None:
    """Write how many cases of each kind ended how; kinds that were not tried now keep their rows."""
    outcomes = Counter((row["name"], row["how"]) for row in rows.values())
    failed = Counter(row["name"] for row in rows.values() if row["problem"])
    text = (
        "Generated argument lists for every command; tables, models, stores and monitors that are odd or damaged, or that lie: "
        "their values are changed and their checksums fit. A case fails where there is a traceback, an exit code other than 0, 1 "
        "and 2, a crash, no line that says what is wrong, ten seconds of the processor, or an MCDP(0) other than that of a slow "
        "reader of another making. `make campaign` writes this table; each row names the commit that was tried."
    )
    table = {
        name: {
            "what": name,
            "cases": sum(outcomes[name, how] for how in {how for _, how in outcomes}),
            "done": outcomes[name, "done"] + outcomes[name, "above the bound"],
            "refused": outcomes[name, "refused"],
            "failed": failed[name],
            "commit": current_commit(),
        }
        for name, _ in outcomes
    }
    known = {name: row for name, row in rows_of("campaign").items() if "commit" in row}
    ordered = [row for _, row in sorted((known | table).items())]
    write_page("campaign", "Bad files and arguments", text, ordered, [_APART])


if __name__ == "__main__":
    sys.exit(main())
