"""Names, numbers and texts from data, as a terminal, a page or a log shows them; needs no numpy."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Protocol

# Control characters, which move a terminal's cursor or change its colours; marks that turn the direction of
# what follows; ends of lines; halves of characters.
_CONTROLS = "\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_BRIEF = 50
_UNSAFE = re.compile(f"[{_CONTROLS}]")
_UNSAFE_OR_NEW_LINE = re.compile(f"[\n{_CONTROLS}]")
_MARKUP = re.compile(r"([\\`*_\[\]<>#|~&$@]|:(?=//)|(?<=\bwww)\.)")
# What GitHub links or draws once Markdown is rendered, where no backslash helps: @name, #1, GH-1, :smile:.
_REFERENCE = re.compile(r"([@#](?=\w)|\bGH-(?=\d)|:(?=[\w+-]+:))", re.IGNORECASE)
_LOOKS = str.maketrans("асеорхуіјѕһвмнктԁαβεζηικμνορτυχ", "aceopxyijshbmhktdabezhikmvoptux")
_ROUNDING = 1e-12
_SCHEME = r"(?!file:)[a-z][a-z0-9+.-]+:/+"
_ADDRESS = re.compile(rf"(?P<scheme>{_SCHEME})(?P<rest>.*)", re.IGNORECASE | re.DOTALL)
_ADDRESSES = re.compile(
    rf"(?<![a-z0-9+.-])(?P<scheme>{_SCHEME})(?P<rest>(?:(?:(?!:/)[^\n])*@)?[^\s'\"`<>]*[^\s'\"`<>.,;:!?)\]])",
    re.IGNORECASE,
)
"""In a message: to its next space or quote, but a password may hold any character."""
_HIDDEN = "***"


class Ends(Protocol):
    """An interval."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


def visible(text: str) -> str:
    r"""A text on one line, with what would act on a terminal written as its code.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb\nc"))
    a\u001b[2Jb\u000ac
    """
    return _UNSAFE_OR_NEW_LINE.sub(_code, text)


def visible_lines(text: str) -> str:
    r"""The same of a text of several lines, such as JSON, which stays the same JSON.

    Examples
    --------
    >>> print(visible_lines('["\x9b2J",\n"b"]'))
    ["\u009b2J",
    "b"]
    """
    return _UNSAFE.sub(_code, text)


def brief(value: object) -> str:
    r"""The repr of a value for a message; of a long text, the start of its first line.

    A cell with a stray quote holds the rows of other people.

    Examples
    --------
    >>> print(brief("high"), brief(0.5), brief("0.1,f\n0.2,m\n"))
    'high' 0.5 '0.1,f'... (12 characters)
    """
    text = str(value)
    start = text.split("\n", 1)[0][:_BRIEF]
    return repr(value) if start == text else f"{start!r}... ({len(text):,} characters)"


def normal_text(text: str) -> str:
    """A text without what people see as the same: case, spaces around it, and other forms of characters.

    Examples
    --------
    >>> {normal_text(text) for text in ("Male", " MALE ", "Ｍale")}
    {'male'}
    """
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()


def visual_form(text: str) -> str:
    """A text as it looks: `normal_text` without what is invisible, Cyrillic and Greek letters as Latin ones.

    Examples
    --------
    >>> {visual_form(text) for text in ("male", "m\u0430le", "ma\u200ble", "MALE ")}
    {'male'}
    """
    seen = (character for character in normal_text(text) if unicodedata.category(character) != "Cf")
    return "".join(seen).translate(_LOOKS)


