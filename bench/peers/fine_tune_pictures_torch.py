"""fine_tune_pictures_torch.py WEIGHTS PICTURES SEED EPOCHS: torchvision's resnet18 starts from WEIGHTS
but for its head, and learns the classes of PICTURES/train, as bench/fine_tuning.py has ridge do it.
Plain PyTorch. Prints one JSON line."""
import json, math, os, statistics, sys, time
T0 = time.perf_counter()
import numpy as np, torch, torch.nn.functional as F
from PIL import Image
from safetensors.torch import load_file
from torch.utils.data import DataLoader, TensorDataset
from torchvision.models import resnet18
weights, pictures, seed, epochs = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])
BATCH, LR = 32, 3e-4
torch.manual_seed(seed)
torch.set_num_threads(len(os.sched_getaffinity(0)))
kinds = sorted(os.listdir(f'{pictures}/train'))
def read(part):
    images, labels = [], []
    for label, kind in enumerate(kinds):
        for name in sorted(os.listdir(f'{pictures}/{part}/{kind}')):
            images.append(np.asarray(Image.open(f'{pictures}/{part}/{kind}/{name}').convert('RGB'))); labels.append(label)
    x = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 255
    return TensorDataset((x - 0.5) / 0.5, torch.tensor(labels))
net = resnet18(num_classes=len(kinds))
state = {k: v for k, v in load_file(weights).items() if not k.startswith('fc.')}
missing, unexpected = net.load_state_dict(state, strict=False)
assert not unexpected and all(k.startswith('fc.') or k.endswith('num_batches_tracked') for k in missing), (missing, unexpected)
net.train()
train, val = read('train'), read('val')
loader = DataLoader(train, batch_size=BATCH, shuffle=True, drop_last=True)
steps = epochs * len(loader)
opt = torch.optim.Adam(net.parameters(), LR)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: (1 + math.cos(math.pi * i / steps)) / 2)
times = []
for _ in range(epochs):
    for x, label in loader:
        t = time.perf_counter()
        flipped = torch.rand(len(x)) < 0.5
        x = torch.where(flipped[:, None, None, None], x.flip(3), x)
        opt.zero_grad(); F.cross_entropy(net(x), label).backward(); opt.step(); schedule.step()
        times.append(time.perf_counter() - t)
net.eval()
with torch.no_grad():
    hits = sum((net(x).argmax(1) == y).sum().item() for x, y in DataLoader(val, batch_size=BATCH))
peak = next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')) / 1024
print(json.dumps(dict(accuracy=hits / len(val), samples=len(train), held_out=len(val), steps=len(times), step_ms=statistics.median(times[3:]) * 1e3, peak_mb=round(peak, 1), wall_s=round(time.perf_counter() - T0, 1))))
