"""Train a small GPT-2 from a configuration with transformers.Trainer and gradient accumulation."""

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    PrinterCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

set_seed(0)
VOCAB, BLOCK = 32, 16


class Blocks(Dataset):
    """Sequences in which each token is followed by one of two."""

    def __init__(self, count, seed):
        follows = torch.randint(0, VOCAB, (VOCAB, 2), generator=torch.Generator().manual_seed(9))
        generator = torch.Generator().manual_seed(seed)
        tokens = [torch.randint(0, VOCAB, (count,), generator=generator)]
        for _ in range(BLOCK - 1):
            choice = torch.randint(0, 2, (count,), generator=generator)
            tokens.append(follows[tokens[-1], choice])
        self.tokens = torch.stack(tokens, 1)

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return {"input_ids": self.tokens[index], "labels": self.tokens[index].clone()}


class PrintLosses(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        for key in ("loss", "eval_loss"):
            if logs and key in logs:
                print(f"{state.global_step} {key} = {logs[key]}")


model = GPT2LMHeadModel(
    GPT2Config(vocab_size=VOCAB, n_positions=BLOCK, n_embd=32, n_layer=2, n_head=2, n_inner=64)
)
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    gradient_accumulation_steps=2,
    per_device_eval_batch_size=32,
    max_steps=120,
    learning_rate=3e-3,
    lr_scheduler_type="cosine",
    warmup_steps=10,
    logging_steps=1,
    eval_strategy="steps",
    eval_steps=40,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
trainer = Trainer(
    model=model,
    args=arguments,
    train_dataset=Blocks(800, 1),
    eval_dataset=Blocks(192, 2),
    callbacks=[PrintLosses()],
)
trainer.remove_callback(PrinterCallback)  # it prints times, which differ between runs
trainer.train()
