"""Fine-tuning: first only a new head, later the whole backbone."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(92)
torch.set_num_threads(1)

DIM, CLASSES, BATCH = 40, 8, 48
PRETRAIN, HEAD_ONLY, JOINT = 150, 150, 200


def make_task(seed, classes):
    g = torch.Generator().manual_seed(seed)
    proto = torch.randn(classes, 3, DIM, generator=g)
    return proto


def draw(proto):
    y = torch.randint(0, len(proto), (BATCH,))
    mode = torch.randint(0, proto.shape[1], (BATCH,))
    return proto[y, mode] + 0.9 * torch.randn(BATCH, DIM), y


class Backbone(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.l1, self.l2, self.l3 = nn.Linear(DIM, width), nn.Linear(width, width), nn.Linear(width, width)
        self.n = nn.Identity()

    def forward(self, x):
        h = F.relu(self.l1(x))
        h = h + F.relu(self.l2(h))
        return self.n(h + F.relu(self.l3(h)))


def train(step0, n, backbone, head, opt, proto, tag):
    for k in range(n):
        step = step0 + k
        x, y = draw(proto)
        loss = F.cross_entropy(head(backbone(x)), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 15 == 0:
            print(f"{tag} step {step} loss {loss.item():.4f}")
    return step0 + n


def main():
    backbone = Backbone()
    old_head = nn.Linear(96, 12)
    params = list(backbone.parameters()) + list(old_head.parameters())
    step = train(0, PRETRAIN, backbone, old_head,
                 torch.optim.SGD(params, lr=0.02, momentum=0.9), make_task(1, 12), "pretrain")

    for p in backbone.parameters():
        p.requires_grad_(False)
    head = nn.Linear(96, CLASSES)
    task = make_task(2, CLASSES)
    opt = torch.optim.SGD(head.parameters(), lr=0.02, momentum=0.9)
    step = train(step, HEAD_ONLY, backbone, head, opt, task, "head")

    for p in backbone.parameters():
        p.requires_grad_(True)
    opt.add_param_group({"params": list(backbone.parameters()), "lr": 2.0})
    step = train(step, JOINT, backbone, head, opt, task, "joint")
    with torch.no_grad():
        x, y = draw(task)
        print("accuracy", (head(backbone(x)).argmax(1) == y).float().mean().item())


if __name__ == "__main__":
    main()
