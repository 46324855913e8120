"""Trainings whose inputs are no plain dense tensors, made again for each test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_sequence
from torch.utils.data import DataLoader, Dataset, TensorDataset

from holter.lab.setup import Setup

ODD: dict[str, Callable[[], Setup]] = {}
NODES, FEATURES, CLASSES = 40, 12, 3


def odd(function: Callable[[], Setup]) -> Callable[[], Setup]:
    def make() -> Setup:
        torch.manual_seed(0)
        return function()

    ODD[function.__name__] = make
    return make


def of(model: nn.Module, loss: Any, train: Any, valid: Any = None) -> Setup:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    return Setup.of(model, optimizer, loss, train, valid=valid)


def classified(model: nn.Module, batch: Any) -> Tensor:
    *inputs, labels = batch
    return functional.cross_entropy(model(*inputs), labels)


# A graph, all of it in one batch: features and neighbours are sparse.


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(8, 8), nn.Linear(8, CLASSES)
        self.weight = nn.Parameter(torch.randn(FEATURES, 8) * 0.1)

    def forward(self, given: tuple[Tensor, Tensor]) -> Tensor:
        features, neighbours = given
        hidden = torch.relu(neighbours @ (features @ self.weight))
        return neighbours @ self.two(torch.relu(self.one(hidden)))


def graph() -> tuple[Tensor, Tensor, Tensor]:
    labels = torch.arange(NODES) % CLASSES
    features = (torch.rand(NODES, FEATURES) > 0.8).float()
    features[torch.arange(NODES), labels] = 1.0
    linked = (torch.rand(NODES, NODES) > 0.9) & (labels[:, None] == labels)
    linked |= torch.eye(NODES, dtype=torch.bool)
    return features, linked / linked.sum(1, keepdim=True), labels


def on_graph(features: Tensor, neighbours: Tensor, labels: Tensor) -> Setup:
    batch = {"features": features, "neighbours": neighbours, "labels": labels}

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        scores = model((batch["features"], batch["neighbours"]))
        return functional.cross_entropy(scores[:30], batch["labels"][:30])

    return of(Graph(), loss, [batch] * 30)


@odd
def sparse_coo() -> Setup:
    features, neighbours, labels = graph()
    return on_graph(features.to_sparse(), neighbours.to_sparse(), labels)


@odd
def sparse_csr() -> Setup:
    features, neighbours, labels = graph()
    return on_graph(features.to_sparse_csr(), neighbours.to_sparse_csr(), labels)


@odd
def sparse_neighbours_of_dense_features() -> Setup:
    features, neighbours, labels = graph()
    return on_graph(features, neighbours.to_sparse(), labels)


@odd
def sparse_neighbours_that_the_model_keeps() -> Setup:
    class Keeping(Graph):
        def __init__(self, neighbours: Tensor) -> None:
            super().__init__()
            self.register_buffer("neighbours", neighbours)

        def forward(self, features: Tensor) -> Tensor:
            return super().forward((features, self.neighbours))

    features, neighbours, labels = graph()
    return of(Keeping(neighbours.to_sparse_csr()), classified, [(features, labels)] * 30)


@odd
def sparse_rows_of_a_loader() -> Setup:
    x, y = table()

    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(FEATURES, CLASSES) * 0.1)

        def forward(self, rows: Tensor) -> Tensor:
            return torch.sparse.mm(rows, self.weight)

    def joined(samples: list[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        rows, labels = zip(*samples, strict=True)
        return torch.stack(rows).to_sparse(), torch.stack(labels)

    return of(Rows(), classified, DataLoader(TensorDataset(x, y), 16, collate_fn=joined))


@odd
def sparse_gradients() -> Setup:
    model = nn.Sequential(nn.EmbeddingBag(50, 8, sparse=True), nn.Linear(8, CLASSES))
    x = torch.randint(50, (256, 5))
    train = DataLoader(TensorDataset(x, x[:, 0] % CLASSES), 16, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Setup.of(model, optimizer, nn.CrossEntropyLoss(), train)


# Sequences of several lengths.


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.head = nn.GRU(4, 8), nn.Linear(8, CLASSES)

    def forward(self, sequences: PackedSequence) -> Tensor:
        return self.head(self.rnn(sequences)[1][-1])


def sequences(count: int) -> tuple[list[Tensor], Tensor]:
    labels = torch.arange(count) % CLASSES
    return [torch.randn(3 + n % 5, 4) + labels[n] for n in range(count)], labels


class Lengths(Dataset):
    def __init__(self, count: int) -> None:
        self.rows, self.labels = sequences(count)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.rows[index], self.labels[index]


def packed(samples: list[tuple[Tensor, Tensor]]) -> tuple[PackedSequence, Tensor]:
    rows, labels = zip(*samples, strict=True)
    return pack_sequence(rows, enforce_sorted=False), torch.stack(labels)


@odd
def packed_sequences() -> Setup:
    train, valid = (DataLoader(Lengths(n), 16, collate_fn=packed) for n in (240, 64))
    return of(Reader(), classified, train, valid)


@odd
def nested_tensors() -> Setup:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two = nn.Linear(4, 8), nn.Linear(8, CLASSES)

        def forward(self, rows: Tensor) -> Tensor:
            hidden = torch.relu(self.one(rows))
            return self.two(torch.nested.to_padded_tensor(hidden, 0.0).sum(1))

    rows, labels = sequences(240)
    batches = [
        (torch.nested.nested_tensor(rows[n : n + 16], layout=torch.jagged), labels[n : n + 16])
        for n in range(0, 240, 16)
    ]
    return of(Nested(), classified, batches)


# Structures.


def table(count: int = 256) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, FEATURES)
    return x, x[:, :CLASSES].argmax(1)


def plain(kind: torch.dtype | None = None) -> nn.Module:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(FEATURES, 16), nn.ReLU(), nn.Linear(16, CLASSES))

        def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
            return self.layers(x.float() if kind is None else x.to(kind))

    return Plain()


def batches(count: int = 16) -> Iterator[tuple[Tensor, Tensor]]:
    x, y = table()
    return zip(x.split(count), y.split(count), strict=True)


@odd
def nested_dictionaries() -> Setup:
    def loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
        inputs = batch["inputs"]["pixels"]["x"]
        return functional.cross_entropy(model(inputs), batch["labels"][0])

    made = [{"inputs": {"pixels": {"x": x}, "name": "a"}, "labels": [y]} for x, y in batches()]
    return of(plain(), loss, made)


class Moved:
    """As libraries of graphs make their batches: attributes, and `to`."""

    def __init__(self, **held: Any) -> None:
        self._store = dict(held)

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_store"][name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            self.__dict__[name] = value
        else:
            self._store[name] = value

    def to(self, device: Any) -> "Moved":
        return Moved(**{name: value.to(device) for name, value in self._store.items()})


@odd
def objects_that_can_be_moved() -> Setup:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = plain()

        def forward(self, batch: Moved) -> Tensor:
            return self.layer(batch.x)

    def loss(model: nn.Module, batch: Moved) -> Tensor:
        batch = batch.to("cpu")
        return functional.cross_entropy(model(batch), batch.y)

    return of(Inner(), loss, [Moved(x=x, y=y) for x, y in batches()])


@odd
def objects_with_attributes() -> Setup:
    class Sentences:
        def __init__(self, x: Tensor, y: Tensor) -> None:
            self.text, self.label, self.fields = x, y, ("text", "label")

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = plain()

        def forward(self, batch: Sentences) -> Tensor:
            return self.layer(batch.text)

    def loss(model: nn.Module, batch: Sentences) -> Tensor:
        return functional.cross_entropy(model(batch), batch.label)

    return of(Outer(), loss, [Sentences(x, y) for x, y in batches()])


@odd
def graphs_of_edges() -> Setup:
    class Edges(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = plain()

        def forward(self, batch: Moved) -> Tensor:
            source, target = batch.edge_index
            return self.layer(
                batch.x + torch.zeros_like(batch.x).index_add(0, target, batch.x[source])
            )

    def loss(model: nn.Module, batch: Moved) -> Tensor:
        return functional.cross_entropy(model(batch)[batch.mask], batch.y[batch.mask])

    features, neighbours, labels = graph()
    whole = Moved(
        x=features, edge_index=neighbours.nonzero().t(), y=labels, mask=torch.arange(NODES) < 30
    )
    return of(Edges(), loss, [whole] * 30)


@dataclass(frozen=True)
class Fields:
    x: Tensor
    y: Tensor
    note: str = "a"


class Pair(NamedTuple):
    x: Tensor
    y: Tensor


@odd
def dataclasses_of_tensors() -> Setup:
    def loss(model: nn.Module, batch: Fields) -> Tensor:
        return functional.cross_entropy(model(batch.x), batch.y)

    return of(plain(), loss, [Fields(x, y) for x, y in batches()])


@odd
def named_tuples() -> Setup:
    return of(plain(), classified, [Pair(x, y) for x, y in batches()])


@odd
def tuples_with_none() -> Setup:
    return of(plain(), classified, [(x, None, y) for x, y in batches()])


@odd
def numbers_and_words_beside() -> Setup:
    def loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
        scale = batch["scale"] * batch["share"]
        return scale * functional.cross_entropy(model(batch["x"]), batch["y"])

    made = [
        {"x": x, "y": y, "scale": torch.tensor(1.0), "share": 0.5, "names": ["a"] * 16}
        for x, y in batches()
    ]
    return of(plain(), loss, made)


# Types.


def typed(change: Callable[[Tensor], Tensor]) -> Setup:
    x, y = table()
    train = DataLoader(TensorDataset(change(x), y), 16, shuffle=True)
    return of(plain(), nn.CrossEntropyLoss(), train)


@odd
def booleans() -> Setup:
    return typed(lambda x: x > 0)


@odd
def bytes_of_pictures() -> Setup:
    return typed(lambda x: (40 * x + 128).clamp(0, 255).to(torch.uint8))


@odd
def short_integers() -> Setup:
    return typed(lambda x: (10 * x).to(torch.int32))


@odd
def complex_numbers() -> Setup:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(FEATURES, 8, dtype=torch.complex64)
            self.two = nn.Linear(8, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.two(self.one(x).abs())

    x, y = table()
    train = DataLoader(TensorDataset(torch.complex(x, x.flip(1)), y), 16, shuffle=True)
    return of(Complex(), nn.CrossEntropyLoss(), train)


@odd
def single_numbers() -> Setup:
    class Line(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = nn.Parameter(torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            return self.slope * x

    points = [(torch.tensor(0.1 * n), torch.tensor(0.2 * n)) for n in range(40)]
    return of(Line(), nn.MSELoss(), points)


@odd
def a_last_batch_of_one() -> Setup:
    x, y = table(241)
    train = DataLoader(TensorDataset(x, y), 16)
    return of(plain(), nn.CrossEntropyLoss(), train)


@odd
def an_empty_last_batch() -> Setup:
    made = [*batches(), (torch.zeros(0, FEATURES), torch.zeros(0, dtype=torch.long))]

    def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
        scores = model(batch[0])
        return functional.cross_entropy(scores, batch[1], reduction="sum") / max(len(batch[1]), 1)

    return of(plain(), loss, made)


@odd
def a_carried_state() -> Setup:
    class Carrying(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.rnn = nn.Embedding(20, 8), nn.LSTM(8, 8)
            self.head = nn.Linear(8, 20)

        def forward(
            self, tokens: Tensor, state: tuple[Tensor, Tensor]
        ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
            hidden, state = self.rnn(self.embed(tokens), state)
            return self.head(hidden), state

    model = Carrying()

    def loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
        state = tuple(each.detach() for each in batch["state"])
        scores, _ = model(batch["tokens"], state)
        return functional.cross_entropy(scores.flatten(0, 1), batch["next"].flatten())

    stream = torch.arange(2000).remainder(19).view(-1, 10)
    made = []
    state = (torch.zeros(1, 10, 8), torch.zeros(1, 10, 8))
    for start in range(0, 190, 7):
        made.append(
            {
                "tokens": stream[start : start + 7],
                "next": stream[start + 1 : start + 8],
                "state": state,
            }
        )
        with torch.no_grad():
            state = model(stream[start : start + 7], state)[1]
    return of(model, loss, made)
