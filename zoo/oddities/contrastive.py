"""Sound runs of the contrastive encoder that look odd."""

from zoo.specimens import healthy

ADAM = "torch.optim.Adam(model.parameters(), lr=2e-3)"

SPECIMENS = (
    healthy(
        "contrastive-learned-temperature",
        "contrastive",
        ("similarity = z @ z.T / TEMPERATURE", "similarity = z @ z.T * log_scale.exp()"),
        (
            f"optimizer = {ADAM}\n",
            (
                f"optimizer = {ADAM}\n"
                "log_scale = nn.Parameter(torch.tensor(1 / TEMPERATURE).log())\n"
                "scale_optimizer = torch.optim.SGD([log_scale], lr=1e-2)\n"
            ),
        ),
        (
            "        optimizer.zero_grad()\n",
            "        optimizer.zero_grad()\n        scale_optimizer.zero_grad()\n",
        ),
        (
            "        optimizer.step()\n",
            "        optimizer.step()\n        scale_optimizer.step()\n",
        ),
        why="a loose parameter has an optimizer of its own",
    ),
    healthy(
        "contrastive-adapters",
        "contrastive",
        (
            "    def forward(self, x):\n",
            (
                "        self.body.requires_grad_(False)  # trained elsewhere\n"
                "        self.down = nn.Linear(FEATURES, 8, bias=False)\n"
                "        self.up = nn.Linear(8, 64, bias=False)\n"
                "        nn.init.zeros_(self.up.weight)\n\n"
                "    def forward(self, x):\n"
            ),
        ),
        ("self.projection(self.body(x))", "self.projection(self.body(x) + self.up(self.down(x)))"),
        why="a frozen body with low-rank adapters that begin at zero",
    ),
    healthy(
        "contrastive-sharp",
        "contrastive",
        ("64, 0.2, 12", "64, 0.07, 12"),
        why="a low temperature makes large logits, and a first loss above that of chance",
    ),
    healthy(
        "contrastive-nesterov",
        "contrastive",
        (ADAM, "torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)"),
        why="SGD at a high rate, on unit vectors",
    ),
    healthy(
        "contrastive-layer-scale",
        "contrastive",
        (
            "    def forward(self, x):\n",
            (
                "        self.extra = nn.Sequential("
                "nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))\n"
                "        self.gain = nn.Parameter(torch.full((64,), 1e-4))\n\n"
                "    def forward(self, x):\n"
            ),
        ),
        (
            "return F.normalize(self.projection(self.body(x)), dim=1)",
            (
                "hidden = self.body(x)\n"
                "        hidden = hidden + self.gain * self.extra(hidden)\n"
                "        return F.normalize(self.projection(hidden), dim=1)"
            ),
        ),
        why="a residual branch is scaled by 1e-4 at first, so its gradients are tiny",
    ),
)
