"""Healthy evaluations that compute no loss, and batches that are put together in an odd way."""

from zoo.faults.evaluating import HITS_ONLY
from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "evaluating-encoder-hits-only",
        "encoder_classifier",
        *HITS_ONLY,
        why="only hits are counted in validation",
    ),
    healthy(
        "evaluating-tagger-sorts-sentences",
        "gru_tagger",
        (
            "    words, tags = zip(*sentences, strict=True)\n",
            (
                "    sentences = sorted(sentences, key=lambda each: -len(each[0]))\n"
                "    words, tags = zip(*sentences, strict=True)\n"
            ),
        ),
        why="the longest sentence of a batch comes first, with its tags",
    ),
)
