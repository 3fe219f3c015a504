"""Text to sentences, with the `sentencex` library (rules for many languages, no model)."""

from collections.abc import Callable


def sentence_splitter(language: str = "en") -> Callable[[str], list[str]]:
    """Return a function that splits a text into its sentences.

    Args:
        language: ISO 639-1 code; abbreviations such as "Dr." are a matter of the language.

    Returns:
        A function from a text to its sentences in order, without surrounding white space and
        without empty ones. White space inside a sentence is kept as it is.

    Raises:
        ImportError: the library is not installed; it comes with the extra `data`.

    Example:
        >>> sentence_splitter("en")("She saw Dr. Grey at 3.15 p.m. today. He slept.")
        ['She saw Dr. Grey at 3.15 p.m. today.', 'He slept.']
    """
    try:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise ImportError(
            "Splitting text into sentences needs the sentencex library: "
            "pip install 'keras-bert3[data]'"
        ) from error

    def split(text: str) -> list[str]:
        sentences = (sentence.strip() for sentence in segment(language, text))
        return [sentence for sentence in sentences if sentence]

    return split
