"""fine_tune_torch.py ENCODER TEXTS SEED EPOCHS: a BERT encoder with mean pooling and a linear
head learns the categories of TEXTS/train, as bench/fine_tuning.py has ridge do it. Plain PyTorch and
transformers, without dropout. Prints one JSON line."""
import json, math, os, statistics, sys, time
T0 = time.perf_counter()
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoTokenizer, BertModel
encoder, texts, seed, epochs = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5])
BATCH, LENGTH, LR = 16, 48, 1e-4
torch.manual_seed(seed)
torch.set_num_threads(len(os.sched_getaffinity(0)))
tokenizer = AutoTokenizer.from_pretrained(encoder)
kinds = sorted(os.listdir(f'{texts}/train'))
def read(part):
    records, labels = [], []
    for label, kind in enumerate(kinds):
        for record in open(f'{texts}/{part}/{kind}', encoding='utf-8', errors='replace').read().split('\n%\n'):
            if record.strip(): records.append(record.strip()); labels.append(label)
    t = tokenizer(records, padding='max_length', truncation=True, max_length=LENGTH, return_tensors='pt')
    return TensorDataset(t['input_ids'], t['attention_mask'], torch.tensor(labels))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel.from_pretrained(encoder, add_pooling_layer=False, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        self.head = nn.Linear(self.bert.config.hidden_size, len(kinds))
        nn.init.normal_(self.head.weight, std=0.02); nn.init.zeros_(self.head.bias)
    def forward(self, ids, mask):
        h, m = self.bert(ids, attention_mask=mask).last_hidden_state, mask[..., None].float()
        return self.head((h * m).sum(1) / m.sum(1))
train, val = read('train'), read('val')
loader = DataLoader(train, batch_size=BATCH, shuffle=True, drop_last=True)
net = Net().train()
steps = epochs * len(loader)
opt = torch.optim.Adam(net.parameters(), LR)
schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda i: (1 + math.cos(math.pi * i / steps)) / 2)
times = []
for _ in range(epochs):
    for ids, mask, label in loader:
        t = time.perf_counter()
        opt.zero_grad(); F.cross_entropy(net(ids, mask), label).backward(); opt.step(); schedule.step()
        times.append(time.perf_counter() - t)
net.eval()
with torch.no_grad():
    hits = sum((net(i, m).argmax(1) == y).sum().item() for i, m, y in DataLoader(val, batch_size=BATCH))
peak = next(int(l.split()[1]) for l in open('/proc/self/status') if l.startswith('VmHWM')) / 1024
print(json.dumps(dict(accuracy=hits / len(val), samples=len(train), held_out=len(val), steps=len(times), step_ms=statistics.median(times[3:]) * 1e3, peak_mb=round(peak, 1), wall_s=round(time.perf_counter() - T0, 1))))
