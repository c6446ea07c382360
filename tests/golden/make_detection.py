#!/usr/bin/env python3
"""Writes detection.txt, the loss of a detector and its gradients as PyTorch computes them in f64,
and prints the value lines of tests/ops/assign_boxes.case.

    make_detection.py [--out tests/golden/detection.txt]

Needs torch.
"""
import argparse
import math

import torch

BINS, IMAGE, CLASSES = 16, 32, 3
STRIDES = (8, 16)


def complete_iou(a, b, eps=1e-7):
    """Of boxes [..., 4]; the weight of the shapes' difference is no function of the boxes."""
    aw, ah = a[..., 2] - a[..., 0], a[..., 3] - a[..., 1] + eps
    bw, bh = b[..., 2] - b[..., 0], b[..., 3] - b[..., 1] + eps
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    iou = both / (aw * ah + bw * bh - both + eps)
    hull = torch.maximum(a[..., 2:], b[..., 2:]) - torch.minimum(a[..., :2], b[..., :2])
    apart = ((b[..., :2] + b[..., 2:] - a[..., :2] - a[..., 2:]) / 2).pow(2).sum(-1)
    shape = 4 / math.pi**2 * (torch.atan(bw / bh) - torch.atan(aw / ah)).pow(2)
    weight = (shape / (shape - iou + 1 + eps)).detach()
    return iou - apart / (hull.pow(2).sum(-1) + eps) - shape * weight


def assign(scores, boxes, anchors, truths, classes, k=10, alpha=0.5, beta=6.0):
    """Targets of one picture: scores [A,C], boxes [A,4], anchors [A,2], truths [N,4], [N]."""
    target_boxes, target_scores = torch.zeros_like(boxes), torch.zeros_like(scores)
    real = [n for n in range(len(classes)) if 0 <= classes[n] < scores.shape[1]]
    if not real:
        return target_boxes, target_scores
    truths, classes = truths[real], classes[real]
    inside = torch.cat([anchors[None] - truths[:, None, :2], truths[:, None, 2:] - anchors[None]],
                       -1).amin(-1) > 1e-9                                   # [N,A]
    overlap = complete_iou(truths[:, None], boxes[None]).clamp(min=0) * inside
    metric = scores[:, classes].T.pow(alpha) * overlap.pow(beta) * inside
    order = torch.where(inside, metric, -1.0)
    k = min(k, scores.shape[0])
    best = torch.argsort(order, dim=1, descending=True, stable=True)[:, :k]
    taken = torch.zeros_like(inside).scatter_(1, best, True) & inside
    several = taken.sum(0) > 1
    if several.any():
        largest = torch.where(inside, overlap, -1.0).argmax(0)
        chosen = torch.nn.functional.one_hot(largest, len(real)).T.bool()
        taken = torch.where(several[None], chosen, taken)
    best_metric = (metric * taken).amax(1, keepdim=True)
    best_overlap = (overlap * taken).amax(1, keepdim=True)
    score = metric * taken * best_overlap / (best_metric + 1e-9)
    for n, a in taken.nonzero().tolist():
        target_boxes[a] = truths[n]
        target_scores[a, classes[n]] = score[n, a]
    return target_boxes, target_scores


def places():
    anchors, strides = [], []
    for stride in STRIDES:
        side = IMAGE // stride
        anchors += [(x + 0.5, y + 0.5) for y in range(side) for x in range(side)]
        strides += [stride] * side * side
    return torch.tensor(anchors).double(), torch.tensor(strides).double()[:, None]


