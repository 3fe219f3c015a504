"""The published sizes, as constructor arguments: `BertBackbone(**sizes.BERT["base_uncased"])`."""


def _bert(vocabulary_size: int, num_layers: int, hidden_dim: int) -> dict[str, int]:
    """BERT's proportions: heads of 64, feed-forward of 4 H (Devlin et al. 2018, section 3)."""
    return {
        "vocabulary_size": vocabulary_size,
        "num_layers": num_layers,
        "num_heads": hidden_dim // 64,
        "hidden_dim": hidden_dim,
        "intermediate_dim": 4 * hidden_dim,
    }


BERT: dict[str, dict[str, int]] = {
    # The five with names among the 24 miniatures (Turc et al. 2019).
    "tiny": _bert(30522, 2, 128),
    "mini": _bert(30522, 4, 256),
    "small": _bert(30522, 4, 512),
    "medium": _bert(30522, 8, 512),
    # Devlin et al. 2018 and the repository's later releases; whole-word-masking models of BERT
    # large have the sizes of the plain ones.
    "base_uncased": _bert(30522, 12, 768),
    "base_cased": _bert(28996, 12, 768),
    "large_uncased": _bert(30522, 24, 1024),
    "large_cased": _bert(28996, 24, 1024),
    "base_multilingual_cased": _bert(119547, 12, 768),
    "base_multilingual_uncased": _bert(105879, 12, 768),
    "base_chinese": _bert(21128, 12, 768),
}
BERT |= {
    f"uncased_l{num_layers}_h{hidden_dim}": _bert(30522, num_layers, hidden_dim)
    for num_layers in (2, 4, 6, 8, 10, 12)
    for hidden_dim in (128, 256, 512, 768)
}

BERT_PARAMETERS: dict[str, tuple[int, int, int]] = {
    # name: (encoder, with the pooler, with the masked-LM and next-sentence heads too)
    "tiny": (4_369_408, 4_385_920, 4_433_468),
    "mini": (11_104_768, 11_170_560, 11_267_900),
    "small": (28_500_992, 28_763_648, 29_058_876),
    "medium": (41_110_528, 41_373_184, 41_668_412),
    "base_uncased": (108_891_648, 109_482_240, 110_106_428),
    "base_cased": (107_719_680, 108_310_272, 108_932_934),
    "large_uncased": (334_092_288, 335_141_888, 336_226_108),
    "large_cased": (332_529_664, 333_579_264, 334_661_958),
    "base_multilingual_cased": (177_262_848, 177_853_440, 178_566_653),
    "base_multilingual_uncased": (166_765_824, 167_356_416, 168_055_961),
    "base_chinese": (101_677_056, 102_267_648, 102_882_442),
}

GPT: dict[str, dict[str, int]] = {
    # The one size of Radford et al. 2018 (section 4.1); vocab_40000.bpe, without special tokens.
    "base": _bert(40478, 12, 768),
}
GPT_PARAMETERS: dict[str, int] = {"base": 116_534_784}


def _deberta(
    vocabulary_size: int, num_layers: int, hidden_dim: int, **arguments: int
) -> dict[str, int]:
    """BERT's proportions, in DeBERTa v1, v2 and v3 alike."""
    return {**_bert(vocabulary_size, num_layers, hidden_dim), **arguments}


# He et al. 2021 (v1; `DebertaBackbone`), microsoft/DeBERTa (v2; `DebertaV2Backbone`).
DEBERTA: dict[str, dict[str, int]] = {
    "base": _deberta(50265, 12, 768),
    "large": _deberta(50265, 24, 1024),
    "xlarge": _deberta(50265, 48, 1024),
}
DEBERTA_V2: dict[str, dict[str, int]] = {
    "v2_xlarge": _deberta(128100, 24, 1536, convolution_size=3),
    "v2_xxlarge": _deberta(128100, 48, 1536, convolution_size=3),
    # He, Gao & Chen 2021 (v3).
    "v3_xsmall": _deberta(128100, 12, 384),
    "v3_small": _deberta(128100, 6, 768),
    "v3_base": _deberta(128100, 12, 768),
    "v3_large": _deberta(128100, 24, 1024),
    "v3_base_multilingual": _deberta(251000, 12, 768),
}
DEBERTA_PARAMETERS: dict[str, tuple[int, int, int, int]] = {
    # name: (backbone, with the masked-LM head, with absolute positions too, token table alone);
    # the papers' "backbone" leaves the token table out.
    "base": (138_601_728, 139_244_121, 139_637_337, 38_603_520),
    "large": (405_163_008, 406_264_921, 406_789_209, 51_471_360),
    "xlarge": (757_804_032, 758_905_945, 759_430_233, 51_471_360),
    "v2_xlarge": (884_593_152, 887_085_156, 887_871_588, 196_761_600),
    "v2_xxlarge": (1_564_549_632, 1_567_041_636, 1_567_828_068, 196_761_600),
    "v3_xsmall": (70_682_112, 70_958_820, 71_155_428, 49_190_400),
    "v3_small": (141_304_320, 142_024_548, 142_417_764, 98_380_800),
    "v3_base": (183_831_552, 184_551_780, 184_944_996, 98_380_800),
    "v3_large": (434_012_160, 435_191_908, 435_716_196, 131_174_400),
    "v3_base_multilingual": (278_218_752, 279_061_880, 279_455_096, 192_768_000),
}
