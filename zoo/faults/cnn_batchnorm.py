"""Mistakes made in the CNN with batch norm."""

from holter.record.findings import Level
from zoo.specimens import fault

SPECIMENS = (
    fault(
        "cnn-eval-mode-after-validation",
        "cnn_batchnorm",
        ("    model.train()\n", ""),
        why="validation leaves the model in eval mode, and nothing calls train() again",
        cause="training-in-eval-mode",
        level=Level.PROCEDURE,
        by=100,
        source="T10",
    ),
    fault(
        "cnn-validation-in-train-mode",
        "cnn_batchnorm",
        ("    model.eval()\n", ""),
        why="validation runs in train mode: batch norm uses and learns validation statistics",
        cause="validation-in-train-mode",
        level=Level.PROCEDURE,
        by=100,
        source="T11",
    ),
    fault(
        "cnn-validation-with-gradients",
        "cnn_batchnorm",
        (
            (
                "    with torch.no_grad():\n"
                "        for images, labels in valid_loader:\n"
                "            logits = model(images)\n"
                "            valid += criterion(logits, labels).item() * len(labels)\n"
                "            correct +="
            ),
            (
                "    for images, labels in valid_loader:\n"
                "        logits = model(images)\n"
                "        valid += criterion(logits, labels).item() * len(labels)\n"
                "        correct +="
            ),
        ),
        why="validation builds a graph that nobody uses",
        cause="validation-with-gradients",
        level=Level.PROCEDURE,
        by=100,
        source="Y04",
    ),
    fault(
        "cnn-validation-not-normalised",
        "cnn_batchnorm",
        ("valid_images = (valid_pixels - mean) / std", "valid_images = valid_pixels / 255"),
        why="validation images are scaled in another way than training images",
        cause="mismatched-validation-inputs",
        level=Level.DATA,
        by=100,
        source="D11",
    ),
    fault(
        "cnn-batches-of-two",
        "cnn_batchnorm",
        ("batch_size=64", "batch_size=2"),
        ("EPOCHS = 8, 12, 10", "EPOCHS = 8, 12, 1"),
        why="batch norm takes its statistics from two images",
        cause="tiny-batch-norm",
        level=Level.ARCHITECTURE,
        by=200,
        source="A21",
    ),
    fault(
        "cnn-sorted-by-class",
        "cnn_batchnorm",
        (
            "train_set = TensorDataset(train_images, train_labels)",
            (
                "order = train_labels.argsort()\n"
                "train_set = TensorDataset(train_images[order], train_labels[order])"
            ),
        ),
        ("shuffle=True, drop_last=True", "drop_last=True"),
        why="images come class by class, as they lie in their folders",
        cause="sorted-batches",
        level=Level.DATA,
        by=100,
        source="D02",
    ),
    fault(
        "cnn-backward-twice",
        "cnn_batchnorm",
        (
            "        loss.backward()\n",
            "        loss.backward(retain_graph=True)\n        loss.backward()\n",
        ),
        why="backward is called twice on each loss, so that every gradient counts double",
        cause="repeated-backward",
        level=Level.PROCEDURE,
        by=50,
    ),
    fault(
        "cnn-new-optimizer-each-step",
        "cnn_batchnorm",
        (
            "        optimizer.zero_grad()\n",
            (
                "        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)\n"
                "        optimizer.zero_grad()\n"
            ),
        ),
        why="Adam is re-created in the loop: it never remembers a gradient",
        cause="reset-optimizer-state",
        level=Level.PROCEDURE,
        by=50,
        source="T31",
    ),
    fault(
        "cnn-lr-too-high",
        "cnn_batchnorm",
        ("lr=0.05, momentum", "lr=20.0, momentum"),
        why="the learning rate is hundreds of times too high",
        cause="huge-updates",
        level=Level.HYPERPARAMETER,
        by=50,
        source="H01",
    ),
    fault(
        "cnn-weight-decay",
        "cnn_batchnorm",
        ("weight_decay=5e-4", "weight_decay=0.5"),
        why="a weight decay a thousand times too strong pulls all weights to zero",
        cause="collapsed-weights",
        level=Level.HYPERPARAMETER,
        by=240,
        source="H04",
    ),
    fault(
        "cnn-clipped-to-nothing",
        "cnn_batchnorm",
        (
            "        optimizer.step()\n",
            (
                "        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)\n"
                "        optimizer.step()\n"
            ),
        ),
        why="gradients are clipped to a norm of 0.001, thousands of times below their own",
        cause="constant-clipping",
        level=Level.HYPERPARAMETER,
        by=150,
        source="H06",
    ),
    fault(
        "cnn-summed-loss",
        "cnn_batchnorm",
        ("nn.CrossEntropyLoss()", 'nn.CrossEntropyLoss(reduction="sum")'),
        why="the loss is summed over the batch with a learning rate for its mean",
        cause="summed-loss",
        level=Level.PROCEDURE,
        by=100,
        source="T20",
    ),
    fault(
        "cnn-milestones-in-batches",
        "cnn_batchnorm",
        ("CosineAnnealingLR(optimizer, T_max=EPOCHS)", "MultiStepLR(optimizer, [5, 8])"),
        ("    scheduler.step()\n\n", "\n"),
        ("        optimizer.step()\n", "        optimizer.step()\n        scheduler.step()\n"),
        why="milestones in epochs are counted in batches: the rate is cut a hundredfold at once",
        cause="rushed-schedule",
        level=Level.PROCEDURE,
        by=100,
        source="T12",
    ),
    fault(
        "cnn-warm-up-per-epoch",
        "cnn_batchnorm",
        (
            "CosineAnnealingLR(optimizer, T_max=EPOCHS)",
            "LinearLR(optimizer, start_factor=1e-3, total_iters=200)",
        ),
        why="a warm-up over 200 batches is stepped once an epoch: it never gets anywhere",
        cause="stalled-schedule",
        level=Level.PROCEDURE,
        by=240,
        source="T13",
    ),
    fault(
        "cnn-classes-in-another-order",
        "cnn_batchnorm",
        (
            "valid_set = TensorDataset(valid_images, valid_labels)",
            "valid_set = TensorDataset(valid_images, (valid_labels + 1) % CLASSES)",
        ),
        why="the classes of the validation set are numbered from another list",
        cause="validation-mismatch",
        level=Level.DATA,
        by=120,
        source="D01",
    ),
    fault(
        "cnn-shuffled-labels",
        "cnn_batchnorm",
        (
            "train_set = TensorDataset(train_images, train_labels)",
            (
                "train_labels = train_labels[torch.randperm(len(train_labels))]\n"
                "valid_labels = valid_labels[torch.randperm(len(valid_labels))]\n"
                "train_set = TensorDataset(train_images, train_labels)"
            ),
        ),
        ("lr=0.05, momentum=0.9", "lr=0.01, momentum=0.5"),
        ("CLASSES, SIZE, EPOCHS = 8, 12, 10", "CLASSES, SIZE, EPOCHS = 8, 12, 20"),
        why="labels were shuffled apart from their images; a few are memorised",
        cause="loss-at-constant-predictor",
        accepts=("independent-labels", "unrelated-labels", "validation-mismatch"),
        level=Level.DATA,
        by=300,
        source="D01",
    ),
)
