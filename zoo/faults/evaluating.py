"""Mistakes in evaluations without a loss, in printed metrics, and in the pairs of a batch."""

from holter.record.findings import Level
from zoo.specimens import Edit, Specimen, fault

# The validation of the encoder counts hits, and computes no loss.
HITS_ONLY: tuple[Edit, ...] = (
    ("            total += criterion(logits, labels).item() * len(labels)\n", ""),
    (
        'valid {total / len(valid_set):.4f}"\n        f" acc',
        'valid"\n        f" acc',
    ),
)
SPLITS = "train_set, valid_set = make_split(1920), make_split(400)"


def _fault(name: str, workload: str, *edits: Edit, why: str, cause: str, by: int) -> Specimen:
    return fault(name, workload, *edits, why=why, cause=cause, level=Level.DATA, by=by, source="D")


SPECIMENS = (
    _fault(
        "evaluating-encoder-other-tokens",
        "encoder_classifier",
        *HITS_ONLY,
        (
            SPLITS,
            SPLITS + "\ntokens, labels = valid_set.tensors\n"
            "order = torch.cat([torch.zeros(1, dtype=torch.long),"
            " 1 + torch.randperm(VOCABULARY - 1)])\n"
            "valid_set = TensorDataset(order[tokens], labels)",
        ),
        why="the validation texts are encoded by a vocabulary of their own; only hits are counted",
        cause="validation-mismatch",
        by=200,
    ),
    _fault(
        "evaluating-encoder-hits-of-the-batch",
        "encoder_classifier",
        ("(logits.argmax(1) == labels)", "(logits.argmax() == labels)"),
        why="argmax over the whole batch: the printed accuracy is that of one number",
        cause="misreported-metric",
        by=200,
    ),
    _fault(
        "evaluating-tagger-sorts-words",
        "gru_tagger",
        (
            "    words, tags = zip(*sentences, strict=True)\n",
            (
                "    words, tags = zip(*sentences, strict=True)\n"
                "    words = sorted(words, key=len, reverse=True)\n"
                "    tags = sorted(tags, key=lambda each: (-len(each), int(each[0])))\n"
            ),
        ),
        why="sentences of one length get the tags of one another",
        cause="mispaired-batches",
        by=300,
    ),
)
