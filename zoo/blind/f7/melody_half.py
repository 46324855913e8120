"""Next-note model kept entirely in half precision."""
import torch
import torch.nn as nn

NOTES = 24


def melodies(n, length, g, table):
    seq = [torch.randint(0, NOTES, (n,), generator=g)]
    for _ in range(length):
        jump = torch.rand(n, generator=g) < 0.001
        nxt = torch.where(jump, torch.randint(0, NOTES, (n,), generator=g), table[seq[-1]])
        seq.append(nxt)
    return torch.stack(seq, 1)


class NoteModel(nn.Module):
    def __init__(self, dim=32, ctx=3):
        super().__init__()
        self.emb = nn.Embedding(NOTES, dim)
        self.mix = nn.Linear(ctx * dim, 96)
        self.out = nn.Linear(96, NOTES)
        self.ctx = ctx

    def forward(self, notes):
        return self.out(torch.tanh(self.mix(self.emb(notes).flatten(1))))


def note_loss(logits, target):
    """Cross entropy from unnormalised scores."""
    score = logits.gather(1, target.unsqueeze(1)).squeeze(1)
    total = torch.exp(logits).sum(1)
    return (torch.log(total) - score).mean()


def main(steps=400, batch=48):
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    table = torch.randperm(NOTES, generator=g)
    model = NoteModel().half()
    opt = torch.optim.SGD(model.parameters(), lr=1.2, momentum=0.8)
    ramp = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 250))
    for step in range(steps):
        seq = melodies(batch, model.ctx, g, table)
        logits = model(seq[:, :-1])
        loss = note_loss(logits, seq[:, -1])
        opt.zero_grad()
        loss.backward()
        opt.step()
        ramp.step()
        if step % 25 == 0:
            acc = (logits.argmax(1) == seq[:, -1]).float().mean().item()
            print(f"step {step:4d} loss {loss.item():.4f} acc {acc:.3f} top logit {logits.max().item():.2f}")


if __name__ == "__main__":
    main()
