"""torchrun --nproc-per-node N bench_torch_ddp.py MODEL BATCH [STEPS] -> one JSON line, of rank 0.

DistributedDataParallel over Gloo: BATCH is the global batch, each rank has its share.
"""
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from models_torch import build


def status_bytes(key):
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key))


def main():
    model_name, batch = sys.argv[1], int(sys.argv[2])
    steps = int(sys.argv[3]) if len(sys.argv) > 3 else 10
    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    base = status_bytes("VmRSS")
    dist.init_process_group("gloo")
    model, inputs, target, loss_of = build(model_name, batch // dist.get_world_size())
    model.train()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(parallel(*inputs), target)
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    for _ in range(3):
        step()
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        times.append(time.perf_counter() - begin)
    times.sort()
    if dist.get_rank() == 0:
        print(json.dumps({"fw": "torch ddp", "ver": torch.__version__, "model": model_name, "batch": batch,
                          "ranks": dist.get_world_size(), "ms_min": 1e3 * times[0], "ms_med": 1e3 * times[len(times) // 2],
                          "peak_mb": (status_bytes("VmHWM") - base) / 2**20}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
