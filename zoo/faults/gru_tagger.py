"""Mistakes made in the GRU tagger."""

from holter.record.findings import Level
from zoo.specimens import fault

UNLABELLED = "        tags[words > 1] = IGNORED  # only one word is annotated so far\n"

SPECIMENS = (
    fault(
        "tagger-softmax",
        "gru_tagger",
        (
            "return self.head(self.dropout(states))",
            "return self.head(self.dropout(states)).softmax(2)",
        ),
        why="the tagger ends in a softmax, and cross-entropy applies another",
        cause="doubled-softmax",
        level=Level.ARCHITECTURE,
        by=50,
        source="A01",
    ),
    fault(
        "tagger-unlabelled-batches",
        "gru_tagger",
        (
            "        logits = model(words, lengths)\n        loss",
            f"{UNLABELLED}        logits = model(words, lengths)\n        loss",
        ),
        ("batch_size=32", "batch_size=16"),
        why="in some batches every tag is ignored: their loss, a mean over nothing, is NaN",
        cause="empty-targets",
        level=Level.DATA,
        by=120,
        source="N13",
    ),
    fault(
        "tagger-empty-mean",
        "gru_tagger",
        (
            "        loss = criterion(logits.transpose(1, 2), tags)\n        loss",
            (
                "        losses = nn.functional.cross_entropy("
                "logits.transpose(1, 2), tags, reduction='none')\n"
                "        kept = words == 1  # only one word is annotated so far\n"
                "        loss = (losses * kept).sum() / kept.sum()\n        loss"
            ),
        ),
        ("batch_size=32", "batch_size=16"),
        why="a masked mean divides by the number of kept tags, which is 0 in some batches",
        cause="singular-operations",
        accepts=("nonfinite-loss", "nonfinite-gradient", "empty-targets"),
        level=Level.NUMERICS,
        by=80,
        source="N13",
    ),
    fault(
        "tagger-shuffled-tags",
        "gru_tagger",
        (
            "train_loader = DataLoader(sentences[:1920]",
            (
                "order = torch.randperm(1920).tolist()\n"
                "mixed = [(sentences[i][0], sentences[j][1].repeat(4)[: len(sentences[i][0])])\n"
                "         for i, j in enumerate(order)]\n"
                "train_loader = DataLoader(mixed"
            ),
        ),
        why="sentences and tags were shuffled apart from each other",
        cause="loss-at-constant-predictor",
        accepts=("unrelated-labels", "validation-mismatch"),
        level=Level.DATA,
        by=200,
        source="D01",
    ),
    fault(
        "tagger-eval-for-good",
        "gru_tagger",
        ("for epoch in range(5):\n    model.train()\n", "model.train()\nfor epoch in range(5):\n"),
        ("nn.Dropout(0.1)", "nn.Dropout(0.4)"),
        why="train() is called once, before the first validation switches to eval()",
        cause="training-in-eval-mode",
        level=Level.PROCEDURE,
        by=120,
        source="T10",
    ),
    fault(
        "tagger-validation-in-train-mode",
        "gru_tagger",
        ("    model.eval()\n", ""),
        ("nn.Dropout(0.1)", "nn.Dropout(0.5)"),
        why="validation runs with dropout on",
        cause="validation-in-train-mode",
        level=Level.PROCEDURE,
        by=120,
        source="T11",
    ),
    fault(
        "tagger-validation-with-gradients",
        "gru_tagger",
        (
            "    with torch.no_grad():\n        for words, lengths, tags in valid_loader:\n",
            "    if True:\n        for words, lengths, tags in valid_loader:\n",
        ),
        (
            "tags).item() * lengths.sum().item()",
            "tags) * lengths.sum().item()",
        ),
        why="validation builds a graph, and the sum of losses keeps it alive",
        cause="validation-with-gradients",
        level=Level.PROCEDURE,
        by=120,
        source="Y04",
    ),
    fault(
        "tagger-forgotten-rnn",
        "gru_tagger",
        (
            "torch.optim.Adam(model.parameters(), lr=5e-3)",
            "torch.optim.Adam([*model.embed.parameters(), *model.head.parameters()], lr=5e-3)",
        ),
        why="the recurrent layer was forgotten in the optimizer's list",
        cause="parameters-outside-optimizer",
        level=Level.PROCEDURE,
        by=50,
        source="T07",
    ),
    fault(
        "tagger-detached-states",
        "gru_tagger",
        (
            "return self.head(self.dropout(states))",
            "return self.head(self.dropout(states.detach()))",
        ),
        why="the states are detached, so that nothing below the head learns",
        cause="unreached-parameters",
        level=Level.ARCHITECTURE,
        by=50,
        source="A10",
    ),
    fault(
        "tagger-no-zero-grad",
        "gru_tagger",
        ("        optimizer.zero_grad()\n", ""),
        why="gradients are never cleared",
        cause="uncleared-gradients",
        level=Level.PROCEDURE,
        by=50,
        source="T01",
    ),
    fault(
        "tagger-zero-grad-before-step",
        "gru_tagger",
        ("        optimizer.zero_grad()\n", ""),
        (
            "        loss.backward()\n",
            "        loss.backward()\n        optimizer.zero_grad()\n",
        ),
        why="gradients are cleared between backward and step",
        cause="step-without-backward",
        accepts=("all-zero-gradients", "motionless-weights"),
        level=Level.PROCEDURE,
        by=50,
        source="T02",
    ),
    fault(
        "tagger-dropout",
        "gru_tagger",
        ("nn.Dropout(0.1)", "nn.Dropout(0.95)"),
        why="dropout removes 95 % of the states",
        cause="excessive-dropout",
        accepts=("validation-better-than-training", "underfitting"),
        level=Level.HYPERPARAMETER,
        by=250,
        source="H05",
    ),
    fault(
        "tagger-few-sentences",
        "gru_tagger",
        ("sentences[:1920]", "sentences[:96]"),
        ("< 0.05", "< 0.15"),
        ("for epoch in range(5)", "for epoch in range(60)"),
        why="a hundred sentences are memorised, noise included",
        cause="overfitting",
        level=Level.DATA,
        by=180,
        source="H09",
    ),
    fault(
        "tagger-step-before-backward",
        "gru_tagger",
        (
            "    for words, lengths, tags in train_loader:\n        optimizer.zero_grad()\n",
            (
                "    for words, lengths, tags in train_loader:\n        optimizer.zero_grad()\n"
                "        optimizer.step()\n"
            ),
        ),
        ("        loss.backward()\n        optimizer.step()\n", "        loss.backward()\n"),
        why="the step stands before the backward, right after the gradients were cleared",
        cause="step-without-backward",
        accepts=("all-zero-gradients", "motionless-weights"),
        level=Level.PROCEDURE,
        by=50,
        source="T02",
    ),
    fault(
        "tagger-high-learning-rate",
        "gru_tagger",
        ("lr=5e-3", "lr=0.5"),
        why="the learning rate is a hundred times too high",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=60,
        source="H01",
    ),
)
