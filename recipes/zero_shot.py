r"""Ask a language model what it was never taught (Radford et al. 2018, section 5).

    python recipes/zero_shot.py --preset runs/pretrain-x/preset \
        --data copa=copa-test.xml dpr=dpr_test.c.txt sst2=SST-2/dev.tsv cola=CoLA/dev.tsv
        A table of scores, beside what guessing gives.

| task     | file                   | what is compared                                          |
|----------|------------------------|-----------------------------------------------------------|
| cola     | CoLA/dev.tsv, no names | mean log-probability of the sentence, against a threshold |
| sst2     | SST-2/dev.tsv          | "positive" and "negative" after the sentence and "very"   |
| copa     | COPA's XML             | each alternative, after the premise and "because" or "so" |
| dream    | DREAM's JSON           | each answer, after dialogue and question                  |
| winograd | five lines a schema    | the rest of the sentence, after each referent             |
| dpr      | five lines a pair      | the same                                                  |

The threshold of cola is the one that is best on one half of the rows, chosen at random; the other
half is scored. Several presets, such as those of one run at several steps, give several columns.
"""

import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings."""

    preset: tuple[str, ...]
    """Folders or hub names of language models."""
    data: tuple[str, ...]
    """task=file, of the tasks above."""
    most: int | None = None
    """Examples of a task at most, the first ones. None: all."""
    table: str | None = None
    """A CSV file to write the scores to as well."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> list[dict]:
    """Run the recipe; return a row for each preset and task."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    from keras_bert3.runs import zero_shot

    examples = zero_shot.read_all(config.data, config.most)
    import keras_bert3 as kb

    rows = []
    for preset in config.preset:
        task = kb.CausalLM.from_preset(preset)
        for name, read in examples.items():
            rows.append({"preset": preset, **zero_shot.measure(task, name, read)})
            print(zero_shot.line(rows[-1]), flush=True)
    if config.table is not None:
        zero_shot.write_table(config.table, rows)
    return rows


if __name__ == "__main__":
    main()
