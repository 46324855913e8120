"""Sparse precision matrix of returns, streaming estimate."""
import torch

torch.manual_seed(9)
D, ROWS = 6, 60

mix = torch.eye(D) + 0.3 * torch.randn(D, D)


def window(i):
    z = torch.randn(ROWS, D) @ mix
    if i == 120:
        z[7:11] *= 40
    return z - z.mean(0)


class Precision(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.raw = torch.nn.Parameter(torch.eye(d))

    def forward(self):
        return 0.5 * (self.raw + self.raw.T)


def objective(P, S):
    return (P @ S).diagonal().sum() - torch.logdet(P)


def main():
    est = Precision(D)
    opt = torch.optim.SGD(est.parameters(), lr=0.02)
    avg = None
    for i in range(260):
        z = window(i)
        S = z.T @ z / (ROWS - 1)
        P = est()
        sparse = (P - torch.diag(P.diagonal())).abs().sum()
        loss = objective(P, S) + 0.01 * sparse
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if i % 20 == 0:
            print(f"window {i:3d} objective {avg:.4f}")


main()
