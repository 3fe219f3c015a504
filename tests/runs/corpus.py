"""A corpus with something to learn, for the tests of runs and recipes."""

import random

SUBJECTS = ["the cat", "the dog", "a bird", "my friend", "the old king"]
VERBS = ["sees", "likes", "follows", "finds"]
OBJECTS = ["the red house", "a green tree", "the deep river", "some bread"]


def write(path, documents=12, sentences=12):
    """Write one sentence a line, a blank line between documents."""
    rng = random.Random(3)
    parts = SUBJECTS, VERBS, OBJECTS

    def sentence():
        return " ".join(rng.choice(part) for part in parts) + "."

    lines = [[sentence() for _ in range(sentences)] for _ in range(documents)]
    path.write_text("\n\n".join("\n".join(document) for document in lines) + "\n")
    return path
