"""Dense (soft) mixture of experts as one batched tensor, no nn.Module and no optimizer: hand-written momentum SGD with micro-batches."""
import torch

torch.manual_seed(23)
E, F_IN, H, C = 6, 12, 12, 4
regime = torch.randn(5, 3)
maps = torch.randn(5, F_IN - 3, C)


def data(n):
    r = torch.randint(0, 5, (n,))
    body = torch.randn(n, F_IN - 3)
    x = torch.cat([2 * regime[r] + 0.3 * torch.randn(n, 3), body], 1)
    return x, torch.einsum("nf,nfc->nc", body, maps[r]).argmax(1)


params = {
    "gate": 0.1 * torch.randn(F_IN, E), "gate_b": torch.zeros(E),
    "w1": torch.randn(E, F_IN, H) * F_IN ** -0.5, "b1": torch.zeros(E, 1, H),
    "w2": torch.randn(E, H, C) * H ** -0.5,
}
for v in params.values():
    v.requires_grad_(True)
velocity = {k: torch.zeros_like(v) for k, v in params.items()}


def forward(x):
    gate = torch.softmax(x @ params["gate"] + params["gate_b"], -1)
    hid = torch.relu(torch.einsum("nf,efh->enh", x, params["w1"]) + params["b1"])
    out = torch.einsum("enh,ehc->nec", hid, params["w2"])
    return (gate.unsqueeze(-1) * out).sum(1), gate


x, y = data(4000)
xv, yv = data(1000)
lr, mu, MICRO = 0.25, 0.9, 4
for epoch in range(14):
    lr_now = lr * 0.85 ** epoch
    total = 0.0
    for big in torch.randperm(4000).split(200):
        for b in big.split(200 // MICRO):
            logits, gate = forward(x[b])
            loss = torch.nn.functional.cross_entropy(logits, y[b])
            (loss / MICRO).backward()
            total += loss.item() / 80
        with torch.no_grad():
            for k, v in params.items():
                velocity[k].mul_(mu).add_(v.grad)
                v -= lr_now * velocity[k]
                v.grad = None
    if epoch % 2 == 1:
        with torch.no_grad():
            logits, gate = forward(xv)
        print(f"epoch {epoch} loss {total:.3f} val acc {(logits.argmax(1) == yv).float().mean():.3f} mean gate {[round(g, 2) for g in gate.mean(0).tolist()]}")
