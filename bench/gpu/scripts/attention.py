"""A classifier of padded sequences with a chosen backend of scaled_dot_product_attention."""

import common
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.data import DataLoader, TensorDataset

parser = common.parser(steps=600, lr=1e-3)
parser.add_argument("--backend", choices=("math", "flash", "efficient"), required=True)
parser.add_argument("--invert-mask", action="store_true")
args = common.start(parser)

BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
}
WORDS, LENGTH, WIDTH, CLASSES, PADDING = 64, 32, 64, 6, 0
# Each class prefers other words; the second half of each text is padding, for flash has no mask.
preferences = 2.5 * torch.randn(CLASSES, WORDS - 1)
labels = torch.randint(CLASSES, (6_000,))
words = 1 + torch.multinomial(preferences.softmax(1)[labels], LENGTH // 2, replacement=True)
texts = functional.pad(words, (0, LENGTH // 2), value=PADDING)
loader = DataLoader(TensorDataset(texts, labels), batch_size=60, shuffle=True)


class Net(nn.Module):
    """One attention block, averaged over the positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        mask = None
        if args.backend == "flash":
            x = x[:, : LENGTH // 2]
        else:
            mask = (x == PADDING if args.invert_mask else x != PADDING)[:, None, None, :]
            mask = mask.expand(-1, 4, x.shape[1], -1)
        hidden = self.norm(self.embed(x))
        q, k, v = self.qkv(hidden).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        attended = self.out(attended.transpose(1, 2).flatten(2))
        return self.head(functional.gelu(attended).mean(1))


model = Net().to(args.device)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, fused=args.device == "cuda")
losses = common.Losses()
for _ in range(args.steps // len(loader)):
    for x, y in loader:
        with sdpa_kernel(BACKENDS[args.backend]), torch.autocast(args.device, torch.bfloat16):
            loss = functional.cross_entropy(model(x.to(args.device)), y.to(args.device))
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        losses.add(loss)

losses.finish(model)
