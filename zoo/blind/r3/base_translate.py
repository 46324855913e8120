"""Toy translation: reverse the clause, translate each word. GRU encoder-decoder with dot attention."""
import random
import torch
import torch.nn as nn
import torch.nn.functional as F

PAD, BOS, EOS = 0, 1, 2
N_WORDS = 10
VOCAB = 3 + N_WORDS
MAX_LEN = 5


def make_pair(rng, table):
    n = rng.randint(3, MAX_LEN)
    src = [rng.randrange(N_WORDS) for _ in range(n)]
    tgt = [table[w] for w in reversed(src)]
    return [3 + w for w in src], [BOS] + [3 + w for w in tgt] + [EOS]


def pad(seqs):
    width = max(len(s) for s in seqs)
    return torch.tensor([s + [PAD] * (width - len(s)) for s in seqs])


class Encoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, d, batch_first=True, bidirectional=True)
        self.merge = nn.Linear(2 * d, d)

    def forward(self, src):
        out, h = self.rnn(self.emb(src))
        return self.merge(out), torch.tanh(self.merge(torch.cat([h[0], h[1]], 1)))


class Decoder(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, d, padding_idx=PAD)
        self.rnn = nn.GRU(d, d, batch_first=True)
        self.query = nn.Linear(d, d)
        self.mix = nn.Linear(2 * d, d)
        self.out = nn.Linear(d, VOCAB)

    def forward(self, tokens, h, memory, src_pad):
        states, h = self.rnn(self.emb(tokens), h)
        score = self.query(states) @ memory.transpose(1, 2) / memory.size(-1) ** 0.5
        score = score.masked_fill(src_pad[:, None, :], -1e9)
        weight = torch.softmax(score, dim=2)
        ctx = weight @ memory
        return self.out(torch.tanh(self.mix(torch.cat([states, ctx], 2)))), h


class Seq2Seq(nn.Module):
    def __init__(self, d=48):
        super().__init__()
        self.encoder, self.decoder = Encoder(d), Decoder(d)

    def forward(self, src, tgt_in):
        memory, h = self.encoder(src)
        logits, _ = self.decoder(tgt_in, h[None], memory, src == PAD)
        return logits

    @torch.no_grad()
    def greedy(self, src, steps):
        memory, h = self.encoder(src)
        h, tok, res = h[None], torch.full((len(src), 1), BOS), []
        for _ in range(steps):
            logits, h = self.decoder(tok, h, memory, src == PAD)
            tok = logits[:, -1:].argmax(-1)
            res.append(tok)
        return torch.cat(res, 1)


def exact_match(model, src, tgt):
    model.eval()
    ref = tgt[:, 1:]
    hyp = model.greedy(src, ref.size(1))
    real = ref != PAD
    right = (hyp == ref) | ~real
    return right.all(1).float().mean().item(), (right & real).sum().item() / real.sum().item()


def main():
    rng = random.Random(4)
    torch.manual_seed(4)
    table = list(range(N_WORDS))
    rng.shuffle(table)
    pairs = [make_pair(rng, table) for _ in range(2500)]
    train, val = pairs[300:], pairs[:300]
    v_src, v_tgt = pad([p[0] for p in val]), pad([p[1] for p in val])

    model = Seq2Seq()
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    optimizer = torch.optim.Adam(model.parameters(), lr=6e-3)
    for epoch in range(5):
        model.train()
        rng.shuffle(train)
        losses = []
        for i in range(0, len(train), 100):
            chunk = train[i:i + 100]
            src, tgt = pad([p[0] for p in chunk]), pad([p[1] for p in chunk])
            logits = model(src, tgt[:, :-1])
            loss = criterion(logits.transpose(1, 2), tgt[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        em, tok = exact_match(model, v_src, v_tgt)
        print(f"epoch {epoch + 1} train loss {sum(losses) / len(losses):.3f} | greedy: exact {em:.3f} tokens {tok:.3f}")


if __name__ == "__main__":
    main()
