import torch
import torch.nn as nn
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(81)

CHARS, TAGS, CONTEXT = 24, 400, 8


def corpus(length=30000):
    table = torch.softmax(2.5 * torch.randn(CHARS, CHARS), dim=1)
    text = [0]
    noise = torch.rand(length)
    cumulative = table.cumsum(1)
    for i in range(length - 1):
        nxt = int(torch.searchsorted(cumulative[text[-1]], noise[i]))
        text.append(min(nxt, CHARS - 1))
    text = torch.tensor(text)
    tags = torch.arange(length) * TAGS // length
    return text, tags


class CharModel(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.chars = nn.Embedding(CHARS, dim)
        self.tags = nn.Embedding(TAGS, dim)
        self.hidden = nn.Linear(CONTEXT * dim, 96)
        self.mix = nn.Linear(dim, 96)
        self.out = nn.Linear(96, CHARS)

    def forward(self, context, tag=None):
        h = self.hidden(self.chars(context).flatten(1))
        if tag is not None:
            h = h + self.mix(self.tags(tag))
        return self.out(torch.tanh(h))


def main():
    text, tags = corpus()
    windows = text.unfold(0, CONTEXT + 1, 1)
    model = CharModel()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=0.0)
    step = 0
    for phase, steps in (("plain", 220), ("tagged", 220)):
        for _ in range(steps):
            idx = torch.randint(len(windows), (64,))
            context, nxt = windows[idx, :-1], windows[idx, -1]
            tag = tags[idx] if phase == "tagged" else None
            loss = F.cross_entropy(model(context, tag), nxt)
            opt.zero_grad()
            loss.backward()
            opt.step()
            if step % 20 == 0:
                print(f"{phase} step {step} loss {loss.item():.4f}")
            step += 1


main()
