"""The one door to measuring tensors: the fused kernels where they run, torch's own elsewhere."""

from collections.abc import Sequence

import torch
from torch import Tensor

from holter.watching.stats import fused, summary
from holter.watching.stats.shards import local
from holter.watching.stats.summary import Stat


class Statistics:
    """Measures lists of tensors without waiting for a device; made for lists that come again.

    On NVIDIA GPUs a list is measured in one read of its memory. What the kernels decline, and all
    other devices, go through `torch._foreach_*`. Of tensors that are sharded over processes, what
    this process holds is measured.
    """

    def __init__(self) -> None:
        self._fused: fused.Fused | None = None
        self._is_sought = True
        self._sizes: dict[tuple[torch.device, tuple[int, ...]], Tensor] = {}

    def summarise(self, tensors: Sequence[Tensor], *, like: object = None) -> Tensor:
        """The columns of `Stat`: a float32 row for each tensor, on the device of the first.

        Lists that come with the same `like` have the same sizes and types, which saves time.
        """
        tensors = local(tensors)
        kernels = self._kernels(tensors)
        if kernels is not None:
            try:
                return kernels.summarise(tensors, like=like)
            except ValueError:  # a tensor that they cannot read
                pass
        return summary.summarise(tensors)

    def norms(self, tensors: Sequence[Tensor]) -> Tensor:
        """The L2 norm of each tensor: not finite where any element is not."""
        tensors = local(tensors)
        if self._kernels(tensors) is not None:
            return self.summarise(tensors)[:, Stat.NORM]
        return summary.norms(tensors)

    def magnitudes(
        self, tensors: Sequence[Tensor], *, like: object = None
    ) -> tuple[Tensor, Tensor]:
        """The L2 norm and the largest magnitude of each tensor."""
        tensors = local(tensors)
        if self._kernels(tensors) is not None:
            rows = self.summarise(tensors, like=like)
            return rows[:, Stat.NORM], rows[:, Stat.ABSMAX]
        return summary.norms(tensors), summary.extremes(tensors)

    def has_kernels(self, tensor: Tensor) -> bool:
        """Whether the fused kernels read lists of such tensors."""
        return self._kernels((tensor,)) is not None

    def sums(self, tensors: Sequence[Tensor]) -> Tensor:
        """Sum, L2 norm and largest magnitude of tensors that there are kernels for; a row each."""
        kernels = self._kernels(tensors)
        if kernels is None:
            raise ValueError("there are no kernels for these tensors")
        columns = kernels.summarise(tensors).unbind(1)
        return torch.stack([columns[at] for at in (fused.SUM, Stat.NORM, Stat.ABSMAX)], 1)

    def adam(
        self,
        gradients: Sequence[Tensor],
        squares: Sequence[Tensor],
        limits: Tensor,
        *,
        like: object = None,
    ) -> Tensor | None:
        """Share of Adam's roots that are tiny, and root mean square of gradients over them.

        Two rows; None where the kernels cannot read these tensors. `limits` are as `Fused.adam`
        takes them.
        """
        kernels = self._kernels(gradients)
        if kernels is None:
            return None
        try:
            rows = kernels.adam(gradients, squares, limits, like=like)
        except ValueError:
            return None
        counts = torch.stack([rows[:, Stat.ZEROS], rows[:, Stat.NORM].square()])
        tiny, square = self.shares(counts, gradients)
        return torch.stack([tiny, square.sqrt()])

    def difference(
        self, before: Sequence[Tensor], after: Sequence[Tensor], *, like: object = None
    ) -> Tensor:
        """How tensors changed: norm of the change, norm before, unchanged elements; a row each."""
        before, after = local(before), local(after)
        kernels = self._kernels(before)
        if kernels is not None:
            try:
                return kernels.difference(before, after, like=like)
            except ValueError:
                pass
        return summary.difference(before, after)

    def histogram(self, tensors: Sequence[Tensor]) -> Tensor:
        """Elements by magnitude, in bins of powers of two: an int64 row for each tensor."""
        tensors = local(tensors)
        kernels = self._kernels(tensors)
        if kernels is not None:
            try:
                return kernels.histogram(tensors)
            except ValueError:
                pass
        return summary.histogram(tensors)

    def shares(self, counts: Tensor, tensors: Sequence[Tensor]) -> Tensor:
        """Counts of elements as shares of each tensor's elements."""
        key = counts.device, tuple(tensor.numel() for tensor in local(tensors))
        sizes = self._sizes.get(key)
        if sizes is None:
            sizes = torch.tensor(
                [max(size, 1) for size in key[1]], dtype=torch.float32, device="cpu"
            )
            if counts.is_cuda:  # from pinned memory: a plain copy would wait for the device
                sizes = sizes.pin_memory().to(counts.device, non_blocking=True)
            if len(self._sizes) > 8:
                self._sizes.clear()
            self._sizes[key] = sizes
        return counts / sizes

    def _kernels(self, tensors: Sequence[Tensor]) -> fused.Fused | None:
        """The fused kernels, if all tensors are on one GPU that runs them."""
        if not tensors or not tensors[0].is_cuda or torch.cuda.is_current_stream_capturing():
            return None
        if self._is_sought:
            self._is_sought = False
            self._fused = fused.Fused() if fused.available() else None
        if self._fused is None or len({tensor.device for tensor in tensors}) > 1:
            return None
        return self._fused
