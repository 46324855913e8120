"""SimSiam on two noisy views: negative cosine loss, stop-gradient on one branch, no labels in training."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)
torch.set_num_threads(1)

DIM, CLASSES = 32, 6
centres = torch.randn(CLASSES, DIM)


def make(n):
    y = torch.randint(CLASSES, (n,))
    return centres[y] + 0.9 * torch.randn(n, DIM), y


x_train, y_train = make(2000)
x_test, y_test = make(600)


def view(x):
    keep = (torch.rand_like(x) > 0.2).float()
    return x * keep + 0.3 * torch.randn_like(x)


encoder = nn.Sequential(nn.Linear(DIM, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32), nn.BatchNorm1d(32))
predictor = nn.Sequential(nn.Linear(32, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 32))
opt = torch.optim.SGD([*encoder.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9, weight_decay=1e-4)
EPOCHS = 12
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)


def neg_cos(p, z):
    # z is a fixed target: without the stop-gradient the representation collapses
    return -F.cosine_similarity(p, z.detach(), dim=-1).mean()


@torch.no_grad()
def knn_accuracy(k=15):
    encoder.eval()
    a, b = F.normalize(encoder(x_train), dim=-1), F.normalize(encoder(x_test), dim=-1)
    votes = y_train[(b @ a.t()).topk(k).indices]
    encoder.train()
    return (votes.mode(1).values == y_test).float().mean().item()


for epoch in range(EPOCHS):
    perm = torch.randperm(len(x_train))
    total, spread = 0.0, 0.0
    for i in range(0, 1920, 128):
        xb = x_train[perm[i:i + 128]]
        z1, z2 = encoder(view(xb)), encoder(view(xb))
        loss = 0.5 * (neg_cos(predictor(z1), z2) + neg_cos(predictor(z2), z1))
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
        spread += F.normalize(z1, dim=-1).std(0).mean().item()
    sched.step()
    print(f"epoch {epoch:2d} loss {total / 15:.4f} spread {spread / 15:.4f} (1/sqrt(d) = 0.1768) knn {knn_accuracy():.4f}")

print(f"final knn accuracy {knn_accuracy():.4f} chance {1 / CLASSES:.4f}")
