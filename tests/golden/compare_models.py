#!/usr/bin/env python3
"""Compares the logits of the built-in models with those of the public implementations.

Each public model gets random weights (and running statistics), is written as safetensors, read by
`ridge run MODEL --weights FILE`, and both evaluate the same random input.  Prints a table; exits
with 1 when a model differs by more than 1e-4 of its largest logit.

    compare_models.py --ridge build/release/bin/ridge [MODEL ...]

Needs torch, torchvision, timm, transformers and safetensors.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import numpy as np
import torch
from safetensors.torch import save_file


def torchvision_model(name, **options):
    import torchvision
    return getattr(torchvision.models, name)(**options)


def timm_model(name, image):
    import timm
    return timm.create_model(name, img_size=image)


def gpt2(**sizes):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(**sizes))


def bert(**sizes):
    from transformers import BertConfig, BertForSequenceClassification
    return BertForSequenceClassification(BertConfig(**sizes))


def llama(**sizes):
    from transformers import LlamaConfig, LlamaForCausalLM
    return LlamaForCausalLM(LlamaConfig(rms_norm_eps=1e-5, **sizes))


def whisper(frames, context, **sizes):
    from transformers import WhisperConfig, WhisperForConditionalGeneration
    config = WhisperConfig(max_source_positions=frames // 2, max_target_positions=context, **sizes)
    return WhisperForConditionalGeneration(config)


class Conformer(torch.nn.Module):
    """Two strided convolutions, blocks of Wav2Vec2Conformer, a linear layer to characters."""

    def __init__(self, mels, width, layers, heads, kernel, classes):
        torch.version.cuda = None  # of the torchaudio that transformers imports
        from transformers import Wav2Vec2ConformerConfig
        from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer as public
        super().__init__()
        config = Wav2Vec2ConformerConfig(
            hidden_size=width, num_attention_heads=heads, intermediate_size=4 * width, hidden_act="swish",
            conv_depthwise_kernel_size=kernel, position_embeddings_type="relative",
            attn_implementation="eager")
        self.subsampling = torch.nn.Module()
        self.subsampling.conv1 = torch.nn.Conv2d(1, width, 3, 2, 1)
        self.subsampling.conv2 = torch.nn.Conv2d(width, width, 3, 2, 1)
        self.subsampling.linear = torch.nn.Linear(width * ((mels + 3) // 4), width)
        self.encoder = torch.nn.Module()
        self.encoder.layers = torch.nn.ModuleList(
            public.Wav2Vec2ConformerEncoderLayer(config) for _ in range(layers))
        self.places = public.Wav2Vec2ConformerRelPositionalEmbedding(config)
        self.lm_head = torch.nn.Linear(width, classes)

    def forward(self, features, frame_count):
        x = features.transpose(1, 2).unsqueeze(1)
        for conv in (self.subsampling.conv1, self.subsampling.conv2):
            x = torch.relu(conv(x))
        x = self.subsampling.linear(x.transpose(1, 2).flatten(2))
        visible = torch.arange(x.shape[1]) < ((frame_count + 3) // 4).unsqueeze(1)
        mask = torch.where(visible, 0.0, -1e9)[:, None, None, :]
        for layer in self.encoder.layers:
            # Frames that are padding are zero before the convolution over time.
            hook = layer.conv_module.glu.register_forward_hook(
                lambda module, inputs, y: y * visible.unsqueeze(1))
            x = layer(x, attention_mask=mask, relative_position_embeddings=self.places(x))
            hook.remove()
        return self.lm_head(x)


class PictureAndText(torch.nn.Module):
    """ResNet-50 without its head and BERT, a classifier over the features of both."""

    def __init__(self, **sizes):
        from transformers import BertConfig, BertModel
        super().__init__()
        self.picture = torchvision_model("resnet50")
        self.picture.fc = torch.nn.Identity()
        self.bert = BertModel(BertConfig(**sizes))
        self.classifier = torch.nn.Linear(2048 + sizes["hidden_size"], 2)

    def forward(self, image, tokens):
        text = self.bert(tokens).pooler_output
        return self.classifier(torch.cat([self.picture(image), text], 1))

    def state_dict(self, *arguments, **options):
        """torchvision's names have no prefix."""
        state = super().state_dict(*arguments, **options)
        return {name.removeprefix("picture."): value for name, value in state.items()}


def sam(image):
    """The public checkpoints have 1e-6 in all norms, timm's default is torch's."""
    import functools
    import timm
    norm = functools.partial(torch.nn.LayerNorm, eps=1e-6)
    return timm.create_model("samvit_base_patch16", img_size=image, num_classes=1000,
                             norm_layer=norm)


def vision(*names, image=64):
    return {f"{name}:image={image}": (lambda name=name: torchvision_model(name), ("image", image))
            for name in names}