def _code(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def shown_address(word: str) -> str:
    """An address without its secrets: who asks, and the values after ? are hidden, whatever they are called.

    The name of a database's user is kept. Any other word is treated as `without_secrets` treats a message.

    Examples
    --------
    >>> shown_address("postgresql://me:secret@host/db?sslpassword=another#credit")
    'postgresql://me:***@host/db?sslpassword=***#credit'
    """
    whole = _ADDRESS.fullmatch(word)
    return without_secrets(word) if whole is None else _shown(whole)


def without_secrets(message: str) -> str:
    """A message without the secrets of the addresses in it.

    Examples
    --------
    >>> print(without_secrets("fetching https://token@host/x.csv?sig=a&b, please"))
    fetching https://***@host/x.csv?sig=***&***, please
    """
    return _ADDRESSES.sub(_shown, message) if ":/" in message else message


def _shown(address: re.Match[str]) -> str:
    scheme, rest = address["scheme"], address["rest"]
    secret, at, rest = rest.rpartition("@")  # a password may hold any character
    user, colon, _ = secret.partition(":")
    if not scheme.lower().startswith("postgres") or not re.fullmatch(r"[\w.-]+", user):
        user, colon = _HIDDEN, ""
    rest, mark, fragment = rest.partition("#")
    path, question, query = rest.partition("?")
    query = re.sub(r"(?:^|(?<=&))([^=&]*=)?[^&]+", rf"\g<1>{_HIDDEN}", query)
    fragment = re.sub(r"=[^&]+", f"={_HIDDEN}", fragment)
    before = f"{user}{colon}{_HIDDEN * bool(colon)}{at}" if at else ""
    return f"{scheme}{before}{path}{question}{query}{mark}{fragment}"


def capitalised(text: str) -> str:
    """A text that starts with a capital letter."""
    return text[0].upper() + text[1:]


_PLURALS = {"people", "men", "women", "males", "females", "boys", "girls", "adults", "children"}


def people_named(name: str) -> str:
    """The people of a group in a sentence.

    Examples
    --------
    >>> people_named("Asian"), people_named("older women"), people_named("Asian × Female")
    ('Asian people', 'older women', 'Asian × Females')
    >>> people_named("> 34"), people_named("f")
    ('people of group > 34', 'people of group f')
    """
    if len(name) == 1 or not name[:1].isalpha():
        return f"people of group {name}"
    last = name.split()[-1].lower()
    if last in _PLURALS:
        return isolated(name)
    return isolated(f"{name}s") if f"{last}s" in _PLURALS else f"{isolated(name)} people"


def points_text(gap: float) -> str:
    """A gap that is not 0, in whole percentage points rounded down; below one, to its first digit.

    Examples
    --------
    >>> points_text(0.27349), points_text(0.01), points_text(0.00047), points_text(1e-12)
    ('at least 27 points', 'at least 1 point', 'at least 0.04 points', 'more than 0 points')
    """
    for decimals in range(7):
        steps = math.floor((gap + 1e-12) * 10.0 ** (2 + decimals))
        if steps:
            unit = "point" if steps == 1 and not decimals else "points"
            return f"at least {steps / 10.0**decimals:.{decimals}f} {unit}"
    return "more than 0 points"


def run_text(low: float, high: float, whole: bool) -> str:
    """The thresholds of a run, whose high end is not one of them.

    Examples
    --------
    >>> run_text(2.0, 6.0, whole=True), run_text(2.0, 3.0, whole=True)
    ('from 2 to 5', 'of 2')
    >>> run_text(0.4, 0.6, whole=False)
    'from 0.4 to just below 0.6'
    """
    if not whole:
        return "from {} to just below {}".format(*round_inward(low, high))
    first, last = number_text(low), number_text(high - 1.0)
    return f"of {first}" if first == last else f"from {first} to {last}"


def round_inward(low: float, high: float) -> tuple[str, str]:
    """The ends of a run with as few digits as keep them apart, four at the least, and inside it.

    Examples
    --------
    >>> round_inward(0.123449, 0.876551)
    ('0.1235', '0.8765')
    """
    for digits in range(4, 17):
        step = 10.0 ** (math.floor(math.log10(max(abs(low), abs(high)))) + 1 - digits)
        if step == 0.0:  # smaller than any float
            break
        inner_low, inner_high = math.ceil(low / step - 1e-9) * step, math.floor(high / step + 1e-9) * step
        if inner_low < inner_high:
            return number_text(inner_low, digits), number_text(inner_high, digits)
    return number_text(low), number_text(high)


def cutoffs_text(low: float, high: float, *, whole: bool) -> str:
    """The cutoffs of a run, whose high end is not one of them: the first and the last with few digits.

    Of a run that is short beside its numbers, one cutoff is named.

    Examples
    --------
    >>> cutoffs_text(2.0, 6.0, whole=True), cutoffs_text(2.0, 3.0, whole=True)
    ('every cutoff from 2 to 5', 'a cutoff of 2')
    >>> cutoffs_text(0.23437, 0.33441, whole=False), cutoffs_text(0.25117, 0.25132, whole=False)
    ('every cutoff from 0.235 to 0.334', 'a cutoff of 0.2512')
    """
    first, last = number_text(low), number_text(high - 1.0 if whole else low)
    if not whole and high - low < 0.002 * max(abs(low), abs(high)):
        first = last = number_text(round_number_in(low, high))
    elif not whole:
        fewest = 2 - math.floor(math.log10(2.0 * (high - low)) + 1e-9)
        found = (ends for decimals in range(fewest, 18) if (ends := _inside(low, high, decimals)))
        first, last = map(number_text, next(found, (low, low)))
    return f"a cutoff of {first}" if first == last else f"every cutoff from {first} to {last}"


def _inside(low: float, high: float, decimals: int) -> tuple[float, float] | None:
    """The first and the last number of so many decimals in a run, where there are two."""
    step = Decimal(1).scaleb(-decimals)
    first = (Decimal(repr(low)) / step).to_integral_value(ROUND_CEILING) * step
    last = (Decimal(repr(high)) / step).to_integral_value(ROUND_CEILING) * step - step
    return (float(first), float(last)) if low <= float(first) < float(last) < high else None


def round_number_in(low: float, high: float) -> float:
    """The number with the fewest decimals from `low` up to, but not at, `high`.

    Examples
    --------
    >>> round_number_in(0.25117, 0.25132), round_number_in(0.2, 0.9), round_number_in(130.0, 471.0)
    (0.2512, 0.2, 200.0)
    """
    for decimals in range(-math.ceil(math.log10(high - low)), 18):
        step = Decimal(1).scaleb(-decimals)
        number = float((Decimal(repr(low)) / step).to_integral_value(ROUND_CEILING) * step)
        if low <= number < high:
            return number
    return low


def whole_percent(fraction: float) -> str:
    """A fraction as a whole percentage; one that is neither 0 nor 1 is not shown as either.

    Examples
    --------
    >>> whole_percent(0.5862), whole_percent(0.001), whole_percent(0.9999), whole_percent(0.0)
    ('59%', 'under 1%', 'over 99%', '0%')
    """
    if 0.0 < fraction < 0.005:
        return "under 1%"
    return "over 99%" if 0.995 < fraction < 1.0 else f"{100.0 * fraction:.0f}%"


def points(gap: float, beside: float | None = None) -> str:
    """A gap in whole percentage points; below one, to the first digit, and so as to differ from another.

    Examples
    --------
    >>> points(0.2402), points(0.01), points(0.0037), points(0.0), points(0.1004, beside=0.1)
    ('24 points', '1 point', '0.4 points', '0 points', '10.04 points')
    """
    text = number_text(100.0 * gap, 1) if gap < 0.0095 else f"{100.0 * gap:.0f}"
    if beside is not None and gap != beside:
        for decimals in range(1, 7):
            if float(text) != round(100.0 * beside, decimals):
                break
            text = f"{100.0 * gap:.{decimals}f}"
    return f"{text} point" if text == "1" else f"{text} points"


def outward_points(low: float, high: float, *, unit: bool = True) -> str:
    """The ends of an interval in whole points, rounded outward; below one, to the first digit.

    Examples
    --------
    >>> outward_points(0.1858, 0.2663), outward_points(0.0012, 0.0037), outward_points(0.0, 1.0, unit=False)
    ('18 to 27 points', '0.1 to 0.4 points', '0 to 100')
    >>> outward_points(0.0003, 0.47)  # which keeps clear of 0
    '0.03 to 47 points'
    """
    first = float(math.floor(100.0 * low + 1e-9))
    for decimals in range(1, 7):
        if first or not 0.0 < low < 0.0095:
            break
        first = math.floor(100.0 * low * 10.0**decimals + 1e-9) / 10.0**decimals
    scale = 10.0 if 0.0 < high < 0.0095 else 1.0
    last = math.ceil(100.0 * scale * high - 1e-9) / scale
    return f"{first:g} to {last:g}" + (" points" if unit else "")


def signed_points(low: float, high: float) -> str:
    """The ends of the interval of a difference in points, rounded outward to a tenth, or so as not to be 0.

    Examples
    --------
    >>> signed_points(-0.10186, -0.0793), signed_points(-0.0012, 0.0037), signed_points(-0.04, -0.00032)
    ('-10.2 to -7.9', '-0.2 to 0.4', '-4 to -0.03')
    """
    return f"{_rounded_by(math.floor, low, 1e-9)} to {_rounded_by(math.ceil, high, -1e-9)}"


def _rounded_by(outward: Callable[[float], int], change: float, nudge: float) -> str:
    """A change in points with one decimal, or as many as keep it apart from 0."""
    for decimals in range(1, 12):
        rounded = outward(change * 10.0 ** (2 + decimals) + nudge) / 10.0**decimals
        if rounded or not change:
            break
    return f"{rounded + 0.0:g}"


def outward_percent(low: float, high: float) -> str:
    """The ends of an interval in percent, rounded outward to a tenth, for a table's cell.

    Examples
    --------
    >>> outward_percent(0.18581, 0.26626)
    '18.5% to 26.7%'
    """
    ends = math.floor(1000.0 * low + 1e-9) / 10.0, math.ceil(1000.0 * high - 1e-9) / 10.0
    return "{:.1f}% to {:.1f}%".format(*ends)


def percent(fraction: float) -> str:
    """A fraction as people read it.

    Examples
    --------
    >>> percent(0.29984)
    '29.98%'
    """
    return f"{100.0 * fraction:.2f}%"


def number_text(number: float, digits: int | None = None) -> str:
    """A number as people write it, to so many significant digits or to all that it has.

    Examples
    --------
    >>> number_text(11490.0), number_text(0.00012), number_text(1.5e-9), number_text(2 / 3, 4)
    ('11,490', '0.00012', '1.5e-9', '0.6667')
    """
    text = repr(number) if digits is None else f"{number:.{digits}g}"
    exact = Decimal(text).normalize()
    if number != 0.0 and not 1e-6 <= abs(number) < 1e15:
        mantissa, exponent = f"{exact:e}".split("e")
        return f"{mantissa}e{int(exponent):+d}"
    return f"{exact:,f}"


def interval_text(interval: Ends) -> str:
    """An interval.

    Examples
    --------
    >>> from localparity.results import Interval
    >>> interval_text(Interval(0.1, 0.2, 0.3, 0.95))
    '10.00% to 30.00%'
    """
    return f"{percent(interval.low)} to {percent(interval.high)}"


def p_value_text(p_value: float | None, least: float) -> str:
    """A p-value, or a dash where no test was made; the least that there can be is a bound, not a value.

    Examples
    --------
    >>> p_value_text(1 / 1001, 1 / 1001), p_value_text(1 / 101, 1 / 101)
    ('<= 0.001', '<= 0.01')
    >>> p_value_text(2 / 1001, 1 / 1001), p_value_text(None, 1.0)
    ('0.0020', '-')
    """
    if p_value is None:
        return "-"
    if p_value > least * (1.0 + _ROUNDING):
        return f"{p_value:.4f}" if p_value >= 1e-3 else number_text(p_value, 2)
    step = 10.0 ** (math.floor(math.log10(p_value)) - 1)
    return f"<= {number_text(math.ceil(p_value / step - _ROUNDING) * step, 2)}"


def group_text(group: Hashable) -> str:
    """A group as people read it, the parts of an intersection joined, safe to show on a terminal.

    Examples
    --------
    >>> group_text(("Female", "Asian"))
    'Female × Asian'
    """
    return visible(" × ".join(map(str, group)) if isinstance(group, tuple) else str(group))


def pair_text(groups: Sequence[Hashable]) -> str:
    """Two groups in a table's cell; a name that runs from right to left keeps to itself.

    Examples
    --------
    >>> pair_text(("Female", "Male"))
    'Female and Male'
    """
    return " and ".join(isolated(group_text(group)) for group in groups)


def isolated(name: str) -> str:
    """A name that does not turn the direction of the text around it."""
    right_to_left = any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in name)
    return f"\u2068{name}\u2069" if right_to_left else name


def markdown_text(text: str) -> str:
    r"""A text as Markdown shows it as it is: on one line, without markup, links, mentions or HTML.

    Examples
    --------
    >>> print(markdown_text("a|b <i> https://x *c*"))
    a\|b \<i\> https\://x \*c\*
    """
    return _MARKUP.sub(r"\\\1", _REFERENCE.sub("\\1\u2060", visible(text)))
