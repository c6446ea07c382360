#!/usr/bin/env python3
"""Prints the `value` lines of tests/ops/ctc_loss.case and ctc_loss_grad.case: what PyTorch computes.

usage: make_ctc.py loss|grad     needs torch (any recent version, CPU)

Not part of the build or of any test: the lines are committed.  Logits go through
torch.nn.functional.log_softmax and ctc_loss with reduction="none", all in f64.
"""
import sys

import torch
import torch.nn.functional as F

# why, frames, classes, targets, logit lengths, target lengths, blank, zero_infinity
SETTINGS = [
    ("repeated targets, padded frames and targets, an empty target.", 7, 4,
     [[1, 2, 3], [2, 2, 1], [3, 9, 9], [9, 9, 9]], [7, 6, 5, 4], [3, 3, 1, 0], 0, 0),
    ("another class is the blank.", 5, 3, [[0, 2], [2, 2]], [5, 4], [2, 2], 1, 0),
    ("one alignment; none, which is inf; no frames, with and without targets.", 3, 3,
     [[1, 2, 1], [1, 1, 2], [1, 0, 0], [0, 0, 0]], [3, 3, 0, 0], [3, 3, 1, 0], 0, 0),
    ("none, with zero_infinity.", 3, 3, [[1, 2, 1], [1, 1, 2], [1, 0, 0]], [3, 3, 0], [3, 3, 1], 0,
     1),
]


def text(values):
    """The shortest digits that give the same bits; nan and inf as case files have them."""
    return ",".join(repr(v + 0).removesuffix(".0") for v in values)


def main(kind):
    generator = torch.Generator().manual_seed(7)
    for why, frames, classes, targets, frame_counts, counts, blank, zero in SETTINGS:
        batch, length = len(targets), len(targets[0])
        draw = torch.randn(batch, frames, classes, generator=generator, dtype=torch.float64)
        logits = (draw * 200).round().div(100).requires_grad_()
        weights = (torch.arange(batch, dtype=torch.float64) + 2) / 2
        log_probs = F.log_softmax(logits, -1).transpose(0, 1)
        padded = torch.tensor(targets).clamp(max=classes - 1)
        losses = F.ctc_loss(log_probs, padded, torch.tensor(frame_counts), torch.tensor(counts),
                            blank=blank, reduction="none", zero_infinity=bool(zero))
        (losses * weights).sum().backward()
        attrs = (f" blank={blank}" if blank else "") + (" zero_infinity=1" if zero else "")
        inputs = (f"f64[{batch},{frames},{classes}]={text(logits.flatten().tolist())}, "
                  f"i64[{batch},{length}]={text([v for row in targets for v in row])}, "
                  f"i64[{batch}]={text(frame_counts)}, i64[{batch}]={text(counts)}")
        print(f"# why: {why}")
        if kind == "loss":
            print(f"value {inputs}{attrs}\n    {text(losses.tolist())}")
        else:
            print(f"value {inputs}, f64[{batch}]={text(weights.tolist())}{attrs}\n"
                  f"    {text(logits.grad.flatten().tolist())}")


if __name__ == "__main__":
    main(sys.argv[1])