MODELS = {
    **vision("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "mobilenet_v3_small",
             "mobilenet_v3_large", "efficientnet_v2_s", "efficientnet_v2_m", "efficientnet_v2_l",
             "convnext_tiny", "convnext_small", "convnext_base"),
    "vit_ti:image=32": (lambda: timm_model("vit_tiny_patch16_224", 32), ("image", 32)),
    "vit_s:image=32": (lambda: timm_model("vit_small_patch16_224", 32), ("image", 32)),
    "vit_b:image=32": (lambda: timm_model("vit_base_patch16_224", 32), ("image", 32)),
    "vit_l14:image=28": (lambda: timm_model("vit_large_patch14_224", 28), ("image", 28)),
    "gpt2:context=16,layers=2": (lambda: gpt2(n_layer=2), ("tokens", 16, 50257)),
    "bert_mini:tokens=16": (lambda: bert(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024),
        ("tokens", 16, 30522)),
    "llama:context=16": (lambda: llama(
        vocab_size=5000, hidden_size=384, intermediate_size=1024, num_hidden_layers=6,
        num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=256),
        ("tokens", 16, 5000)),
    "whisper_tiny:frames=64,context=16": (lambda: whisper(64, 16), ("speech", (80, 64), 16, 51865)),
    "conformer_s:frames=90,classes=12,letters=8": (
        lambda: Conformer(80, 144, 16, 4, 31, 12), ("recording", (80, 90), 12)),
    "sam_vit_b:image=320": (lambda: sam(320), ("image", 320)),
    "resnet50_bert:image=64,tokens=16,hidden=256,layers=4,heads=4": (
        lambda: PictureAndText(hidden_size=256, num_hidden_layers=4, num_attention_heads=4,
                               intermediate_size=1024), ("image and tokens", 64, 16, 30522)),
}


def inputs_of(kind, sizes):
    """Arrays by the names of our inputs, and those that the public model takes, in order."""
    random = np.random.default_rng(0)
    if kind in ("image", "image and tokens"):
        image = random.normal(size=(2, 3, sizes[0], sizes[0])).astype("float32")
        if kind == "image":
            return {"image": image}, [image]
    if kind == "recording":
        features = random.normal(size=(2, *sizes[0])).astype("float32")
        counts = np.array([sizes[0][1], sizes[0][1] // 2 + 1])
        return {"features": features, "frame_count": counts}, [features, counts]
    tokens = random.integers(0, sizes[-1], size=(2, sizes[-2]))
    if kind == "image and tokens":
        return {"image": image, "tokens": tokens}, [image, tokens]
    if kind == "tokens":
        return {"tokens": tokens}, [tokens]
    features = random.normal(size=(2, *sizes[0])).astype("float32")
    return {"features": features, "tokens": tokens}, [features, None, tokens]


def randomize(model):
    """Weights as large as trained ones are: those at the start of many are zeros."""
    torch.manual_seed(1)
    for name, value in model.state_dict().items():
        if not value.is_floating_point() or name == "model.encoder.embed_positions.weight":
            continue  # whisper's sinusoids are no weights
        if name.endswith("running_var"):
            value.uniform_(0.5, 2)
        elif value.dim() == 1 and name.endswith("weight"):
            value.uniform_(0.5, 1.5)
        elif value.dim() >= 2:
            fan = value[0].numel()
            value.normal_(0, 1 / fan ** 0.5)
        else:
            value.normal_(0, 0.1)


def compare(ridge, spec, folder):
    make, (kind, *sizes) = MODELS[spec]
    model = make().eval()
    randomize(model)
    state = {k: v.clone().contiguous() for k, v in model.state_dict().items()}
    save_file(state, f"{folder}/w.safetensors")
    ours_in, theirs_in = inputs_of(kind, sizes)
    np.savez(f"{folder}/in.npz", **ours_in)
    with torch.no_grad():
        theirs = model(*(None if x is None else torch.from_numpy(x) for x in theirs_in))
    theirs = getattr(theirs, "logits", theirs).numpy()
    subprocess.run([ridge, "run", spec, "--weights", f"{folder}/w.safetensors", "--inputs",
                    f"{folder}/in.npz", "--outputs", f"{folder}/out.npz", "-q"], check=True)
    ours = np.load(f"{folder}/out.npz")["logits"]
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ridge", default="build/release/bin/ridge")
    parser.add_argument("models", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    worst = 0
    for spec in MODELS:
        name = spec.split(":")[0]
        if arguments.models and name not in arguments.models:
            continue
        with tempfile.TemporaryDirectory() as folder:
            difference = compare(os.path.abspath(arguments.ridge), spec, folder)
        print(f"{spec:32} {difference:.1e}", flush=True)
        worst = max(worst, difference)
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
