"""Mistakes in the stream of sequences, dictionaries and collated batches, in several workloads."""

from holter.record.findings import Level
from zoo.specimens import Edit, Specimen, fault

SENTENCES = "train_loader = DataLoader(sentences[:1920], batch_size=32, shuffle=True"
TOKENS = "train_loader = DataLoader(train_set, batch_size=48, shuffle=True"
WAVES = "train_set = TensorDataset(inputs[:1280], targets[:1280])"

STREAM = (
    "class Stream(torch.utils.data.IterableDataset):\n    def __iter__(self):\n"
    "{body}"
    "\n\ntrain_loader = DataLoader(Stream(), batch_size=32, num_workers=2"
)
UNSIZED = ("/ len(train_loader)", "/ 60")  # a stream has no length


def in_dictionaries(source: str = "self.held[index]") -> tuple[Edit, Edit, Edit]:
    """Return the edits that make batches dictionaries, each sample being `source`."""
    return (
        (
            "train_set, valid_set = make_split(1920), make_split(400)",
            (
                "class Named(torch.utils.data.Dataset):\n"
                "    def __init__(self, held):\n        self.held = held\n\n"
                "    def __len__(self):\n        return len(self.held)\n\n"
                "    def __getitem__(self, index):\n"
                f"        tokens, label = {source}\n"
                '        return {"input_ids": tokens, "labels": label}\n\n\n'
                "train_set, valid_set = Named(make_split(1920)), Named(make_split(400))"
            ),
        ),
        (
            "    for tokens, labels in train_loader:\n        opt",
            (
                "    for batch in train_loader:\n"
                '        tokens, labels = batch["input_ids"], batch["labels"]\n        opt'
            ),
        ),
        (
            "        for tokens, labels in valid_loader:\n",
            (
                "        for batch in valid_loader:\n"
                '            tokens, labels = batch["input_ids"], batch["labels"]\n'
            ),
        ),
    )


def windows(*body: str, state: str = "") -> Edit:
    """Return the edit that gives the windows of a series a `__getitem__` of their own."""
    lines = "".join(f"        {line}\n" for line in body)
    return WAVES, (
        f"class Windows(TensorDataset):\n{state}    def __getitem__(self, index):\n"
        f"        window, target = super().__getitem__(index)\n{lines}\n\n"
        "train_set = Windows(inputs[:1280].clone(), targets[:1280])"
    )


def _fault(name: str, workload: str, *edits: Edit, why: str, cause: str, by: int) -> Specimen:
    accepts = ("mismatched-validation-inputs",) if cause == "drifting-inputs" else ()
    return fault(
        name,
        workload,
        *edits,
        why=why,
        cause=cause,
        accepts=accepts,
        level=Level.DATA,
        by=by,
        source="D",
    )


SPECIMENS = (
    _fault(
        "batches-tagger-collate-repeats",
        "gru_tagger",
        (
            "    words, tags = zip(*sentences, strict=True)\n",
            "    words, tags = zip(*[sentences[0] for _ in sentences], strict=True)\n",
        ),
        why="the collate function takes the first sentence for each place of the batch",
        cause="collapsed-batch",
        by=100,
    ),
    _fault(
        "batches-tagger-few-sentences",
        "gru_tagger",
        (
            SENTENCES,
            (
                "train_sentences = [sentences[index // 96] for index in range(1920)]\n"
                "train_loader = DataLoader(train_sentences, batch_size=32, shuffle=True"
            ),
        ),
        why="the index of the sentences is divided by the number of batches",
        cause="few-distinct-samples",
        by=300,
    ),
    _fault(
        "batches-tagger-workers-repeat",
        "gru_tagger",
        (
            SENTENCES,
            STREAM.format(
                body=(
                    "        same = torch.Generator().manual_seed(3)\n"
                    "        order = torch.randperm(1920, generator=same)\n"
                    "        yield from (sentences[index] for index in order)\n"
                )
            ),
        ),
        UNSIZED,
        ("range(5)", "range(3)"),
        why="both workers serve the whole stream of sentences",
        cause="duplicated-workers",
        by=120,
    ),
    _fault(
        "batches-tagger-reseeded",
        "gru_tagger",
        ("    model.train()\n", "    model.train()\n    torch.manual_seed(11)\n"),
        why="the seed is set again before every epoch: all shuffles of the sentences are the same",
        cause="repeated-order",
        by=130,
    ),
    _fault(
        "batches-encoder-dictionaries-few",
        "encoder_classifier",
        *in_dictionaries("self.held[index - index % 96]"),
        why="one dictionary for each block of 96 is ever served",
        cause="few-distinct-samples",
        by=200,
    ),
    _fault(
        "batches-encoder-weights-of-classes",
        "encoder_classifier",
        (
            TOKENS,
            (
                "chances = 1 / train_set.tensors[1].bincount()\n"
                "sampler = torch.utils.data.WeightedRandomSampler(chances, len(train_set))\n"
                "train_loader = DataLoader(train_set, batch_size=48, sampler=sampler"
            ),
        ),
        why="the weighted sampler of sequences is given weights of classes",
        cause="misused-sampler-weights",
        by=50,
    ),
    _fault(
        "batches-encoder-dictionaries-repeat",
        "encoder_classifier",
        *in_dictionaries(),
        (
            TOKENS,
            (
                "def collate(samples):\n"
                '    labels = torch.stack([sample["labels"] for sample in samples])\n'
                '    tokens = torch.stack([samples[-1]["input_ids"] for _ in samples])\n'
                '    return {"input_ids": tokens, "labels": labels}\n\n\n'
                f"{TOKENS}, collate_fn=collate"
            ),
        ),
        why="the collate function fills a batch of dictionaries with its last sequence",
        cause="collapsed-batch",
        by=100,
    ),
    _fault(
        "batches-lstm-scaled-in-place",
        "lstm",
        windows("window *= 0.5 + 0.3 * torch.rand(())", "return window, target"),
        why="an augmentation scales the stored windows in place",
        cause="drifting-inputs",
        by=200,
    ),
    _fault(
        "batches-lstm-shared-buffer",
        "lstm",
        windows(
            "return self.buffer.copy_(window), target",
            state="    buffer = torch.empty(WINDOW, 1)\n\n",
        ),
        why="all windows of a batch are one buffer, which holds the last of them",
        cause="collapsed-batch",
        by=100,
    ),
    _fault(
        "batches-lstm-few-windows",
        "lstm",
        windows("return super().__getitem__(index // 64 * 64)"),
        why="the start of a window is rounded to the stride of another version",
        cause="few-distinct-samples",
        by=300,
    ),
)
