"""A convolutional network in channels_last, under bfloat16 autocast."""

import common
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=400, lr=2e-3)
parser.add_argument("--bias", type=float, help="start value of the last convolution's bias")
parser.add_argument("--stay-in-eval", action="store_true")
args = common.start(parser)

CLASSES = 8
patterns = torch.randn(CLASSES, 3, 8, 8)
labels = torch.randint(CLASSES, (4_400,))
images = 0.7 * patterns[labels] + torch.randn(4_400, 3, 8, 8)
train = TensorDataset(images[:4_000], labels[:4_000])
test_images, test_labels = images[4_000:].to(args.device), labels[4_000:].to(args.device)
loader = DataLoader(train, batch_size=80, shuffle=True)


class Net(nn.Module):
    """Three convolutions and a linear head."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(32)
        self.second = nn.Conv2d(32, 64, 3, padding=1, stride=2)
        self.third = nn.Conv2d(64, 64, 3, padding=1, stride=2)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(64 * 4, CLASSES)

    def forward(self, x):
        """Return the logits."""
        x = functional.relu(self.norm(self.first(x)))
        x = functional.relu(self.third(functional.relu(self.second(x))))
        return self.head(self.drop(x.flatten(1)))


model = Net().to(args.device, memory_format=torch.channels_last)
if args.bias is not None:
    nn.init.constant_(model.third.bias, args.bias)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)

losses = common.Losses()
for epoch in range(args.steps // len(loader)):
    if epoch == 0 or not args.stay_in_eval:
        model.train()
    for x, y in loader:
        pixels = x.to(args.device, memory_format=torch.channels_last)
        with torch.autocast(args.device, torch.bfloat16):
            loss = functional.cross_entropy(model(pixels), y.to(args.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.add(loss)
    model.eval()
    with torch.no_grad(), torch.autocast(args.device, torch.bfloat16):
        validation = functional.cross_entropy(model(test_images), test_labels)
    print("validation", epoch, validation.item().hex())

losses.finish(model)
