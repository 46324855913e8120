"""Group-relative policy optimisation of a tiny text policy with a keyword reward."""
import torch
import torch.nn as nn
import torch.nn.functional as F

VOCAB, LENGTH, EOS = 14, 10, 0


class Policy(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, dim)
        self.cell = nn.GRUCell(dim, dim)
        self.head = nn.Linear(dim, VOCAB)
        self.start = nn.Embedding(5, dim)

    def rollout(self, prompt, n, gen):
        h = self.start(prompt).expand(n, -1)
        tok = torch.full((n,), 1)
        alive = torch.ones(n, dtype=torch.bool)
        logp = torch.zeros(n)
        toks = []
        for _ in range(LENGTH):
            h = self.cell(self.emb(tok), h)
            lp = F.log_softmax(self.head(h), -1)
            tok = torch.multinomial(lp.exp().detach(), 1, generator=gen).squeeze(1)
            logp = logp + lp.gather(1, tok[:, None]).squeeze(1) * alive
            tok = torch.where(alive, tok, torch.zeros_like(tok))
            alive = alive & (tok != EOS)
            toks.append(tok)
        return torch.stack(toks, 1), logp, ~alive


def score(tokens, prompt):
    wanted = 2 + prompt * 2
    hits = ((tokens == wanted) | (tokens == wanted + 1)).float().sum(1)
    return hits - 0.2 * (tokens == 13).float().sum(1)


def group_loss(tokens, logp, finished, prompt):
    """Only finished essays can be scored; the group is its own baseline."""
    tokens, logp = tokens[finished], logp[finished]
    r = score(tokens, prompt)
    adv = (r - r.mean()) / (r.std() + 1e-4)
    return -(adv * logp).mean(), r.mean()


def main():
    torch.manual_seed(30)
    gen = torch.Generator().manual_seed(30)
    policy = Policy()
    with torch.no_grad():
        policy.head.bias[EOS] = 1.5
    opt = torch.optim.Adam(policy.parameters(), lr=3e-3)
    kept = []
    for step in range(400):
        losses, rewards = [], []
        for _ in range(4):
            prompt = torch.randint(0, 5, (), generator=gen)
            tokens, logp, finished = policy.rollout(prompt, 12, gen)
            if not finished.any():
                continue
            loss, r = group_loss(tokens, logp, finished, prompt)
            losses.append(loss)
            rewards.append(r)
            kept.append(finished.float().mean().item())
        if not losses:
            continue
        total = torch.stack(losses).mean()
        opt.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 1.0)
        opt.step()
        if step % 10 == 0:
            rew = torch.stack(rewards).mean().item()
            print(f"step {step:3d} loss {total.item():+.4f} reward {rew:.3f}", flush=True)
        if torch.isnan(policy.head.weight).any():
            print(f"step {step} loss {total.item()}")
            break


if __name__ == "__main__":
    main()
