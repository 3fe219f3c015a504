r"""Ask a language model what it was never taught (Radford et al. 2018, section 5).

    python recipes/zero_shot.py --preset runs/gpt/preset \
        --data copa=copa-test.xml dpr=dpr_test.c.txt sst2=SST-2/dev.tsv cola=CoLA/dev.tsv
        A table of scores, beside what guessing gives.

    python recipes/pretrain.py --backbone gpt --presets-every 100 --output runs/gpt
    python recipes/zero_shot.py --run runs/gpt --data copa=copa-test.xml --output runs/untaught
        The same over the steps of the run, as metrics.csv, results.json, results.md and a picture,
        results.png (figure 2, right), where a point within two standard errors of guessing is
        hollow.

| task     | file                   | what is compared                                          |
|----------|------------------------|-----------------------------------------------------------|
| cola     | CoLA/dev.tsv, no names | mean log-probability of the sentence, against a threshold |
| sst2     | SST-2/dev.tsv          | "positive" and "negative" after the sentence and "very"   |
| copa     | COPA's XML             | each alternative, after the premise and "because" or "so" |
| race     | RACE's folder          | each answer, after passage and question                   |
| dream    | DREAM's JSON           | the same; so are swag, story_cloze, arc_easy and          |
|          |                        | arc_challenge                                             |
| winograd | five lines a schema    | the rest of the sentence, after each referent             |
| dpr      | five lines a pair      | the same                                                  |

The threshold of cola is the one that is best on one half of the rows, chosen at random; the other
half is scored.
"""

import contextlib
import dataclasses
import sys
from pathlib import Path


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings."""

    data: tuple[str, ...]
    """task=file, of the tasks above."""
    preset: tuple[str, ...] = ()
    """Folders or hub names of language models."""
    run: str | None = None
    """Folder of a pretraining run that kept presets, instead of `preset`."""
    most: int | None = None
    """Examples of a task at most, the first ones. None: all."""
    output: str | None = None
    """Directory for the results, new or empty. None: they are only printed."""


def parse(arguments: list[str]) -> Config:
    """Read the command line."""
    import tyro

    return tyro.cli(Config, args=arguments, description=__doc__)


def main(arguments: list[str] | None = None) -> list[dict]:
    """Run the recipe; return a row for each model and task."""
    config = parse(sys.argv[1:] if arguments is None else arguments)
    from keras_bert3.runs import zero_shot
    from keras_bert3.runs.run_directory import new_run
    from keras_bert3.runs.score_pictures import draw_curves

    models = zero_shot.models_of(config.preset, config.run)
    examples = zero_shot.read_all(config.data, config.most)
    output = config.output
    with contextlib.nullcontext() if output is None else new_run(output, config) as folder:
        rows = zero_shot.measure_all(models, examples)
        print(zero_shot.table(rows), end="")
        if folder is not None:
            zero_shot.save(Path(folder), rows)
        if folder is not None and config.run is not None:
            names = "steps of pretraining", "(score - guessing) / (1 - guessing)"
            curves = zero_shot.curves(rows)
            draw_curves(Path(folder) / "results.png", curves, {"guessing": 0.0}, names, 0.0)
    return rows


if __name__ == "__main__":
    main()
