# transformers Trainer with a tiny BERT from scratch: does token 5 come before token 6?
import numpy as np, torch, tempfile
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, set_seed
set_seed(0)
class Seqs(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        r = np.random.default_rng(seed); self.x = r.integers(7, 30, (n, 12)); self.y = r.integers(0, 2, n)
        for i in range(n):
            a, b = np.sort(r.choice(np.arange(1, 12), 2, replace=False)); a, b = (a, b) if self.y[i] else (b, a)
            self.x[i, a], self.x[i, b] = 5, 6
        self.x[:, 0] = 1
    def __len__(self): return len(self.y)
    def __getitem__(self, i): return dict(input_ids=torch.tensor(self.x[i]), attention_mask=torch.ones(12, dtype=torch.long), labels=int(self.y[i]))
cfg = BertConfig(vocab_size=30, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, max_position_embeddings=16, hidden_dropout_prob=0., attention_probs_dropout_prob=0., num_labels=2)
args = TrainingArguments(output_dir=tempfile.mkdtemp(), num_train_epochs=6, per_device_train_batch_size=32, per_device_eval_batch_size=250, learning_rate=3e-3, warmup_steps=30, eval_strategy="epoch", logging_steps=62, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True)
tr = Trainer(model=BertForSequenceClassification(cfg), args=args, train_dataset=Seqs(2000, 1), eval_dataset=Seqs(500, 2),
             compute_metrics=lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())})
tr.train(); print(tr.evaluate())
