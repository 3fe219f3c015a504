import json

import pytest

from keras_bert3.tokenizers.added_token_files import read
from keras_bert3.tokenizers.added_tokens import entries

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "hello", "[unused1]"]
EXACT = {"content": "<S>", "special": True}
TOKENS = entries(["[E1]", EXACT])
FAST, CONFIG = "tokenizer.json", "tokenizer_config.json"
ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"


def fast(tokens, first=7):
    return {"added_tokens": [{"id": first + i, **token} for i, token in enumerate(tokens)]}


def config(tokens, first=7):
    numbered = {str(first + i): {"__type": "x", **token} for i, token in enumerate(tokens)}
    return {"added_tokens_decoder": numbered}


def read_files(folder, files):
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return read(folder, VOCABULARY)


FIVE = [
    {**entries([{"content": "x", "special": True}])[0], "content": token}
    for token in VOCABULARY[:5]
]
IN_VOCABULARY = entries([{"content": "[unused1]", "special": True}])


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, []),
        ({FAST: {}, CONFIG: {"do_lower_case": True}, SPECIAL: {"mask_token": "[MASK]"}}, []),
        ({CONFIG: {"bos_token": None, "use_auth_token": "x", "extra_special_tokens": None}}, []),
        ({CONFIG: {"pad_token": "", "additional_special_tokens": [None]}}, []),
        ({FAST: fast(FIVE, 0)}, []),
        ({FAST: fast(TOKENS)}, TOKENS),
        ({CONFIG: config(TOKENS[::-1])}, TOKENS[::-1]),
        ({ADDED: {"<S>": 8, "[E1]": 7}}, entries(["[E1]", "<S>"])),
        ({FAST: fast(TOKENS), CONFIG: config(TOKENS), ADDED: {"<S>": 8, "[E1]": 7}}, TOKENS),
        ({FAST: fast(TOKENS[:1]), ADDED: {"b": 8}}, [*TOKENS[:1], *entries(["b"])]),
        ({FAST: fast(TOKENS), CONFIG: {"extra_special_tokens": ["<S>"]}}, TOKENS),
        ({CONFIG: config(IN_VOCABULARY, 6)}, IN_VOCABULARY),
        ({SPECIAL: {"additional_special_tokens": ["[unused1]"]}}, IN_VOCABULARY),
        ({CONFIG: {"extra_special_tokens": {"a_token": "[unused1]"}}}, IN_VOCABULARY),
        ({SPECIAL: {"bos_token": {"content": "[unused1]", "lstrip": False}}}, IN_VOCABULARY),
    ],
)
def test_every_layout(tmp_path, files, expected):
    assert read_files(tmp_path, files) == expected


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({FAST: fast(TOKENS, 8)}, r"id 7 for the added token '\[E1\]' in .*tokenizer.json.*: 8"),
        ({CONFIG: config(TOKENS, 6)}, "id 7 for .*tokenizer_config.json.*Received: 6"),
        ({ADDED: {"[E1]": 7, "b": 9}}, "id 8 for the added token 'b' in .*added_tokens.json.*: 9"),
        ({ADDED: {"hello": 7}}, "id 5 for the added token 'hello'.*Received: 7"),
        ({ADDED: {"[MASK]": 7}}, r"id 4 for the added token '\[MASK\]'.*Received: 7"),
        (
            {FAST: fast(TOKENS), ADDED: {"[E1]": 8}},
            "one id for the .*tokenizer.json' and '.*added_tokens.json'. Received: 7 and 8",
        ),
        ({FAST: fast(TOKENS), ADDED: {"b": 7}}, "id 8 for the added token 'b'.*Received: 7"),
        ({SPECIAL: {"additional_special_tokens": ["<X>"]}}, "an id .*'<X>' of '.*special_tokens_m"),
        ({CONFIG: {"eos_token": {"content": "<X>"}}}, "an id .*'<X>' of '.*tokenizer_config.json"),
        ({CONFIG: {"mask_token": {"lstrip": True}}}, "special tokens as text in '.*config.json'"),
        ({SPECIAL: {"additional_special_tokens": "<X>"}}, "an id .*'<X>' of '.*special_tokens_m"),
        ({SPECIAL: {"additional_special_tokens": 5}}, "special tokens as text .*Received: 5"),
        (
            {FAST: fast([{**TOKENS[0], "single_word": True}])},
            "single_word=False.*with True, in '.*tokenizer.json'",
        ),
        ({ADDED: {"new york": 7}}, "without whitespace.*, in '.*added_tokens.json'"),
        ({FAST: {"added_tokens": ["[E1]"]}}, "ids and tokens in '.*tokenizer.json'"),
        ({FAST: {"added_tokens": [{"id": 7}]}}, "ids and tokens in '.*tokenizer.json'"),
        ({CONFIG: {"added_tokens_decoder": {"x": TOKENS[0]}}}, "ids and tokens in .*'x'"),
        ({SPECIAL: ["[E1]"]}, "a JSON object in '.*special_tokens_map.json'"),
        ({ADDED: "{"}, "a JSON file at '.*added_tokens.json'"),
    ],
)
def test_what_cannot_be_added_is_refused_by_the_name_of_its_file(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        read_files(tmp_path, files)
