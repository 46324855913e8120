"""Reversed neighbour sums on digit strings, with a curriculum over the length.

The strings become longer at fixed epochs, so the training loss goes up at every
change of stage and falls again. Validation always has the final length.
"""
import torch
import torch.nn as nn
import torch.nn.functional as F

STAGES = {1: 3, 4: 5, 7: 8, 10: 12}          # from this epoch on: strings up to this length
FINAL, STEPS, BATCH, PAD = 12, 50, 64, 10


def sample(n, longest, generator, exact=False):
    """Answer: the string reversed, every digit plus the one before it (mod 10)."""
    x = torch.randint(0, 10, (n, longest), generator=generator)
    lengths = torch.full((n,), longest) if exact else torch.randint(2, longest + 1, (n,), generator=generator)
    position = torch.arange(longest)[None]
    inside = position < lengths[:, None]
    source = (lengths[:, None] - 1 - position).clamp(min=0)
    y = (x.gather(1, source) + x.gather(1, (source - 1).clamp(min=0))) % 10
    return x.masked_fill(~inside, PAD), y.masked_fill(~inside, -100)


class Attender(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.digit = nn.Embedding(11, width, padding_idx=PAD)
        self.forwards = nn.Embedding(FINAL, width)
        self.backwards = nn.Embedding(FINAL + 1, width)       # distance to the end of the string
        layer = nn.TransformerEncoderLayer(width, heads, 128, dropout=0.0, batch_first=True, norm_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        padding = x == PAD
        lengths = (~padding).sum(1, keepdim=True)
        position = torch.arange(x.shape[1])[None].expand_as(x)
        from_end = (lengths - 1 - position).clamp(min=-1) + 1
        h = self.digit(x) + self.forwards(position) + self.backwards(from_end)
        return self.out(self.body(h, src_key_padding_mask=padding))


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
        hit = (logits.argmax(2) == y) | (y == -100)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten(), ignore_index=-100).item()
    return loss, hit.all(1).float().mean().item()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(2)
    draw = torch.Generator().manual_seed(5)
    val = sample(500, FINAL, torch.Generator().manual_seed(100), exact=True)
    test = sample(1000, FINAL, torch.Generator().manual_seed(200), exact=True)
    model = Attender()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    longest = 0
    for epoch in range(1, 16):
        if epoch in STAGES:
            longest = STAGES[epoch]
            print(f"-- strings of 2 to {longest} digits from here on")
        model.train()
        total = 0.0
        for _ in range(STEPS):
            x, y = sample(BATCH, longest, draw)
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten(), ignore_index=-100)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        val_loss, exact = score(model, *val)
        print(f"epoch {epoch:2d} train loss {total / STEPS:.4f} val loss (12 digits) {val_loss:.4f} exact {exact:.3f}")
    loss, exact = score(model, *test)
    print(f"test loss {loss:.4f} exact {exact:.3f}")


if __name__ == "__main__":
    main()
