import pytest
from filereport.analysis.prose import (
    describe_sentences,
    frequent_words,
    readability,
    require_words,
    sentences_of,
    variety,
    words_of,
)
from filereport.analysis.reading import FileProblem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't stop: 42 well-known cats.", ["don't", "stop", "well-known", "cats"]),
        ("Größe — Käse_brot", ["größe", "käse", "brot"]),
        ("...", []),
        ("猫が好き", ["猫が好き"]),
    ],
)
def test_words(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It cost 3.50 euros. Really.", ["It cost 3.50 euros.", "Really."]),
        ('"Eleven," he said. "Go." She went.', ['"Eleven," he said.', '"Go', "She went."]),
        ("Er kam u. a. zu spät.", ["Er kam u. a. zu spät."]),  # no sentence begins with a small letter
        ("# Water\n\nThe pump\nis broken.\n\n---\n", ["# Water", "The pump is broken."]),
    ],
)
def test_sentences(text, sentences):
    assert [found.rstrip('."') for found in sentences_of(text)] == [found.rstrip('."') for found in sentences]


@pytest.mark.parametrize(
    ("words", "sentences", "lix", "meaning"),
    [
        (["a"] * 10, 1, 10, "very easy"),
        (["a"] * 20 + ["lengthy"] * 5, 1, 45, "medium"),  # 25 words a sentence, 20 % of them long
        (["lengthy"] * 10, 1, 110, "very difficult"),
        (["length"] * 30, 1, 30, "easy"),  # six letters aren't long; 30 is the first that is not very easy
    ],
)
def test_readability(words, sentences, lix, meaning):
    assert readability(words, sentences) == (lix, meaning)


def test_frequent_words_leave_out_those_of_grammar_and_break_ties_by_alphabet():
    assert frequent_words(["the", "sea", "the", "und", "clock", "sea", "bell"]) == [
        ("sea", 2),
        ("bell", 1),
        ("clock", 1),
    ]


def test_variety_counts_different_words_in_a_hundred():
    assert variety(["same"] * 100, resamples=3) == 1
    assert variety([f"w{n}" for n in range(300)], resamples=3) == 100
    assert variety(["short"], resamples=3) is None


def test_sentences_are_described_with_the_longest_first():
    described = describe_sentences(["One two.", "One two three four.", "One two three."], resamples=50)

    assert described["count"] == 3
    assert described["mean_words"] == described["median_words"] == 3
    assert [found["words"] for found in described["longest"]] == [4, 3, 2]


def test_a_text_of_nothing_but_numbers_has_no_words():
    with pytest.raises(FileProblem, match="no words"):
        require_words("1 2 3")
