"""What can be said of a text: its words, its sentences, and how hard it is to read."""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any, Final

from .measures import confidence, mean, quartiles, rounded
from .reading import FileProblem

SHOWN: Final = 15
_SAMPLE: Final = 100
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]»]*\s+(?=\W*[A-ZÀ-ÖØ-Þ0-9])|\n\s*\n")
_LIX: Final = ((30, "very easy"), (40, "easy"), (50, "medium"), (60, "difficult"))
# Words of grammar, in the languages of the sample texts: they are the most frequent ones of every text.
_COMMON: Final = frozenset(
    """a about after again all an and any are as at be because been before but by can could did do does down each even
    for from had has have he her here him his how i if in into is it it's its just like me more most my no not now of
    off on one only or other our out over she so some than that the their them then there these they this those
    through to too two up us very was we were what when where which while who will with would you your
    aber alle als also am an auf aus bei bis da das dass dem den denn der des die doch dort du durch ein eine einem
    einen einer eines er es etwas für hat hatte ich ihm ihn ihr im in ist ja kein keine man mich mir mit nach nicht
    noch nun nur ob oder ohne schon sehr sein seine sich sie sind so über um und uns unter vom von vor war waren was
    wenn wer wie wir wo zu zum zur""".split()  # noqa: SIM905 - a list of them would fill a page
)


def words_of(text: str) -> list[str]:
    """The words in lower case; numbers aren't words, ``don't`` and ``well-known`` are one each."""
    return [word.lower() for word in _WORD.findall(text)]


def sentences_of(text: str) -> list[str]:
    """The sentences that have at least one word, white space in them folded. A blank line ends one, too."""
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(text))
    return [part for part in parts if _WORD.search(part)]


def readability(words: list[str], sentence_count: int) -> tuple[float, str]:
    """The LIX of a text and what it means: words per sentence, plus the percentage of words of seven or more letters.

    Unlike measures that count syllables it suits most languages with an alphabet (C.-H. Björnsson, 1968).
    """
    long_words = sum(len(word) > 6 for word in words)
    lix = len(words) / sentence_count + 100 * long_words / len(words)
    return lix, next((meaning for limit, meaning in _LIX if lix < limit), "very difficult")


def variety(words: list[str], *, resamples: int) -> float | None:
    """How many different words 100 words drawn from the text have on average; None if it has fewer than that.

    Unlike the share of different words in the whole text, it can be compared between texts of any length.
    """
    if len(words) < _SAMPLE:
        return None
    rng = random.Random(2025)
    return mean([len(set(rng.sample(words, _SAMPLE))) for _ in range(resamples)])


def frequent_words(words: list[str]) -> list[tuple[str, int]]:
    """The most frequent words that aren't mere grammar, with their counts; ties in alphabetical order."""
    counts = Counter(word for word in words if word not in _COMMON)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN]


def describe_sentences(sentences: list[str], *, resamples: int) -> dict[str, Any]:
    """How long the sentences are, in words, and the three longest."""
    lengths = [float(len(_WORD.findall(sentence))) for sentence in sentences]
    low, high = confidence(lengths, mean, resamples=resamples)
    longest = sorted(zip(lengths, sentences, strict=True), key=lambda pair: -pair[0])[:3]
    return {
        "count": len(sentences),
        "mean_words": rounded(mean(lengths)),
        "mean_words_95": [rounded(low), rounded(high)],
        "median_words": quartiles(lengths)[1],
        "longest": [{"words": int(length), "sentence": sentence[:500]} for length, sentence in longest],
    }


def require_words(text: str) -> list[str]:
    """`words_of`, but raises `FileProblem` if there are none."""
    if not (words := words_of(text)):
        raise FileProblem("The file has no words in it.")
    return words
