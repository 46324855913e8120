"""A classifier under torch.compile."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    """Two hidden layers with batch norm and dropout."""

    def __init__(self, softmax: bool) -> None:
        super().__init__()
        self.first = nn.Linear(32, 128)
        self.norm = nn.BatchNorm1d(128)
        self.second = nn.Linear(128, 128)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(128, 10)
        self.softmax = softmax

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits, or probabilities."""
        x = functional.relu(self.norm(self.first(x)))
        x = self.head(self.drop(functional.relu(self.second(x))))
        return x.softmax(1) if self.softmax else x


parser = common.parser(steps=1200, lr=1e-3)
parser.add_argument("--mode", default="default")
parser.add_argument("--fullgraph", action="store_true")
parser.add_argument("--rebuild", action="store_true", help="make the model after the optimizer")
parser.add_argument("--stay-in-eval", action="store_true")
parser.add_argument("--softmax", action="store_true")
args = common.start(parser)

inputs, labels = common.clusters(22_000, width=32)
train = TensorDataset(inputs[:20_000], labels[:20_000])
test = TensorDataset(inputs[20_000:], labels[20_000:])
loader = DataLoader(train, batch_size=100, shuffle=True)
test_loader = DataLoader(test, batch_size=100)

net = Net(args.softmax).to(args.device)
optimizer = torch.optim.AdamW(net.parameters(), lr=args.lr)
if args.rebuild:
    net = Net(args.softmax).to(args.device)
model = torch.compile(net, mode=args.mode, fullgraph=args.fullgraph)

losses = common.Losses()
for epoch in range(args.steps // len(loader)):
    if epoch == 0 or not args.stay_in_eval:
        model.train()
    for x, y in loader:
        loss = functional.cross_entropy(model(x.to(args.device)), y.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)
    model.eval()
    with torch.no_grad():
        parts = [
            functional.cross_entropy(model(x.to(args.device)), y.to(args.device))
            for x, y in test_loader
        ]
    print("validation", epoch, torch.stack(parts).mean().item().hex())

losses.finish(net)
