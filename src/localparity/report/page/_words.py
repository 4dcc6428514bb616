"""The page's words: what each means to someone without statistics, and where they stand in a sentence."""

from __future__ import annotations

import re
from typing import Any

from localparity._validation import require

GLOSSARY = {
    "adjusted": "Made larger to allow for the number of pairs and epsilons that were looked at together.",
    "ABCC": "The area between the two groups' curves: the difference averaged over all thresholds.",
    "bound": "The most that MCDP may be, set by whoever decides what is acceptable.",
    "chance": "Two samples of the same people differ a little by luck. The smaller the groups, the more.",
    "confidence": "How often intervals made in this way hold the true value, if the assumptions do.",
    "delta-DP": "The difference of the groups' mean scores, or of their shares above one threshold.",
    "disparity": "A difference between the scores of two groups. Whether it is justified, no number says.",
    "epsilon": "Half the width of the window, as a share of the score range. At 0 it is a single threshold.",
    "interval": "The range in which the true value lies, with the confidence that is stated.",
    "MCDP": "The largest difference between two groups that lasts over a whole window of thresholds.",
    "p-value": "How often chance alone would show a difference as large as this, if there were none.",
    "parity": "No difference between the groups at any threshold.",
    "points": "Percentage points: 40% against 30% is a difference of 10 points.",
    "ratio": "The smaller share that is selected over the larger: 30% against 40% is 0.75.",
    "seed": "The number that makes random draws repeatable.",
    "sha256": "A fingerprint of a file: another file, or a changed one, has another.",
    "threshold": "A score that parts people, as where those above it are selected or flagged; also a cutoff.",
    "window": "A stretch of neighbouring thresholds.",
}
"""Words and what they mean."""

_ALSO = {
    "thresholds": "threshold",
    "cutoff": "threshold",
    "cutoffs": "threshold",
    "intervals": "interval",
    "p-values": "p-value",
    "windows": "window",
    "epsilons": "epsilon",
}
_WORDS = {word: word for word in GLOSSARY} | _ALSO
_ANY = re.compile(rf"(?<![\w-])({'|'.join(sorted(map(re.escape, _WORDS), key=len, reverse=True))})(?![\w-])")


def explained(text: str) -> Any:
    """A text with the first use of each word of the glossary linked to what it means; all else is escaped.

    Examples
    --------
    >>> print(explained("<b> at a threshold"))
    &lt;b&gt; at a <a class="term" href="#word-threshold" data-is="A score ...">threshold</a>
    """
    markup = require("markupsafe", extra="report").Markup
    parts, seen, end = [], set[str](), 0
    for found in _ANY.finditer(text):
        word = _WORDS[found[0]]
        if word not in seen:
            seen.add(word)
            link = markup('<a class="term" href="#word-{}" data-is="{}">{}</a>')
            parts += [markup.escape(text[end : found.start()]), link.format(word, GLOSSARY[word], found[0])]
            end = found.end()
    return markup("").join([*parts, markup.escape(text[end:])])
