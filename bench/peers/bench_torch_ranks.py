"""A training step on several ranks -> one JSON line, of rank 0.

    torchrun --nproc-per-node N bench_torch_ranks.py MODEL BATCH STEPS ddp|deepspeed

BATCH is the global batch, each rank has its share.  DistributedDataParallel, or DeepSpeed (ZeRO 1),
over Gloo.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from models_torch import build

LEARNING_RATE = 1e-3


def status_bytes(key):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def step_of_ddp(model, loss_of_batch):
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of_batch(parallel)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def step_of_deepspeed(model, loss_of_batch):
    import deepspeed
    deepspeed.logger.setLevel("ERROR")
    config = {"train_micro_batch_size_per_gpu": 1, "zero_optimization": {"stage": 1}, "zero_allow_untested_optimizer": True}
    engine, *_ = deepspeed.initialize(model=model, optimizer=torch.optim.Adam(model.parameters(), LEARNING_RATE), config=config)

    def step():
        loss = loss_of_batch(engine)
        engine.backward(loss)
        engine.step()
        return float(loss.detach())

    return step


STEPS_OF = {"ddp": step_of_ddp, "deepspeed": step_of_deepspeed}


def main():
    model_name, batch, steps, engine = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    base = status_bytes("VmRSS")
    dist.init_process_group("gloo")
    model, inputs, target, loss_of = build(model_name, batch // dist.get_world_size())
    model.train()
    step = STEPS_OF[engine](model, lambda forward: loss_of(forward(*inputs), target))
    for _ in range(3):
        step()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    if dist.get_rank() == 0:
        print(json.dumps({"fw": f"torch {engine}", "ver": torch.__version__, "model": model_name, "batch": batch,
                          "ranks": dist.get_world_size(), "ms_min": 1e3 * times[0], "ms_med": 1e3 * times[len(times) // 2],
                          "peak_mb": (status_bytes("VmHWM") - base) / 2**20}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
