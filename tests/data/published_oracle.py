"""A plain transcription of the published pre-training data rules, on token strings.

It follows the description of google-research/bert create_pretraining_data.py step by step and
shares nothing with the package: lists of strings, no offsets, no tables.
"""


def create_instances(
    documents, vocabulary, length, duplicates, short, rate, max_predictions, whole, rng
):
    """Make all instances: (tokens, segments, positions, labels, is_random) tuples of strings."""
    documents = [[sentence for sentence in document if sentence] for document in documents]
    documents = [document for document in documents if document]
    rng.shuffle(documents)
    instances = []
    for _ in range(duplicates):
        for number in range(len(documents)):
            instances += _from_document(
                documents, number, vocabulary, length, short, rate, max_predictions, whole, rng
            )
    rng.shuffle(instances)
    return instances


def _from_document(documents, number, vocabulary, length, short, rate, max_predictions, whole, rng):
    document = documents[number]
    most = length - 3
    target = most
    if rng.random() < short:
        target = rng.randint(2, most)
    instances, chunk, chunk_length, i = [], [], 0, 0
    while i < len(document):
        chunk.append(document[i])
        chunk_length += len(document[i])
        if i == len(document) - 1 or chunk_length >= target:
            a_end = 1
            if len(chunk) >= 2:
                a_end = rng.randint(1, len(chunk) - 1)
            first = [token for sentence in chunk[:a_end] for token in sentence]
            second = []
            if len(chunk) == 1 or rng.random() < 0.5:
                is_random = True
                second = _random_second(documents, number, target - len(first), rng)
                i -= len(chunk) - a_end
            else:
                is_random = False
                second = [token for sentence in chunk[a_end:] for token in sentence]
            _truncate(first, second, most, rng)
            tokens = ["[CLS]"] + first + ["[SEP]"] + second + ["[SEP]"]
            segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
            masked = _mask(tokens, vocabulary, rate, max_predictions, whole, rng)
            instances.append((masked[0], segments, masked[1], masked[2], int(is_random)))
            chunk, chunk_length = [], 0
        i += 1
    return instances


def _random_second(documents, number, wanted, rng):
    for _ in range(10):
        other = rng.randint(0, len(documents) - 1)
        if other != number:
            break
    start = rng.randint(0, len(documents[other]) - 1)
    second = []
    for sentence in documents[other][start:]:
        second = second + sentence
        if len(second) >= wanted:
            break
    return second


def _truncate(first, second, most, rng):
    while len(first) + len(second) > most:
        longer = first if len(first) > len(second) else second
        if rng.random() < 0.5:
            del longer[0]
        else:
            longer.pop()


def _mask(tokens, vocabulary, rate, max_predictions, whole, rng):
    candidates = []
    for i, token in enumerate(tokens):
        if token in ("[CLS]", "[SEP]"):
            continue
        if whole and candidates and token.startswith("##"):
            candidates[-1].append(i)
        else:
            candidates.append([i])
    rng.shuffle(candidates)
    wanted = min(max_predictions, max(1, int(round(len(tokens) * rate))))
    output, chosen = list(tokens), []
    for group in candidates:
        if len(chosen) >= wanted:
            break
        if len(chosen) + len(group) > wanted:
            continue
        for i in group:
            if rng.random() < 0.8:
                output[i] = "[MASK]"
            elif rng.random() < 0.5:
                output[i] = tokens[i]
            else:
                output[i] = vocabulary[rng.randint(0, len(vocabulary) - 1)]
            chosen.append(i)
    chosen.sort()
    return output, chosen, [tokens[i] for i in chosen]
