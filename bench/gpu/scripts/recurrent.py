"""A recurrent network that adds two marked numbers of a sequence."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=600, lr=3e-3)
parser.add_argument("--cell", choices=("lstm", "relu"), required=True)
parser.add_argument("--gain", type=float, default=1.0, help="of the recurrent weights")
parser.add_argument("--clip", type=float)
args = common.start(parser)

LENGTH, WIDTH = 60, 64
numbers = torch.rand(6_000, LENGTH)
targets = numbers[:, -10:].sum(1, keepdim=True)
targets = (targets - targets.mean()) / targets.std()
dataset = TensorDataset(numbers.unsqueeze(2) - 0.5, targets)
loader = DataLoader(dataset, batch_size=60, shuffle=True)


class Net(nn.Module):
    """A recurrent layer and a head on its last state."""

    def __init__(self) -> None:
        super().__init__()
        if args.cell == "lstm":
            self.cell: nn.RNNBase = nn.LSTM(1, WIDTH, batch_first=True)
        else:
            self.cell = nn.RNN(1, WIDTH, nonlinearity="relu", batch_first=True)
            nn.init.orthogonal_(self.cell.weight_hh_l0, gain=args.gain)
        self.head = nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Predict the sum."""
        states, _ = self.cell(x)
        return self.head(states[:, -1])


model = Net().to(args.device)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
losses = common.Losses()
for _ in range(args.steps // len(loader)):
    for x, y in loader:
        loss = functional.mse_loss(model(x.to(args.device)), y.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        if args.clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        optimizer.step()
        losses.add(loss)

losses.finish(model)
