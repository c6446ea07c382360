#!/usr/bin/env python3
"""Writes tests/golden/folders/: tiny models as transformers saves them, with logits of one batch.

A folder has what `save_pretrained` wrote (config.json, model.safetensors with random weights),
input.json (the arrays) and logits.json; losses.json has those of a training.
tests/e2e/model_folders.py reads them with `ridge run` and `ridge train`.
Needs torch and transformers.
"""
import json
import os
import shutil

import numpy as np
import torch
import transformers as hf

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "folders")
LENGTHS = [12, 5, 9]
VOCAB = 40


def randomize(model):
    """Weights as large as trained ones are."""
    torch.manual_seed(1)
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            norm = "norm" in name.lower() and name.endswith("weight")
            value.uniform_(0.5, 1.5) if norm else value.normal_(0, value.shape[-1] ** -0.5)


def masked_batch():
    random = np.random.default_rng(3)
    ids = random.integers(1, VOCAB, (len(LENGTHS), max(LENGTHS)))
    mask = np.arange(max(LENGTHS)) < np.array(LENGTHS)[:, None]
    return {"tokens": ids * mask, "attention_mask": mask.astype(np.int64)}


def save(name, model, arrays, logits, modules=None):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    model.save_pretrained(folder)
    for extra in set(os.listdir(folder)) - {"config.json", "model.safetensors"}:
        os.remove(os.path.join(folder, extra))
    for file, content in (modules or {}).items():
        os.makedirs(os.path.dirname(os.path.join(folder, file)), exist_ok=True)
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            json.dump(content, out)
    lists = {key: array.tolist() for key, array in arrays.items()}
    for file, content in {"input": lists, "logits": logits.tolist()}.items():
        with open(os.path.join(folder, file + ".json"), "w", encoding="utf-8") as out:
            json.dump(content, out)


def bert_config(**changes):
    return hf.BertConfig(**{**dict(vocab_size=VOCAB, hidden_size=12, num_hidden_layers=2,
                                   num_attention_heads=3, intermediate_size=20,
                                   max_position_embeddings=24, type_vocab_size=3), **changes})


def adam_losses(model, arrays):
    """Of ten steps on the batch, labels 0, 1, 2; in training mode, which drops nothing here."""
    model.train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    model.config.attention_probs_dropout_prob = 0.0
    for layer in model.bert.encoder.layer:
        layer.attention.self.dropout.p = 0.0
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(torch.tensor(arrays["tokens"]), torch.tensor(arrays["attention_mask"]),
                     labels=torch.arange(len(LENGTHS))).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def bert_classifier():
    config = bert_config(layer_norm_eps=1e-3, hidden_act="gelu_new", num_labels=4)
    model = hf.BertForSequenceClassification(config).eval()
    randomize(model)
    arrays = masked_batch()
    with torch.no_grad():
        logits = model(torch.tensor(arrays["tokens"]),
                       torch.tensor(arrays["attention_mask"])).logits
    save("bert_classifier", model, arrays, logits)
    with open(os.path.join(HERE, "bert_classifier", "losses.json"), "w", encoding="utf-8") as out:
        json.dump(adam_losses(model, arrays), out)


def bert_sentences():
    """The bare model, pooled as sentence-transformers does; the logits are the pooled vectors."""
    model = hf.BertModel(bert_config(hidden_act="relu"), add_pooling_layer=False).eval()
    randomize(model)
    arrays = masked_batch()
    mask = torch.tensor(arrays["attention_mask"])
    with torch.no_grad():
        hidden = model(torch.tensor(arrays["tokens"]), mask).last_hidden_state
    weights = mask[..., None].float()
    pooled = (hidden * weights).sum(1) / weights.sum(1)
    kinds = ["Transformer", "Pooling", "Normalize"]
    save("bert_sentences", model, arrays, pooled, {
        "modules.json": [{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "",
                          "type": f"sentence_transformers.models.{kind}"}
                         for i, kind in enumerate(kinds)],
        "1_Pooling/config.json": {"word_embedding_dimension": 12, "pooling_mode_cls_token": False,
                                  "pooling_mode_mean_tokens": True}})


def language(name, model):
    model = model.eval()
    randomize(model)
    model.tie_weights()
    tokens = np.random.default_rng(5).integers(0, VOCAB, (2, 10))
    with torch.no_grad():
        logits = model(torch.tensor(tokens)).logits
    save(name, model, {"tokens": tokens}, logits)


def gpt2():
    language("gpt2", hf.GPT2LMHeadModel(hf.GPT2Config(
        vocab_size=VOCAB, n_positions=16, n_embd=12, n_layer=2, n_head=3, n_inner=20,
        layer_norm_epsilon=1e-3)))


def llama():
    common = dict(vocab_size=VOCAB, hidden_size=12, intermediate_size=20, num_hidden_layers=2,
                  num_attention_heads=3, max_position_embeddings=32)
    language("llama", hf.LlamaForCausalLM(hf.LlamaConfig(
        num_key_value_heads=3, rms_norm_eps=1e-3, rope_theta=500.0, **common)))
    language("llama_tied", hf.LlamaForCausalLM(hf.LlamaConfig(
        num_key_value_heads=1, tie_word_embeddings=True, **common)))


def vit():
    model = hf.ViTForImageClassification(hf.ViTConfig(
        image_size=12, patch_size=4, num_channels=3, hidden_size=12, num_hidden_layers=2,
        num_attention_heads=3, intermediate_size=20, layer_norm_eps=1e-3, hidden_act="gelu",
        num_labels=5)).eval()
    randomize(model)
    image = np.random.default_rng(6).normal(size=(2, 3, 12, 12)).astype(np.float32).round(3)
    with torch.no_grad():
        logits = model(torch.tensor(image)).logits
    save("vit", model, {"image": image}, logits)


def main():
    for make in (bert_classifier, bert_sentences, gpt2, llama, vit):
        make()


if __name__ == "__main__":
    main()
