import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import make_blobs

torch.set_num_threads(1)
torch.manual_seed(90)


def data():
    x, y = make_blobs(3000, n_features=10, centers=5, cluster_std=4.0, random_state=2)
    x = torch.tensor(x, dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    return x, torch.tensor(y)


def network():
    return nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))


@torch.no_grad()
def update_teacher(teacher, student, decay):
    for t, s in zip(teacher.parameters(), student.parameters()):
        t.mul_(decay).add_(s, alpha=1 - decay)


def main():
    x, y = data()
    labelled = torch.randperm(len(x))[:200]
    student = network()
    teacher = copy.deepcopy(student).requires_grad_(False)
    opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)
    for step in range(600):
        lab = labelled[torch.randint(len(labelled), (32,))]
        unl = torch.randint(len(x), (64,))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            supervised = F.cross_entropy(student(x[lab]), y[lab])
            guess = student(x[unl] + 0.1 * torch.randn(64, 10))
            with torch.no_grad():
                goal = teacher(x[unl] + 0.1 * torch.randn(64, 10))
            consistency = F.mse_loss(guess.float(), goal.float())
        loss = supervised + min(1.0, step / 200) * consistency
        opt.zero_grad()
        loss.backward()
        opt.step()
        decay = 0.95 + 0.0004 * step
        update_teacher(teacher, student, decay)
        if step % 25 == 0:
            print(f"step {step} supervised {supervised.item():.4f} consistency {consistency.item():.4f}")


if __name__ == "__main__":
    main()
