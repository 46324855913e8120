"""Fine-tune BERT to tell paraphrases (GLUE MRPC)."""
import argparse
import math
import random

import numpy as np
import torch
from datasets import load_dataset
from sklearn.metrics import accuracy_score, f1_score
from torch.utils.data import DataLoader
from transformers import (AutoModelForSequenceClassification, AutoTokenizer,
                          DataCollatorWithPadding, get_linear_schedule_with_warmup)


def parse():
    p = argparse.ArgumentParser()
    p.add_argument("--model", default="bert-base-uncased")
    p.add_argument("--epochs", type=int, default=4)
    p.add_argument("--batch", type=int, default=8)
    p.add_argument("--accum", type=int, default=4)
    p.add_argument("--lr", type=float, default=2e-5)
    p.add_argument("--head_lr", type=float, default=1e-4)
    p.add_argument("--wd", type=float, default=0.01)
    p.add_argument("--warmup", type=float, default=0.1)
    p.add_argument("--max_len", type=int, default=128)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--out", default="mrpc-bert")
    return p.parse_args()


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def get_loaders(args, tokenizer):
    raw = load_dataset("glue", "mrpc")

    def encode(batch):
        return tokenizer(batch["sentence1"], batch["sentence2"], truncation=True, max_length=args.max_len)

    enc = raw.map(encode, batched=True, remove_columns=["sentence1", "sentence2", "idx"])
    enc = enc.rename_column("label", "labels")
    collate = DataCollatorWithPadding(tokenizer)
    train = DataLoader(enc["train"], batch_size=args.batch, shuffle=True, collate_fn=collate)
    val = DataLoader(enc["validation"], batch_size=64, collate_fn=collate)
    test = DataLoader(enc["test"], batch_size=64, collate_fn=collate)
    return train, val, test


def param_groups(model, args):
    groups = {}
    for name, p in model.named_parameters():
        lr = args.head_lr if name.startswith("classifier") else args.lr
        wd = 0.0 if name.endswith("bias") or "LayerNorm" in name else args.wd
        groups.setdefault((lr, wd), []).append(p)
    return [{"params": ps, "lr": lr, "weight_decay": wd} for (lr, wd), ps in groups.items()]


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    preds, golds, loss, n = [], [], 0.0, 0
    for batch in loader:
        batch = batch.to(device)
        out = model(**batch)
        size = batch["labels"].size(0)
        loss += out.loss.item() * size
        n += size
        preds += out.logits.argmax(dim=-1).tolist()
        golds += batch["labels"].tolist()
    return loss / n, accuracy_score(golds, preds), f1_score(golds, preds)


def train(model, loader, val, args, device):
    opt = torch.optim.AdamW(param_groups(model, args))
    steps_per_epoch = math.ceil(len(loader) / args.accum)
    total = steps_per_epoch * args.epochs
    sched = get_linear_schedule_with_warmup(opt, int(args.warmup * total), total)
    best = -1.0
    for epoch in range(args.epochs):
        model.train()
        opt.zero_grad()
        running = 0.0
        for i, batch in enumerate(loader):
            loss = model(**batch.to(device)).loss
            (loss / args.accum).backward()
            running += loss.item()
            if (i + 1) % args.accum == 0 or i + 1 == len(loader):
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
                sched.step()
                opt.zero_grad()
        val_loss, acc, f1 = evaluate(model, val, device)
        print(f"epoch {epoch} train {running / len(loader):.4f} val {val_loss:.4f} acc {acc:.4f} f1 {f1:.4f}")
        if f1 > best:
            best = f1
            model.save_pretrained(args.out)
    return best


def main():
    args = parse()
    set_seed(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    tokenizer = AutoTokenizer.from_pretrained(args.model)
    model = AutoModelForSequenceClassification.from_pretrained(args.model, num_labels=2).to(device)
    train_dl, val_dl, test_dl = get_loaders(args, tokenizer)
    best = train(model, train_dl, val_dl, args, device)
    tokenizer.save_pretrained(args.out)
    model = AutoModelForSequenceClassification.from_pretrained(args.out).to(device)
    _, acc, f1 = evaluate(model, test_dl, device)
    print(f"best val f1 {best:.4f} | test acc {acc:.4f} f1 {f1:.4f}")


if __name__ == "__main__":
    main()
