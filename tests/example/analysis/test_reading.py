import pytest
from filereport.analysis.reading import FileProblem, decode


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Käse\n".encode(), "Käse\n"),
        ("\ufeffKäse".encode(), "Käse"),  # as spreadsheets save it
        ("Käse".encode("utf-16"), "Käse"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
    ],
)
def test_text_in_the_encodings_that_can_be_told_apart(data, text):
    assert decode(data) == text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"one\ntwo\nK\xe4se\n", "Line 3 is not UTF-8 text (byte 0xe4). Save the file as UTF-8"),  # Latin-1
        (b"\xef\xbb\xbfone\xff", "Line 1 is not UTF-8 text (byte 0xff)"),
        (b"one\nt\0wo", "Line 2 has a zero byte, so this is not a text file."),
        (b"", "The file is empty."),
        (b" \n\t\n", "The file is empty."),
    ],
)
def test_what_is_no_text_is_refused_with_its_line(data, words):
    with pytest.raises(FileProblem) as problem:
        decode(data)
    assert words in str(problem.value)
