"""Memory of the process, of its loader workers and of the GPU, and which variables hold it."""

from holter.record.signals._signal import Per, Phase, Signal

MEMORY_PROCESS = Signal(
    "memory.process",
    Per.STEP,
    Phase.AFTERWARDS,
    "bytes",
    "Private memory of the training process after the update: resident, without shared pages and"
    " files; sampled.",
)
MEMORY_WORKERS = Signal(
    "memory.workers",
    Per.STEP,
    Phase.AFTERWARDS,
    "bytes",
    "The same, summed over the child processes, which are mostly loader workers; sampled.",
)
MEMORY_ALLOCATED = Signal(
    "memory.allocated",
    Per.STEP,
    Phase.AFTERWARDS,
    "bytes",
    "GPU memory in tensors after the update; sampled.",
)
MEMORY_RESERVED = Signal(
    "memory.reserved",
    Per.STEP,
    Phase.AFTERWARDS,
    "bytes",
    "GPU memory that the allocator of torch holds, tensors included; sampled.",
)
MEMORY_PEAK = Signal(
    "memory.peak",
    Per.STEP,
    Phase.AFTERWARDS,
    "bytes",
    "Largest GPU memory in tensors so far; sampled.",
)
MEMORY_RETRIES = Signal(
    "memory.retries",
    Per.STEP,
    Phase.AFTERWARDS,
    "retries",
    "Allocations on the GPU so far that failed until the allocator of torch had given its unused"
    " memory back; sampled.",
)
MEMORY_AFTER_FORWARD = Signal(
    "memory.after_forward",
    Per.STEP,
    Phase.FORWARD,
    "bytes",
    "Memory when backward() is called: GPU memory in tensors, or else private memory of the"
    " process; the most in the step, sampled in full steps.",
)
MEMORY_AFTER_BACKWARD = Signal(
    "memory.after_backward",
    Per.STEP,
    Phase.BACKWARD,
    "bytes",
    "The same when optimizer.step() is called.",
)
MEMORY_AFTER_OPTIMIZER = Signal(
    "memory.after_optimizer",
    Per.STEP,
    Phase.UPDATE,
    "bytes",
    "The same when optimizer.step() has returned.",
)
MEMORY_HELD = Signal(
    "memory.held",
    Per.VARIABLE,
    Phase.AFTERWARDS,
    "bytes",
    "Estimated size of the tensors and arrays in a list or dict that grew since it was last looked"
    " at: its length times the size of its last element. Read when a full step calls backward().",
)
GRAPH_KEPT = Signal(
    "graph.kept",
    Per.VARIABLE,
    Phase.AFTERWARDS,
    "tensors",
    "Results of earlier steps that a variable of the training loop holds with their autograd graph:"
    " tensors in a list or dict, or terms of a sum. Read when a full step calls backward().",
)
