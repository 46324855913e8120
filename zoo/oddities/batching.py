"""Healthy streams of sequences, dictionaries and collated batches that look odd."""

from zoo.faults.batching import SENTENCES, STREAM, TOKENS, UNSIZED, in_dictionaries, windows
from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "batches-tagger-by-length",
        "gru_tagger",
        (
            SENTENCES,
            (
                "class ByLength(torch.utils.data.Sampler):\n"
                "    def __iter__(self):\n"
                "        lengths = torch.tensor([len(words) for words, _ in sentences[:1920]])\n"
                "        order = (lengths + torch.rand(1920)).argsort()\n"
                "        batches = [batch.tolist() for batch in order.split(32)]\n"
                "        return iter([batches[n] for n in torch.randperm(60).tolist()])\n\n"
                "    def __len__(self):\n"
                "        return 60\n\n\n"
                "train_loader = DataLoader(sentences[:1920], batch_sampler=ByLength()"
            ),
        ),
        why="sentences of one length share a batch, to save padding; batches are shuffled",
    ),
    healthy(
        "batches-tagger-workers-share",
        "gru_tagger",
        (
            SENTENCES,
            STREAM.format(
                body=(
                    "        worker = torch.utils.data.get_worker_info().id\n"
                    "        order = torch.randperm(960) * 2 + worker\n"
                    "        yield from (sentences[index] for index in order)\n"
                )
            ),
        ),
        UNSIZED,
        why="each of two workers serves its own half of the sentences",
    ),
    healthy(
        "batches-encoder-dictionaries",
        "encoder_classifier",
        *in_dictionaries(),
        why="batches are dictionaries",
    ),
    healthy(
        "batches-encoder-masked-tokens",
        "encoder_classifier",
        *in_dictionaries(
            "self.held[index]\n"
            "        if len(self.held) > 400:  # in training\n"
            "            other = torch.rand(LENGTH) < 0.1\n"
            "            tokens = torch.where(other, tokens.clamp(max=9), tokens)"
        ),
        why="a tenth of the tokens is replaced at every visit in training",
    ),
    healthy(
        "batches-encoder-weighted-sampler",
        "encoder_classifier",
        (
            TOKENS,
            (
                "labels = train_set.tensors[1]\n"
                "chances = (1 / labels.bincount())[labels]\n"
                "sampler = torch.utils.data.WeightedRandomSampler(chances, len(train_set))\n"
                "train_loader = DataLoader(train_set, batch_size=48, sampler=sampler"
            ),
        ),
        why="classes are balanced by weights of samples; a pass repeats some",
    ),
    healthy(
        "batches-lstm-jittered-windows",
        "lstm",
        windows("return window + 0.1 * torch.randn(WINDOW, 1), target"),
        why="windows get other noise at every visit",
    ),
    healthy(
        "batches-lstm-rounded-sensor",
        "lstm",
        (
            "inputs, targets = series[:, :WINDOW, None], series[:, WINDOW:]\n",
            (
                "inputs, targets = series[:, :WINDOW, None], series[:, WINDOW:]\n"
                "inputs = inputs.round(decimals=1)\n"
            ),
        ),
        why="a sensor rounds to one decimal: many windows share values",
    ),
)
