"""LoRA fine-tuning of DistilBERT for sentence classification, saving only the adapter."""
import argparse
import csv
import json
import math
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer


class LoRALinear(nn.Module):
    """Frozen linear layer plus a trainable low-rank update scaled by alpha / rank."""

    def __init__(self, base, rank, alpha, dropout):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(rank, base.in_features))
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
        self.scale = alpha / rank
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        update = F.linear(F.linear(self.dropout(x), self.A), self.B)
        return self.base(x) + self.scale * update

    @torch.no_grad()
    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features, bias=self.base.bias is not None)
        layer.to(self.base.weight.device)
        layer.weight.copy_(self.base.weight + self.scale * self.B @ self.A)
        if self.base.bias is not None:
            layer.bias.copy_(self.base.bias)
        return layer


def add_lora(model, targets, rank, alpha, dropout):
    for p in model.parameters():
        p.requires_grad = False
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in targets and isinstance(child, nn.Linear):
                setattr(module, name, LoRALinear(child, rank, alpha, dropout))
    for name, p in model.named_parameters():
        if name.startswith(("pre_classifier", "classifier")):
            p.requires_grad = True


def merge_lora(model):
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LoRALinear):
                setattr(module, name, child.merged())


def adapter_state(model):
    keep = {n for n, p in model.named_parameters() if p.requires_grad}
    return {n: t.detach().cpu().clone() for n, t in model.state_dict().items() if n in keep}


def read_tsv(path):
    with open(path, newline="", encoding="utf-8") as f:
        return [(r["sentence"], int(r["label"])) for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)]


def evaluate(model, loader, device):
    model.eval()
    loss_sum = hits = n = 0
    with torch.no_grad():
        for enc, labels in loader:
            enc, labels = {k: v.to(device) for k, v in enc.items()}, labels.to(device)
            logits = model(**enc).logits
            loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
            hits += (logits.argmax(-1) == labels).sum().item()
            n += labels.size(0)
    return loss_sum / n, hits / n


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="distilbert-base-uncased")
    p.add_argument("--train", default="sst2/train.tsv")
    p.add_argument("--dev", default="sst2/dev.tsv")
    p.add_argument("--rank", type=int, default=8)
    p.add_argument("--alpha", type=float, default=16.0)
    p.add_argument("--dropout", type=float, default=0.05)
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--head_lr", type=float, default=1e-3)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--batch_size", type=int, default=32)
    p.add_argument("--max_len", type=int, default=128)
    p.add_argument("--out", default="lora_sst2")
    args = p.parse_args()
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    tokenizer = AutoTokenizer.from_pretrained(args.model)

    def collate(rows):
        texts, labels = zip(*rows)
        enc = tokenizer(list(texts), padding=True, truncation=True, max_length=args.max_len, return_tensors="pt")
        return dict(enc), torch.tensor(labels)

    train_loader = DataLoader(read_tsv(args.train), args.batch_size, shuffle=True, collate_fn=collate)
    dev_loader = DataLoader(read_tsv(args.dev), 128, collate_fn=collate)

    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2)
    add_lora(model, ("q_lin", "v_lin"), args.rank, args.alpha, args.dropout)
    model.to(device)
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    lora = [p for n, p in named if n.endswith((".A", ".B"))]
    head = [p for n, p in named if not n.endswith((".A", ".B"))]
    print(f"trainable: {sum(p.numel() for p in lora)} lora, {sum(p.numel() for p in head)} head")
    optimizer = torch.optim.AdamW([{"params": lora, "lr": args.lr, "weight_decay": 0.0},
                                   {"params": head, "lr": args.head_lr, "weight_decay": 0.01}])
    total = args.epochs * len(train_loader)
    warmup = int(0.06 * total)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: (s + 1) / (warmup + 1) if s < warmup else (total - s) / (total - warmup))

    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        running = 0.0
        for step, (enc, labels) in enumerate(train_loader, 1):
            enc, labels = {k: v.to(device) for k, v in enc.items()}, labels.to(device)
            loss = F.cross_entropy(model(**enc).logits, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(lora + head, 1.0)
            optimizer.step()
            scheduler.step()
            running += loss.item()
            if step % 200 == 0:
                print(f"epoch {epoch} step {step} loss {running / step:.4f}")
        dev_loss, acc = evaluate(model, dev_loader, device)
        print(f"epoch {epoch} train {running / len(train_loader):.4f} dev {dev_loss:.4f} acc {acc:.4f}")
        if acc > best:
            best = acc
            torch.save(adapter_state(model), args.out + ".pt")
            with open(args.out + ".json", "w") as f:
                json.dump({"model": args.model, "rank": args.rank, "alpha": args.alpha, "acc": acc}, f)

    model.load_state_dict(torch.load(args.out + ".pt", map_location=device), strict=False)
    merge_lora(model)
    print("merged model:", evaluate(model, dev_loader, device))


if __name__ == "__main__":
    main()
