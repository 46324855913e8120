# Hand-written LSTM, one long stream cut into consecutive chunks (truncated BPTT). No shuffling: the hidden
# state is carried from chunk to chunk (detached), and reset only at the start of an epoch.
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(0)
H, LANES, CHUNK = 40, 20, 25


def stream(length, seed):
    """Bits with a delayed echo: y[t] = x[t-3] xor x[t-1]."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randint(0, 2, (LANES, length), generator=g)
    y = torch.roll(x, 3, 1) ^ torch.roll(x, 1, 1)
    y[:, :3] = 0
    return x, y


W = (torch.randn(1 + H, 4 * H) / (1 + H) ** 0.5).requires_grad_()
b = torch.zeros(4 * H)
b[H:2 * H] = 1.0
b.requires_grad_()
V = (torch.randn(H, 2) / H ** 0.5).requires_grad_()
c0 = torch.zeros(2, requires_grad=True)
params = [W, b, V, c0]
opt = torch.optim.RMSprop(params, lr=4e-3)


def run(x, h, c):
    out = []
    for t in range(x.size(1)):
        z = torch.cat([x[:, t:t + 1].float() * 2 - 1, h], 1) @ W + b
        i, f, g, o = z.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        out.append(h @ V + c0)
    return torch.stack(out, 1), h, c


x, y = stream(1000, 1)
xv, yv = stream(400, 2)
for epoch in range(12):
    h = c = torch.zeros(LANES, H)
    tot = 0.0
    for s in range(0, 1000, CHUNK):
        h, c = h.detach(), c.detach()
        logits, h, c = run(x[:, s:s + CHUNK], h, c)
        loss = F.cross_entropy(logits.flatten(0, 1), y[:, s:s + CHUNK].flatten())
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        tot += loss.item()
    with torch.no_grad():
        logits, _, _ = run(xv, torch.zeros(LANES, H), torch.zeros(LANES, H))
    acc = (logits.argmax(2) == yv)[:, 3:].float().mean().item()
    print(f"epoch {epoch}: loss {tot / 40:.4f} val acc {acc:.3f}")
print(f"final accuracy on an unseen stream {acc:.3f}")