def loss_of(distances, logits, truths, classes):
    """Maps [B,64,H,W] and [B,C,H,W] by stride, truths [B,N,4] in pixels."""
    join = lambda maps: torch.cat([m.flatten(2) for m in maps], 2).transpose(1, 2)
    d, x = join(distances), join(logits)
    d = d.view(*d.shape[:2], 4, BINS)
    anchors, strides = places()
    mean = d.softmax(-1) @ torch.arange(BINS).double()
    cells = torch.cat([anchors - mean[..., :2], anchors + mean[..., 2:]], -1)
    targets = [assign(x[i].detach().sigmoid(), (cells[i] * strides).detach(), anchors * strides,
                      truths[i], classes[i]) for i in range(len(x))]
    target_boxes = torch.stack([t[0] for t in targets]) / strides
    target_scores = torch.stack([t[1] for t in targets])
    weight = target_scores.sum(-1)
    count = target_scores.sum().clamp(min=1)
    box = ((1 - complete_iou(cells, target_boxes)) * weight).sum()
    to = torch.cat([anchors - target_boxes[..., :2], target_boxes[..., 2:] - anchors], -1)
    to = to.clamp(0, BINS - 1 - 0.01)
    low = to.floor().long()
    log_p = d.log_softmax(-1)
    at = lambda i: log_p.gather(-1, i[..., None])[..., 0]
    far = to - low
    dfl = -(at(low) * (1 - far) + at(low + 1) * far).mean(-1)
    bce = torch.nn.functional.binary_cross_entropy_with_logits(x, target_scores, reduction="sum")
    return (7.5 * box + 0.5 * bce + 1.5 * (dfl * weight).sum()) / count, targets, cells * strides


def example():
    torch.manual_seed(4)
    draw = lambda *dims: torch.round(torch.randn(dims).double() * 1e4) / 1e4
    distances = [draw(3, 4 * BINS, IMAGE // s, IMAGE // s) for s in STRIDES]
    for d in distances:  # distances of about a cell or two
        d.view(3, 4, BINS, -1)[:, :, 1:3] += 3
    logits = [draw(3, CLASSES, IMAGE // s, IMAGE // s) - 1 for s in STRIDES]
    truths = torch.zeros(3, 4, 4).double()
    classes = torch.full((3, 4), -1)
    truths[0, 0], classes[0, 0] = torch.tensor([3.0, 2.5, 20.25, 23.0]).double(), 1
    truths[0, 1], classes[0, 1] = torch.tensor([9.0, 8.0, 27.0, 30.0]).double(), 2
    truths[0, 2], classes[0, 2] = torch.tensor([8.0, 1.0, 30.0, 21.0]).double(), 0
    truths[1, 1], classes[1, 1] = torch.tensor([0.0, 0.0, 32.0, 32.0]).double(), 2
    return distances, logits, truths, classes


def numbers(tensor):
    return ",".join(repr(v) for v in tensor.flatten().tolist())


def case_lines(scores, boxes, truths, classes, targets):
    anchors, strides = places()
    dims = lambda t: "f64[" + ",".join(map(str, t.shape)) + "]"
    inputs = [f"{dims(t)}={numbers(t)}" for t in (scores, boxes, anchors * strides, truths)]
    inputs.append(f"i64[{','.join(map(str, classes.shape))}]={numbers(classes)}")
    outputs = [torch.stack([t[i] for t in targets]) for i in (0, 1)]
    return "value " + ", ".join(inputs) + "".join(f"\n    {dims(t)}={numbers(t)}" for t in outputs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="tests/golden/detection.txt")
    out = parser.parse_args().out
    distances, logits, truths, classes = example()
    for tensor in distances + logits:
        tensor.requires_grad_()
    loss, targets, boxes = loss_of(distances, logits, truths, classes)
    loss.backward()
    rows = {"loss": loss, "boxes": truths, "classes": classes, "detected": boxes}
    for i, (d, x) in enumerate(zip(distances, logits)):
        rows |= {f"distances.{i}": d, f"logits.{i}": x, f"distances.{i}.grad": d.grad,
                 f"logits.{i}.grad": x.grad}
    with open(out, "w") as file:
        for name, tensor in rows.items():
            file.write(f"{name} {numbers(tensor.detach()).replace(',', ' ')}\n")
    scores = torch.cat([x.flatten(2) for x in logits], 2).transpose(1, 2).detach().sigmoid()
    rounded = lambda t: torch.round(t.detach() * 1e4) / 1e4
    scores, boxes = rounded(scores), rounded(boxes)
    anchors, strides = places()
    targets = [assign(scores[i], boxes[i], anchors * strides, truths[i], classes[i])
               for i in range(len(scores))]
    print(case_lines(scores, boxes, truths, classes, targets))


if __name__ == "__main__":
    main()
