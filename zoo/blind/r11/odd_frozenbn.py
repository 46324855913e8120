# Transfer of a pretrained convnet to a small target set. The backbone's BatchNorm stays in eval
# mode during fine-tuning (batches of 4 are too small for batch statistics).
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)

protos = torch.randn(16, 3, 12, 12)


def make(n, classes, shift):
    y = torch.randint(0, len(classes), (n,))
    x = protos[torch.tensor(classes)][y] * 0.6 + torch.randn(n, 3, 12, 12) + shift
    return x, y


net = nn.Sequential(
    nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(24, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten())
head = nn.Linear(32 * 36, 10)

# pretraining on ten classes
x, y = make(3000, list(range(10)), 0.0)
opt = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.05, momentum=0.9)
for epoch in range(4):
    for i in torch.randperm(3000).split(64):
        loss = F.cross_entropy(head(net(x[i])), y[i])
        opt.zero_grad(); loss.backward(); opt.step()
    print(f"pretrain {epoch}: loss {loss.item():.3f}")

# target: six new classes, 30 pictures each
xt, yt = make(180, list(range(10, 16)), 0.1)
xv, yv = make(600, list(range(10, 16)), 0.1)
new_head = nn.Linear(32 * 36, 6)
for p in net[:4].parameters():
    p.requires_grad_(False)
opt = torch.optim.SGD([
    {"params": [p for p in net.parameters() if p.requires_grad], "lr": 0.001},
    {"params": new_head.parameters(), "lr": 0.01}], momentum=0.9)
net.eval()
for epoch in range(25):
    tot = 0
    for i in torch.randperm(180).split(4):
        loss = F.cross_entropy(new_head(net(xt[i])), yt[i])
        opt.zero_grad(); loss.backward(); opt.step()
        tot += loss.item() * len(i)
    with torch.no_grad():
        out = new_head(net(xv))
    if epoch % 4 == 0:
        print(f"tune {epoch}: train {tot / 180:.4f} val loss {F.cross_entropy(out, yv):.3f} acc {(out.argmax(1) == yv).float().mean():.3f}")
print(f"final accuracy on the target classes {(out.argmax(1) == yv).float().mean():.3f}")
