import argparse
import math
import random
import torch
from torch import nn, optim
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, BOS, EOS, OFFSET = 0, 1, 2, 3


def make_pair(rng, n_words):
    """toy language: words are reversed in order, a word after an even word takes its inflected form"""
    src = [rng.randrange(n_words) for _ in range(rng.randint(3, 8))]
    tgt = []
    for i, w in enumerate(src):
        prev = src[i - 1] if i else 1
        tgt.append((w * 7 + 3) % n_words + (n_words if prev % 2 == 0 else 0))
    return [w + OFFSET for w in src], [w + OFFSET for w in reversed(tgt)]


def make_corpus(n, n_words, seed):
    rng = random.Random(seed)
    return [make_pair(rng, n_words) for _ in range(n)]


def to_batch(pairs):
    src = pad_sequence([torch.tensor(s + [EOS]) for s, _ in pairs], batch_first=True, padding_value=PAD)
    tgt = pad_sequence([torch.tensor([BOS] + t + [EOS]) for _, t in pairs], batch_first=True, padding_value=PAD)
    return src, torch.tensor([len(s) + 1 for s, _ in pairs]), tgt


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * hid, hid)

    def forward(self, src, lengths):
        out, h = self.rnn(pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False))
        out, _ = pad_packed_sequence(out, batch_first=True)
        h = torch.tanh(self.bridge(torch.cat([h[0], h[1]], -1)))
        return out, h


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(hid, hid), nn.Linear(2 * hid, hid), nn.Linear(hid, 1)

    def forward(self, h, memory, mask):
        e = self.v(torch.tanh(self.q(h).unsqueeze(1) + self.k(memory))).squeeze(-1)
        e = e.masked_fill(~mask, -1e9)
        a = torch.softmax(e, dim=-1)
        return torch.bmm(a.unsqueeze(1), memory).squeeze(1)


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.attn = Attention(hid)
        self.cell = nn.GRUCell(emb + 2 * hid, hid)
        self.out = nn.Linear(3 * hid, vocab)

    def step(self, tok, h, memory, mask):
        ctx = self.attn(h, memory, mask)
        h = self.cell(torch.cat([self.emb(tok), ctx], -1), h)
        return self.out(torch.cat([h, ctx], -1)), h


class Translator(nn.Module):
    def __init__(self, src_vocab, tgt_vocab, emb=32, hid=56):
        super().__init__()
        self.encoder = Encoder(src_vocab, emb, hid)
        self.decoder = Decoder(tgt_vocab, emb, hid)

    def forward(self, src, lengths, tgt_in):
        memory, h = self.encoder(src, lengths)
        mask = src != PAD
        logits = []
        for t in range(tgt_in.size(1)):
            step, h = self.decoder.step(tgt_in[:, t], h, memory, mask)
            logits.append(step)
        return torch.stack(logits, 1)

    @torch.no_grad()
    def greedy(self, src, lengths, max_len=11):
        memory, h = self.encoder(src, lengths)
        mask = src != PAD
        tok = torch.full((src.size(0),), BOS)
        out = []
        for _ in range(max_len):
            step, h = self.decoder.step(tok, h, memory, mask)
            tok = step.argmax(-1)
            out.append(tok)
        return torch.stack(out, 1)


class Trainer:
    def __init__(self, model, args):
        self.model, self.args, self.rng = model, args, random.Random(0)
        self.opt = optim.Adam(model.parameters(), lr=args.lr)
        self.sched = optim.lr_scheduler.ExponentialLR(self.opt, gamma=0.75)
        self.loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)

    def train_epoch(self, data):
        self.model.train()
        self.rng.shuffle(data)
        total, count = 0.0, 0
        for i in range(0, len(data), self.args.batch):
            src, lengths, tgt = to_batch(data[i:i + self.args.batch])
            logits = self.model(src, lengths, tgt[:, :-1])
            loss = self.loss_fn(logits.flatten(0, 1), tgt[:, 1:].flatten())
            self.opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.opt.step()
            total, count = total + loss.item(), count + 1
        self.sched.step()
        return total / count

    @torch.no_grad()
    def evaluate(self, data):
        self.model.eval()
        src, lengths, tgt = to_batch(data)
        logits = self.model(src, lengths, tgt[:, :-1])
        loss = self.loss_fn(logits.flatten(0, 1), tgt[:, 1:].flatten()).item()
        hyp = self.model.greedy(src, lengths)
        right = total = exact = 0
        for h, (_, ref) in zip(hyp.tolist(), data):
            h = h[:h.index(EOS)] if EOS in h else h
            right += sum(a == b for a, b in zip(h, ref))
            total += max(len(h), len(ref))
            exact += h == ref
        return loss, right / total, exact / len(data)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--epochs", type=int, default=7)
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--lr", type=float, default=4e-3)
    p.add_argument("--words", type=int, default=40)
    args = p.parse_args()
    torch.set_num_threads(1); torch.manual_seed(0)
    train = make_corpus(2100, args.words, seed=10)
    valid = make_corpus(300, args.words, seed=11)
    test = make_corpus(300, args.words, seed=12)
    trainer = Trainer(Translator(args.words + OFFSET, 2 * args.words + OFFSET), args)
    for epoch in range(args.epochs):
        tr = trainer.train_epoch(train)
        vl, tok, ex = trainer.evaluate(valid)
        print(f"epoch {epoch} | train {tr:.3f} | valid {vl:.3f} (ppl {math.exp(vl):.2f}) | token acc {tok:.3f} | exact {ex:.3f}")
    tl, tok, ex = trainer.evaluate(test)
    print(f"TEST loss {tl:.3f} token acc {tok:.3f} exact match {ex:.3f}")


if __name__ == "__main__":
    main()
