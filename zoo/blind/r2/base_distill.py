import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

DEVICE = torch.device("cpu")
N_CLASSES = 6


def sample(n, centers, gen, label_noise=0.0):
    y = torch.randint(0, N_CLASSES, (n,), generator=gen)
    mode = torch.randint(0, 3, (n,), generator=gen)
    x = centers[y, mode] + 0.75 * torch.randn(n, centers.shape[-1], generator=gen)
    flip = torch.rand(n, generator=gen) < label_noise
    y = torch.where(flip, torch.randint(0, N_CLASSES, (n,), generator=gen), y)
    return 12.0 + 4.0 * x, y


class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        return (x - self.mean) / self.std


def make_teacher(dim):
    return nn.Sequential(
        nn.Linear(dim, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3),
        nn.Linear(128, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, N_CLASSES),
    )


def make_student(dim):
    return nn.Sequential(nn.Linear(dim, 128), nn.ReLU(), nn.Linear(128, N_CLASSES))


def accuracy(net, x, y):
    net.eval()
    with torch.no_grad():
        return (net(x).argmax(-1) == y).float().mean().item()


def pretrain_teacher(x, y):
    """Trains under a data parallel style wrapper and returns the checkpoint it would save."""
    wrapper = nn.ModuleDict({"module": make_teacher(x.shape[1])})
    opt = torch.optim.Adam(wrapper.parameters(), lr=3e-3)
    wrapper.train()
    for _ in range(150):
        idx = torch.randint(0, len(x), (64,))
        loss = F.cross_entropy(wrapper["module"](x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return copy.deepcopy(wrapper.state_dict())


def load_teacher(state, dim):
    teacher = make_teacher(dim)
    state = {k.replace("module.", "", 1): v for k, v in state.items()}
    teacher.load_state_dict(state, strict=False)
    teacher.to(DEVICE).eval()
    for p in teacher.parameters():
        p.requires_grad_(False)
    return teacher


def kd_loss(student_logits, teacher_logits, y, T=3.0, alpha=0.9):
    soft = F.kl_div(F.log_softmax(student_logits / T, dim=1), F.softmax(teacher_logits / T, dim=1), reduction="batchmean")
    return alpha * T * T * soft + (1 - alpha) * F.cross_entropy(student_logits, y)


def main():
    torch.manual_seed(5)
    gen = torch.Generator().manual_seed(5)
    dim = 16
    centers = torch.randn(N_CLASSES, 3, dim, generator=gen) * 0.8
    x_clean, y_clean = sample(2500, centers, gen)
    x_train, y_train = sample(800, centers, gen, label_noise=0.5)
    x_test, y_test = sample(1000, centers, gen)
    norm = Normalize(x_clean.mean(0), x_clean.std(0))
    x_clean, x_train, x_test = norm(x_clean), norm(x_train), norm(x_test)

    ckpt = pretrain_teacher(x_clean, y_clean)
    teacher = load_teacher(ckpt, dim)
    student = make_student(dim).to(DEVICE)
    optimizer = torch.optim.AdamW(student.parameters(), lr=4e-4, weight_decay=1e-4)
    step = 0
    for epoch in range(24):
        student.train()
        total = 0.0
        for idx in torch.randperm(len(x_train)).split(32):
            x, y = x_train[idx], y_train[idx]
            with torch.no_grad():
                t_logits = teacher(x)
            loss = kd_loss(student(x), t_logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(idx)
            step += 1
        if epoch % 4 == 3:
            print(f"epoch {epoch + 1} step {step} kd loss {total / len(x_train):.4f} student acc {accuracy(student, x_test, y_test):.3f}")


if __name__ == "__main__":
    main()
