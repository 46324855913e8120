"""Sound runs, mostly of the tabular MLP, that spend time or memory in a way that looks odd."""

from zoo.faults.time_and_memory import EPOCH, LOADER, STEP, data_set
from zoo.specimens import healthy

SPECIMENS = (
    healthy(
        "tabular-first-epoch-cached",
        "tabular_mlp",
        data_set(
            "if index not in self.held:",
            "    time.sleep(2e-4)",
            "    self.held[index] = numpy.ones(1500)",
            held="{}",
        ),
        why="samples are slow to read in the first epoch only, and are kept",
    ),
    healthy(
        "tabular-buffer-that-fills",
        "tabular_mlp",
        (EPOCH, f"buffer, step = {{}}, 0\n{EPOCH}"),
        (STEP, f"{STEP}        buffer[step % 64] = torch.cdist(x, rows)\n        step += 1\n"),
        why="a buffer of results grows until it is full",
    ),
    healthy(
        "tabular-sum-without-graphs",
        "tabular_mlp",
        (EPOCH, f"running, history = 0, []\n{EPOCH}"),
        (
            STEP,
            f"{STEP}        running += loss.detach()\n        history.append(loss.item())\n",
        ),
        why="sums and lists of losses without their graphs",
    ),
    healthy(
        "tabular-started-workers",
        "tabular_mlp",
        (LOADER, LOADER.replace("shuffle=True", "shuffle=True, num_workers=2")),
        why="workers start again at every epoch, which takes time",
    ),
    healthy(
        "lstm-loop-over-time",
        "lstm",
        ("self.rnn = nn.LSTM(1, 32, batch_first=True)", "self.cell = nn.LSTMCell(1, 32)"),
        (
            "        states, _ = self.rnn(x)\n        return self.head(states[:, -1])\n",
            (
                "        state = None\n"
                "        for value in x.unbind(1):\n"
                "            state = self.cell(value, state)\n"
                "        return self.head(state[0])\n"
            ),
        ),
        why="small operations in a loop over time, each of which needs the result of the last",
    ),
    healthy(
        "tabular-losses-of-a-window",
        "tabular_mlp",
        (STEP, f"{STEP}        losses = [criterion(model(x), y) for _ in range(1 + epoch)]\n"),
        why="a list of losses with graphs is made again at every step, and gets longer",
    ),
)
