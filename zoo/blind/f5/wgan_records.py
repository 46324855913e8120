"""WGAN with gradient penalty for records with missing fields."""
import torch
import torch.nn as nn

torch.manual_seed(9)
torch.set_num_threads(1)

FIELDS, LATENT, N, BATCH = 12, 8, 4096, 32
CRITIC_STEPS, ITERS = 3, 260


def make_records():
    g = torch.Generator().manual_seed(23)
    a = torch.randn(4, FIELDS, generator=g)
    x = torch.tanh(torch.randn(N, 4, generator=g) @ a) + 0.05 * torch.randn(N, FIELDS, generator=g)
    observed = (torch.rand(N, FIELDS, generator=g) > 0.25).float()
    n_seen = observed.sum(1)
    observed[n_seen < 2] = 1.0
    observed[3127] = 0.0      # a form that was handed in empty
    return x * observed, observed


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(LATENT, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
                                 nn.Linear(64, FIELDS), nn.Tanh())

    def forward(self, z):
        return self.net(z)


class Critic(nn.Module):
    """sees the observed fields and which ones they are"""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * FIELDS, 96), nn.LeakyReLU(0.2),
                                 nn.Linear(96, 96), nn.LeakyReLU(0.2), nn.Linear(96, 1))

    def forward(self, x, observed):
        return self.net(torch.cat([x * observed, observed], 1)).squeeze(1)


def gradient_penalty(critic, real, fake, observed):
    t = torch.rand(len(real), 1)
    mid = (t * real + (1 - t) * fake).requires_grad_(True)
    score = critic(mid, observed)
    (g,) = torch.autograd.grad(score.sum(), mid, create_graph=True)
    length = torch.sqrt((g ** 2).sum(1))
    return ((length - 1.0) ** 2).mean()


def main():
    data, seen = make_records()
    gen, critic = Generator(), Critic()
    g_opt = torch.optim.Adam(gen.parameters(), lr=5e-4, betas=(0.5, 0.9))
    c_opt = torch.optim.Adam(critic.parameters(), lr=5e-4, betas=(0.5, 0.9))
    order = torch.randperm(N)
    cursor = 0
    for it in range(ITERS):
        for _ in range(CRITIC_STEPS):
            if cursor + BATCH > N:
                order, cursor = torch.randperm(N), 0
            rows = order[cursor:cursor + BATCH]
            cursor += BATCH
            real, observed = data[rows], seen[rows]
            fake = gen(torch.randn(BATCH, LATENT)).detach()
            wdist = critic(real, observed).mean() - critic(fake, observed).mean()
            penalty = gradient_penalty(critic, real, fake, observed)
            c_loss = -wdist + 10.0 * penalty
            c_opt.zero_grad()
            c_loss.backward()
            c_opt.step()
        fake = gen(torch.randn(BATCH, LATENT))
        g_loss = -critic(fake, observed).mean()
        g_opt.zero_grad()
        g_loss.backward()
        g_opt.step()
        if it % 10 == 0:
            print(f"iter {it} critic {c_loss.item():.4f} gen {g_loss.item():.4f} gp {penalty.item():.4f}")


if __name__ == "__main__":
    main()
