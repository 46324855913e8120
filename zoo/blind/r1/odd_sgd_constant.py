import numpy as np
import torch

np.random.seed(6)
torch.manual_seed(6)
X = np.random.randn(2000, 12).astype("float32")
w = np.random.randn(12)
y = ((X @ w + 0.7 * X[:, 0] * X[:, 1] + 0.8 * np.random.randn(2000)) > 0).astype("int64")
X, y = torch.from_numpy(X), torch.from_numpy(y)
model = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.Tanh(), torch.nn.Linear(32, 2))
# plain SGD: no momentum, no schedule, no weight decay
opt = torch.optim.SGD(model.parameters(), lr=0.1)
ce = torch.nn.CrossEntropyLoss()
for ep in range(14):
    p = torch.randperm(1600)
    s = 0
    for i in range(0, 1600, 32):
        opt.zero_grad()
        l = ce(model(X[p[i:i + 32]]), y[p[i:i + 32]])
        l.backward()
        opt.step()
        s += l.item()
    with torch.no_grad():
        o = model(X[1600:])
    print("ep %d train %.4f test %.4f acc %.3f" % (ep, s / 50, ce(o, y[1600:]).item(), (o.argmax(1) == y[1600:]).float().mean()))
