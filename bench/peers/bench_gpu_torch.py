"""bench_gpu_torch.py MODEL BATCH [eager|compile] [STEPS] -> one JSON line: a bf16 training step on the GPU.

gpt2 (124M, 1024 tokens), bert_large (128 tokens), resnet50 (channels last); autocast, fused Adam,
no dropout, one random batch, as `ridge bench step MODEL --precision bf16 --device cuda` has them.

BENCH_TOGETHER=FOLDER: several of these compile side by side; each writes FOLDER/ready.* when it is
warm, waits for FOLDER/go, and times alone."""
import fcntl, json, os, sys, time
T0 = time.perf_counter()
import torch, torch.nn as nn, torch.nn.functional as F

name, batch = sys.argv[1], int(sys.argv[2])
mode = sys.argv[3] if len(sys.argv) > 3 else 'eager'
steps = int(sys.argv[4]) if len(sys.argv) > 4 else 30
torch.manual_seed(0)
torch.backends.cudnn.benchmark = True


class GPT2(nn.Module):
    def __init__(self, vocab=50257, ctx=1024, d=768, layers=12, heads=12):
        super().__init__()
        self.tok, self.pos, self.h = nn.Embedding(vocab, d), nn.Embedding(ctx, d), heads
        self.blocks = nn.ModuleList([nn.ModuleDict(dict(ln1=nn.LayerNorm(d), qkv=nn.Linear(d, 3 * d),
            proj=nn.Linear(d, d), ln2=nn.LayerNorm(d), up=nn.Linear(d, 4 * d), down=nn.Linear(4 * d, d)))
            for _ in range(layers)])
        self.lnf, self.head = nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
        self.head.weight = self.tok.weight
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, std=0.02)

    def forward(self, t):
        B, T = t.shape
        x = self.tok(t) + self.pos(torch.arange(T, device=t.device))
        for b in self.blocks:
            q, k, v = b['qkv'](b['ln1'](x)).view(B, T, 3, self.h, -1).permute(2, 0, 3, 1, 4)
            a = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(B, T, -1)
            x = x + b['proj'](a)
            x = x + b['down'](F.gelu(b['up'](b['ln2'](x)), approximate='tanh'))
        return self.head(self.lnf(x))


def build():
    if name == 'gpt2':
        t = torch.randint(0, 50257, (batch, 1024), device='cuda')
        return GPT2(), (t,), torch.randint(0, 50257, (batch, 1024), device='cuda')
    if name == 'bert_large':
        from transformers import BertConfig, BertForSequenceClassification

        class Bert(nn.Module):
            def __init__(self):
                super().__init__()
                self.m = BertForSequenceClassification(BertConfig(hidden_size=1024, num_hidden_layers=24,
                    num_attention_heads=16, intermediate_size=4096, hidden_dropout_prob=0,
                    attention_probs_dropout_prob=0, num_labels=2, attn_implementation='sdpa'))
            def forward(self, t): return self.m(input_ids=t).logits
        return Bert(), (torch.randint(0, 30522, (batch, 128), device='cuda'),), torch.randint(0, 2, (batch,), device='cuda')
    if name != 'resnet50': sys.exit(f'{name}: no such model here')
    import torchvision
    x = torch.randn(batch, 3, 224, 224, device='cuda').to(memory_format=torch.channels_last)
    return torchvision.models.resnet50(), (x,), torch.randint(0, 1000, (batch,), device='cuda')


model, inputs, target = build()
model = model.cuda().train()
if name == 'resnet50': model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), 1e-3, fused=True)


def loss_of(*xs):
    with torch.autocast('cuda', torch.bfloat16):
        out = model(*xs)
        return F.cross_entropy(out.view(-1, out.shape[-1]), target.view(-1))


f = torch.compile(loss_of) if mode == 'compile' else loss_of


def step():
    optimizer.zero_grad(set_to_none=True)
    loss = f(*inputs)
    loss.backward()
    optimizer.step()
    return loss


loss0 = float(step().detach()); first = time.perf_counter() - T0
for _ in range(5): step()
torch.cuda.synchronize()
together = os.environ.get('BENCH_TOGETHER')
if together:
    open(f'{together}/ready.{name}.{batch}.{mode}', 'w').close()
    while not os.path.exists(together + '/go'): time.sleep(0.1)
    lock = open(together + '/lock', 'w'); fcntl.flock(lock, fcntl.LOCK_EX)
    for _ in range(3): step()
    torch.cuda.synchronize()
times = []
for _ in range(3):  # rounds without a wait inside: the host runs ahead
    a = time.perf_counter()
    for _ in range(steps): loss = step()
    torch.cuda.synchronize()
    times.append((time.perf_counter() - a) / steps)
times.sort()
free, total = torch.cuda.mem_get_info()  # with the context, as the driver counts it
print(json.dumps(dict(fw='torch', ver=torch.__version__, gpu=torch.cuda.get_device_name(), mode=mode, model=name, batch=batch,
    ms_min=round(times[0] * 1e3, 3), ms_med=round(times[1] * 1e3, 3), samples_s=round(batch / times[1], 1),
    first_step_s=round(first, 2), reserved_mb=round(torch.cuda.max_memory_reserved() / 2**20, 1),
    used_mb=round((total - free) / 2**20, 1), allocated_mb=round(torch.cuda.max_memory_allocated() / 2**20, 1), loss0=round(loss0, 4), loss=round(float(loss), 4))))
