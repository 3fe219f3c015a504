import pytest
from tokenizers import AddedToken

from keras_bert3.tokenizers.added_tokens import check_apart, entries
from keras_bert3.tokenizers.basic_tokenization import normalizer


@pytest.mark.parametrize("given", [{}, {"special": True}, {"rstrip": True, "normalized": False}])
def test_entries_are_those_of_hugging_face(given):
    theirs = AddedToken("[E1]", **given).__getstate__()
    if "normalized" not in given:  # transformers' own defaults, which it hands to AddedToken
        theirs["normalized"] = not given.get("special", False)
    assert entries([{"content": "[E1]", **given}]) == [theirs]
    assert entries(["[E1]"]) == entries([{"content": "[E1]", "normalized": True}])


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ("[E1]", "Expected a list of added tokens"),
        ([3], "Expected text as str. Received: 3"),
        ([{"special": True}], "Expected text as str. Received: None"),
        ([{"content": "a", "strip": True}], "any of lstrip, normalized.*'strip': True"),
        ([{"content": "a", "special": 1}], "true or false.*'special': 1"),
        ([""], "Expected added tokens without whitespace. Received: ''"),
        (["a b"], "Expected added tokens without whitespace. Received: 'a b'"),
        ([" a"], "Expected added tokens without whitespace. Received: ' a'"),
        (["[MASK]"], r"special_tokens_in_text=True. Received: '\[MASK\]'"),
        ([{"content": "a", "single_word": True}], "single_word=False. Received: 'a' with True"),
    ],
)
def test_refused_entries(tokens, message):
    with pytest.raises(ValueError, match=message):
        entries(tokens)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["οδός"], "without a sigma where text is folded. Received: 'οδός'"),
        (["\u200b"], "of visible characters"),
        (["[E1]", "b", "[e1]"], r"differ after folding. Received: \[E1\], \[e1\]"),
        ([{"content": "a", "special": True}] * 2, "differ after folding. Received: a, a"),
    ],
)
def test_tokens_that_texts_cannot_tell_apart(tokens, message):
    with pytest.raises(ValueError, match=message):
        check_apart(entries(tokens), normalizer(True, True), lowercase=True)


def test_what_case_and_spelling_tell_apart():
    check_apart(entries(["οδός", "[E1]", "[e1]"]), normalizer(False, False), lowercase=False)
    exact = [{"content": content, "special": True} for content in ("<s>", "<S>")]
    check_apart(entries([*exact, "<s>"]), normalizer(True, True), lowercase=True)
