"""How a script begins, and ordinary training loops with the variables of their batches."""

HEAD = """\
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(192, 6), torch.randint(3, (192,))
train_loader = DataLoader(TensorDataset(X[:128], Y[:128]), batch_size=16, shuffle=True)
valid_loader = DataLoader(TensorDataset(X[128:], Y[128:]), batch_size=32)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
"""
HEAD_LINES = HEAD.count("\n")

FORMS: dict[str, tuple[set[str], str]] = {}


def form(name: str, keys: str, source: str) -> None:
    FORMS[name] = (set(keys.split(";")) if keys else set(), source)


form(
    "module level",
    "x;y",
    """
for epoch in range(9):
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
""",
)
form(
    "enumerate in main, with totals and prints",
    "inputs;labels",
    """
def main():
    criterion = nn.CrossEntropyLoss()
    running = 0.0
    for i, batch in enumerate(train_loader):
        inputs, labels = batch
        inputs, labels = inputs.to("cpu"), labels.to("cpu")
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
        if i % 2 == 1:
            print(i, running)


if __name__ == "__main__":
    main()
""",
)
form(
    "a function that is given model and loader",
    "data;target",
    """
def train(model, loader, optimizer):
    model.train()
    for index, (data, target) in enumerate(loader):
        data = data.view(len(data), -1)
        optimizer.zero_grad()
        output = F.log_softmax(model(data), dim=1)
        loss = F.nll_loss(
            output,
            target,
        )
        loss.backward()
        optimizer.step()


train(model, train_loader, optimizer)
""",
)
form(
    "a function for each batch",
    "x;y",
    """
def train_step(batch):
    x, y = batch
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss.item()


for batch in train_loader:
    train_step(batch)
""",
)
form(
    "a class with private attributes",
    "x;y",
    """
class Trainer:
    def __init__(self):
        self.model, self.optimizer, self.loader = model, optimizer, train_loader
        self.step = 0
        self.__scale = 2.0

    def prepare(self, batch):
        return [each + 0 for each in batch]

    def compute_loss(self, x, y):
        self.step += 1
        return F.cross_entropy(self.model(x), y) * (1 + self.step)

    def fit(self):
        for batch in self.loader:
            x, y = self.prepare(batch)
            self.optimizer.zero_grad()
            self.loss = self.compute_loss(x, y) * self.__scale
            self.loss.backward()
            self.optimizer.step()


Trainer().fit()
""",
)
form(
    "while True and a function that draws",
    "x;y",
    """
def get_batch(split):
    chosen = torch.randint(128, (16,))
    return X[chosen], Y[chosen]


step = 0
while True:
    x, y = get_batch("train")
    logits = model(x); loss = F.cross_entropy(logits, y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    step += 1
    if step > 20:
        break
""",
)
form(
    "the next batch is fetched before backward",
    "x;y",
    """
source = iter(train_loader)
x, y = next(source)
for step in range(7):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
        loss = F.cross_entropy(logits, y)
    x, y = next(source)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
)
form(
    "slices of the data in the very call",
    "X[order[i:i + 16]];Y[order[i:i + 16]]",
    """
for epoch in range(9):
    order = torch.randperm(128)
    for i in range(0, 128, 16):
        loss = F.cross_entropy(model(X[order[i : i + 16]]), Y[order[i : i + 16]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
)
form(
    "dictionaries and a model that computes its loss",
    "batch",
    """
class Output:
    def __init__(self, loss):
        self.loss = loss


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = model

    def forward(self, x, labels):
        return Output(F.cross_entropy(self.inner(x), labels))


net = Wrapped()
rows = [{"x": x, "labels": y} for x, y in zip(X, Y)]
for batch in DataLoader(rows, batch_size=16, shuffle=True):
    batch = {name: each.to("cpu") for name, each in batch.items()}
    outputs = net(**batch)
    outputs.loss.backward()
    optimizer.step()
    optimizer.zero_grad()
""",
)
form(
    "batches of a class of their own",
    "batch.x;batch.y",
    """
class Batch:
    def __init__(self, rows):
        self.x = torch.stack([x for x, _ in rows])
        self.y = torch.stack([y for _, y in rows])


for batch in DataLoader(TensorDataset(X, Y), batch_size=16, collate_fn=Batch):
    loss = F.cross_entropy(model(batch.x), batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)
form(
    "autocast around everything",
    "x;y",
    """
with torch.autocast("cpu", dtype=torch.bfloat16):
    for x, y in train_loader:
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
)
form(
    "a wrapper around the loader, a try, a with",
    "x;y",
    """
class bar:
    def __init__(self, inner):
        self.inner = inner

    def __iter__(self):
        yield from self.inner

    def set_postfix(self, **shown):
        pass


shown = bar(train_loader)
for x, y in shown:
    x = x * 2
    try:
        with torch.enable_grad():
            out = model(x)
            loss = F.cross_entropy(out, y)
            if loss > 0:
                loss.backward()
    except RuntimeError:
        continue
    optimizer.step()
    optimizer.zero_grad()
    shown.set_postfix(loss=loss.item())
""",
)
form(
    "one loop for training and validation",
    "inputs;labels;phase",
    """
for epoch in range(3):
    for phase in ("train", "valid"):
        model.train(phase == "train")
        for inputs, labels in {"train": train_loader, "valid": valid_loader}[phase]:
            optimizer.zero_grad()
            with torch.set_grad_enabled(phase == "train"):
                outputs = model(inputs)
                _, preds = torch.max(outputs, 1)
                loss = F.cross_entropy(outputs, labels)
                if phase == "train":
                    loss.backward()
                    optimizer.step()
""",
)
form(
    "the loss is given to a function",
    "x;y",
    """
def update(loss, optimizer=optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for x, y in train_loader:
    loss = F.cross_entropy(model(x), y)
    update(loss)
""",
)
form(
    "functions that read variables of the script",
    "x;y",
    """
def compute_loss():
    return F.cross_entropy(model(x), y)


for x, y in train_loader:
    loss = compute_loss()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)
form(
    "functions inside of functions",
    "x;y",
    """
def main():
    def compute_loss():
        return F.cross_entropy(model(x), y)

    for x, y in train_loader:
        loss = compute_loss()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
""",
)
form(
    "a closure given to the optimizer",
    "x;y",
    """
for x, y in train_loader:

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    optimizer.step(closure)
""",
)
form(
    "hidden states carried along",
    "tokens;hidden;targets",
    """
net = nn.GRU(6, 3)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
hidden = torch.zeros(1, 1, 3)
for i in range(0, 160, 16):
    tokens, targets = X[i : i + 16, None], Y[i : i + 16]
    hidden = hidden.detach()
    output, hidden = net(tokens, hidden)
    loss = F.cross_entropy(output[:, 0], targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)
form(
    "losses gathered in a dictionary, skipped batches",
    "x;y",
    """
for x, y in train_loader:
    losses = {}
    out = model(x)
    losses["data"] = F.cross_entropy(out, y)
    losses["decay"] = 1e-3 * sum(each.pow(2).sum() for each in model.parameters())
    total = 0
    for value in losses.values():
        total += value
    if not torch.isfinite(total):
        continue
    optimizer.zero_grad()
    torch.autograd.backward([total])
    optimizer.step()
""",
)
form(
    "a teacher without gradients, noise, a weight that grows",
    "x;noisy;y;weight",
    """
import copy

teacher = copy.deepcopy(model)
for step, (x, y) in enumerate(train_loader):
    noisy = x + 0.1 * torch.randn_like(x)
    weight = step / 10
    with torch.no_grad():
        soft = teacher(x).softmax(1)
    logits = model(noisy)
    loss = F.cross_entropy(logits, y) + weight * (logits.softmax(1) - soft).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for old, new in zip(teacher.parameters(), model.parameters()):
            old.lerp_(new, 0.1)
""",
)
form(
    "a weight for each sample",
    "x;y",
    """
for x, y in train_loader:
    losses = F.cross_entropy(model(x), y, reduction="none")
    optimizer.zero_grad()
    losses.backward(torch.ones_like(losses) / len(losses))
    optimizer.step()
""",
)
form(
    "the forward pass writes into the batch",
    "x;y",
    """
for x, y in train_loader:
    out = model(x)
    y += 0 * out.argmax(1)
    y[out.argmax(1) > 5] = 0
    loss = F.cross_entropy(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)
form(
    "an environment that keeps its position",
    "",
    """
class World:
    def __init__(self):
        self.place, self.moves = torch.zeros(4, 6), []

    def step(self, action):
        self.moves.append(action)
        self.place = self.place + torch.randn(4, 6)
        return self.place.sum(1)


world = World()
for episode in range(20):
    log_probs, rewards = [], []
    for _ in range(3):
        policy = torch.distributions.Categorical(logits=model(world.place))
        action = policy.sample()
        rewards.append(world.step(action))
        log_probs.append(policy.log_prob(action))
    returns = torch.stack(rewards).cumsum(0)
    loss = -(torch.stack(log_probs) * returns).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""",
)

form(
    "a loop on one line",
    "x;y",
    """
for x, y in train_loader: x = 2 * x; l = F.nll_loss(model(x), y); l.backward(); optimizer.step()
""",
)
form(
    "two lines with several statements each",
    "x;y",
    """
for x, y in train_loader:
    x = x + 1; out = model(x); loss = F.cross_entropy(out, y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
""",
)
form(
    "LBFGS with a closure",
    "X;Y",
    """
optimizer = torch.optim.LBFGS(model.parameters(), max_iter=4)
for step in range(8):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X), Y)
        loss.backward()
        return loss
    optimizer.step(closure)
""",
)
form(
    "weights updated by hand",
    "x;y",
    """
for x, y in train_loader:
    model.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    for each in model.parameters():
        each.data.add_(each.grad, alpha=-0.1)
""",
)
form(
    "a criterion of its own for every epoch",
    "x;y",
    """
def epoch():
    criterion = nn.CrossEntropyLoss()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


for _ in range(3):
    epoch()
""",
)
form(
    "a scaler that is called with the loss",
    "x;y",
    """
class Scaler:
    def __call__(self, loss, optimizer):
        loss.backward()
        optimizer.step()


scaler = Scaler()
for x, y in train_loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    scaler(loss, optimizer)
""",
)
form(
    "a loss that callbacks leave in an object",
    "rollout",
    """
class Learner:
    pass


def predict(learner):
    learner.out = model(learner.batch[0])


def score(learner):
    learner.loss = F.cross_entropy(learner.out, learner.batch[1])


def update(learner):
    optimizer.zero_grad()
    learner.loss.backward()
    optimizer.step()


learner = Learner()
for learner.batch in train_loader:
    for callback in (predict, score, update):
        callback(learner)
""",
)
form(
    "an episode whose log probabilities are saved",
    "returns;rollout",
    """
from torch.distributions import Categorical

saved, rewards = [], []


def act(state):
    choice = Categorical(logits=model(state))
    action = choice.sample()
    saved.append(choice.log_prob(action))
    return action


def finish():
    returns = torch.tensor(rewards[::-1]).cumsum(0).flip(0)
    loss = []
    for log_prob, value in zip(saved, returns):
        loss.append(-log_prob * value)
    optimizer.zero_grad()
    loss = torch.stack(loss).sum()
    loss.backward()
    optimizer.step()
    del saved[:], rewards[:]


for episode in range(12):
    state = torch.randn(6)
    for t in range(3 + episode % 4):
        action = act(state)
        rewards.append(float(action == 1))
        state = state.roll(1)
    finish()
""",
)
