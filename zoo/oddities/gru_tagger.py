"""Sound runs of the GRU tagger that look odd."""

from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "tagger-mostly-padding",
        "gru_tagger",
        (
            "int(torch.randint(4, 14, ()))",
            "int(5 + 25 * torch.rand(()) ** 8)",
        ),
        why="sentences are short but for a few, so most of each batch is padding",
    ),
    healthy(
        "tagger-unseen-words",
        "gru_tagger",
        ("nn.Embedding(WORDS, 24, padding_idx=PAD)", "nn.Embedding(3000, 24, padding_idx=PAD)"),
        why="most rows of the embedding belong to words that never occur: their gradient is zero",
    ),
    healthy(
        "tagger-loss-per-token",
        "gru_tagger",
        (
            "        loss = criterion(logits.transpose(1, 2), tags)\n        loss",
            (
                "        loss = nn.functional.cross_entropy(\n"
                "            logits.transpose(1, 2), tags, ignore_index=IGNORED, reduction='sum'\n"
                "        ) / (tags != IGNORED).sum()\n        loss"
            ),
        ),
        why="the summed loss is divided by the number of tokens: a mean by another name",
    ),
    healthy(
        "tagger-rare-tags",
        "gru_tagger",
        (
            "torch.randint(TAGS, (WORDS,))",
            "(TAGS * torch.rand(WORDS) ** 3).long()",
        ),
        why="half of the words are of one kind, and some tags are rare",
    ),
    healthy(
        "tagger-unshuffled",
        "gru_tagger",
        ("batch_size=32, shuffle=True", "batch_size=32"),
        why="the order is the same in each epoch, but random in itself",
    ),
    healthy(
        "tagger-two-tasks",
        "gru_tagger",
        (
            "        self.head = nn.Linear(48, TAGS)\n",
            "        self.head = nn.Linear(48, TAGS)\n        self.kind = nn.Linear(24, TAGS)\n",
        ),
        (
            "        loss = criterion(logits.transpose(1, 2), tags)\n        loss",
            (
                "        kinds = word_kind[words].masked_fill(words == PAD, IGNORED)\n"
                "        guesses = model.kind(model.embed(words)).transpose(1, 2)\n"
                "        loss = criterion(logits.transpose(1, 2), tags)\n"
                "        loss = loss + 0.3 * criterion(guesses, kinds)\n"
                "        loss"
            ),
        ),
        why="two losses are summed, and a head is called outside of forward",
    ),
)
