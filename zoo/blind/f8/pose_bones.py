import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(11)

PARENT = [-1, 0, 1, 2, 1, 4, 1, 6, 7]
J = len(PARENT)


def random_rotations(n, spread):
    a = torch.randn(n, J, 3) * spread
    theta = a.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    k = a / theta
    return k * theta.sin(), theta


def skeletons(n):
    rest = torch.tensor([0.0, 1.0, 0.0]).expand(n, J, 3)
    k, theta = random_rotations(n, 0.6)
    d = rest * theta.cos() + torch.cross(k, rest, dim=-1)
    d = F.normalize(d, dim=-1)
    d[:, 0] = torch.tensor([0.0, 1.0, 0.0])
    return d


def observe(dirs):
    """Project joints onto the image plane, with depth hints."""
    joints = [torch.zeros(dirs.shape[0], 3)]
    for j in range(1, J):
        joints.append(joints[PARENT[j]] + dirs[:, j])
    xyz = torch.stack(joints, 1)
    uv = xyz[..., :2] + 0.01 * torch.randn_like(xyz[..., :2])
    hint = torch.sign(xyz[..., 2:]) * 0.3
    return torch.cat([uv, hint], -1).flatten(1)


class Lifter(nn.Module):
    def __init__(self, hidden=128):
        super().__init__()
        self.inp = nn.Linear(J * 3, hidden)
        self.res = nn.ModuleList([nn.Linear(hidden, hidden) for _ in range(2)])
        self.out = nn.Linear(hidden, J * 3)

    def forward(self, x):
        h = F.relu(self.inp(x))
        for r in self.res:
            h = h + F.relu(r(h))
        return F.normalize(self.out(h).view(-1, J, 3), dim=-1)


def geodesic(pred, target):
    cos = (pred * target).sum(-1)
    cos = cos.clamp(-1.0, 1.0)
    return torch.acos(cos).mean()


def bone_smooth(pred):
    left, right = pred[:, 2], pred[:, 4]
    return 0.01 * (left - right).pow(2).mean()


model = Lifter()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
train = skeletons(4096)
feats = observe(train)

history = []
for it in range(600):
    idx = torch.randint(0, train.shape[0], (64,))
    pred = model(feats[idx])
    loss = geodesic(pred, train[idx]) + bone_smooth(pred)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    history.append(loss.item())
    if it % 40 == 0:
        recent = sum(history[-20:]) / len(history[-20:])
        print(f"it {it:4d}  loss {loss.item():.4f}  recent {recent:.4f}")
print("final", history[-1])
