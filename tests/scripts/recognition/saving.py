"""A script that writes, appends, renames and removes files in all the ways people do."""

import glob
import json
import logging
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn

assert Path("results/old.txt").read_text() == "old"
shutil.rmtree("results")
assert not os.path.exists("results/old.txt")
os.makedirs("results/plots")
assert os.listdir("results") == ["plots"]
Path("notes.md").write_text("new")
assert Path("notes.md").read_text() == "new"
assert sorted(glob.glob("*.md")) == ["notes.md"]
with open("log.txt", "a") as file:
    file.write("more\n")
assert file.name == "log.txt"
assert Path("log.txt").read_text() == "first\nmore\n"
os.makedirs("checkpoint", exist_ok=True)
logging.basicConfig(filename="train.log", level=logging.INFO)
database = sqlite3.connect("runs.db")
database.execute("create table t (a int)")
database.commit()
np.save("cache.npy", np.arange(3))
assert np.load("cache.npy").sum() == 3
with open("history.json", "w") as file:
    json.dump([1], file)
os.remove("stale.txt")
assert not Path("stale.txt").exists()
os.rename("folder", "renamed")
assert Path("renamed/inner/file.txt").read_text() == "inner"
assert not Path("folder").exists()
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as file:
    file.write("x")
os.replace(file.name, "atomic.txt")
assert Path("atomic.txt").read_text() == "x"
shutil.copytree("data", "data_copy")
assert sorted(path.name for path in Path("data_copy").iterdir()) == ["a.txt"]
assert [names for _, _, names in os.walk("data_copy")] == [["a.txt"]]
os.symlink("checkpoint", "latest")
with open("linked.txt", "a") as file:
    file.write("through a link of the user")
os.chmod("keep.txt", 0o600)
os.utime("keep.txt", (1, 1))
try:
    open("no/such/folder.txt", "w")
except FileNotFoundError as error:
    assert error.filename == "no/such/folder.txt"
try:
    open("keep.txt", "x")
    raise AssertionError
except FileExistsError:
    pass

torch.manual_seed(0)
model = nn.Linear(4, 2)
model.load_state_dict(torch.load("checkpoint/best.pth"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    x = torch.randn(8, 4)
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.save(model.state_dict(), "./checkpoint/best.pth")
    torch.save(model.state_dict(), f"latest/{step}.pth")
    assert torch.equal(torch.load("checkpoint/best.pth")["bias"], model.bias)
    logging.info("step %d", step)
    with open("events.out.tfevents.1", "ab") as file:
        file.write(b"event")
assert os.path.islink("latest")
assert len(os.listdir("latest")) == 13
os.remove("latest")
assert not os.path.lexists("latest")
assert os.path.exists("checkpoint/best.pth")
