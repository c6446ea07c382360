#!/usr/bin/env python3
"""Makes the fixtures of Keras in tests/golden/onnx/: model files of its exporter, and its numbers.

usage: make_keras_golden.py [MODEL...]                  needs tensorflow, keras, tf2onnx, onnx
       make_keras_golden.py --read-back RIDGE [MODEL...]

Written is what make_onnx_golden.py writes of PyTorch; tests/e2e/onnx_golden.py reads both.  `state`
holds the file's initializers, from the counter formula; scripts/keras_weights.py says which weights
of Keras they are, and Keras computes gradients and losses through it in f64, evaluation mode.

--read-back trains each file with RIDGE, reads the weights back into Keras, and prints how far
Keras's output is from that of `ridge run`.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", KERAS_BACKEND="tensorflow")
os.environ.setdefault("RIDGE", "ridge")  # _ridge.py asks for one

import keras
import numpy as np
import onnx
import tensorflow as tf
from keras import layers

HERE = pathlib.Path(__file__).parent
sys.path += [str(HERE.parent / "e2e"), str(HERE.parents[1] / "scripts")]
import keras_weights
from onnx_fixture import move_out, strip
from onnx_golden import input_value, positions, state_value, uniform

FOLDER = HERE / "onnx"
STEPS = 10
POSITIONS = 16
BATCH = 4
RESULT = "Identity:0"  # how the exporter calls the output


def cnn():
    x = image = keras.Input((17, 17, 3), name="image")
    x = layers.Conv2D(16, 3, padding="same", use_bias=False, name="conv1")(x)
    x = layers.BatchNormalization(name="bn1")(x)
    x = layers.MaxPooling2D(2)(layers.ReLU()(x))
    x = layers.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    x = layers.Conv2D(32, 3, strides=2, padding="same", name="conv2")(x)
    x = layers.Activation("silu")(layers.BatchNormalization(name="bn2")(x))
    x = layers.Dropout(0.2)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(10, name="head")(x), name="keras_cnn")


def text():
    x = tokens = keras.Input((12,), dtype="int32", name="tokens")
    x = layers.Embedding(100, 32, name="embedding")(x)
    x = layers.LSTM(32, return_sequences=True, name="lstm")(x)
    x = layers.LayerNormalization(name="norm")(
        x + layers.MultiHeadAttention(4, 8, dropout=0.1, name="attention")(x, x))
    x = layers.Dense(64, activation="gelu", name="up")(x)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(tokens, layers.Dense(10, name="head")(x), name="keras_text")


SETTINGS = {  # name: builder, inputs, lr
    "keras_cnn": (cnn, {"image": {"dims": [BATCH, 17, 17, 3]}}, 0.1),
    "keras_text": (text, {"tokens": {"dims": [BATCH, 12], "below": 100, "type": "int32"}}, 0.5),
}
LABEL = {"label": {"dims": [BATCH], "below": 10}}


def build(name, dtype):
    """With weights and statistics that differ from zero and from each other, else they would not be
    in the file."""
    keras.backend.clear_session()
    keras.config.set_floatx(dtype)
    model = SETTINGS[name][0]()
    for variable in model.variables:
        drawn = uniform(variable.path, tuple(variable.shape))
        positive = variable.name in ("moving_variance", "gamma")
        variable.assign(0.5 + drawn if positive else 0.5 * drawn - 0.25)
    model(*input_of(name).values())  # export asks for a model that was called
    return model


def input_of(name):
    return {n: input_value(n, entry, "f64") for n, entry in SETTINGS[name][1].items()}


def export(model, path):
    model.export(str(path), format="onnx", verbose=False)
    return keras_weights.match(model, keras_weights.float_initializers(path))


def rename(proto, names):
    for node in proto.graph.node:
        for i, name in enumerate(node.input):
            node.input[i] = names.get(name, name)
    for tensor in proto.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)


def make_file(name, model, dtype):
    """-> dims of the initializers that were taken out of the file, and how Keras's weights follow.
    They are renamed to the path of Keras's weight: tf2onnx numbers some anew each time."""
    path = FOLDER / f"{name}_tf_{dtype}.onnx"
    found = export(model, path)
    proto = onnx.load(path)
    strip(proto)
    rename(proto, {initializer: form.path for initializer, form in found})
    tensors = {tensor.name: tensor for tensor in proto.graph.initializer}
    offset, state = 0, {}
    for _, form in found:
        offset = move_out(tensors[form.path], dtype, offset)
        state[form.path] = list(tensors[form.path].dims)
    path.write_bytes(proto.SerializeToString())
    print(f"{path.name}: {path.stat().st_size} bytes, {len(proto.graph.node)} nodes", flush=True)
    return state, [(form.path, form) for _, form in found]


class FileWeights:
    """The model as a function of the file's initializers."""

    def __init__(self, model, state, found):
        self.model, self.found = model, found
        golden = {"state": state, "scaled": ["^$", 1.0]}
        self.variables = {n: tf.Variable(state_value(n, golden), dtype="float64") for n in state}
        self.constants = keras_weights.values_of(model)

    def __call__(self, inputs):
        (inputs,) = inputs.values()
        values = keras_weights.read_back(self.found, self.variables, self.constants)
        trained, rest = ([values[v.path] for v in variables] for variables in (
            self.model.trainable_variables, self.model.non_trainable_variables))
        return self.model.stateless_call(trained, rest, inputs, training=False)[0]

    def gradients(self, function, inputs):
        with tf.GradientTape() as tape:
            result = function(self(inputs))
        return result, tape.gradient(result, self.variables)


def losses(weights, inputs, label, lr):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.SGD(lr)
    variables = [keras.Variable(v, dtype="float64") for v in weights.variables.values()]
    result = []
    for _ in range(STEPS):
        value, gradients = weights.gradients(lambda y: loss(label, y), inputs)
        result.append(float(value))
        optimizer.apply(list(gradients.values()), variables)
        for ours, updated in zip(weights.variables.values(), variables):
            ours.assign(updated.value)
    return result


def describe(tensor):
    flat = np.asarray(tensor, dtype=np.float64).reshape(-1)
    return {"dims": list(tensor.shape), "norm": round_10(np.linalg.norm(flat)),
            "sum": round_10(flat.sum()), "max": round_10(np.abs(flat).max()),
            "values": [round_10(flat[p]) for p in positions(flat.size, POSITIONS)]}


def round_10(x):
    return float(f"{float(x):.10g}")


def make(name):
    _, inputs, lr = SETTINGS[name]
    single, _ = make_file(name, build(name, "float32"), "f32")
    model = build(name, "float64")
    state, found = make_file(name, model, "f64")
    if state != single:
        raise SystemExit(f"{name}: f32 and f64 hold other initializers")
    weights = FileWeights(model, state, found)
    given, label = input_of(name), input_value("label", LABEL["label"], "f64")
    output = weights(given)
    _, gradients = weights.gradients(tf.reduce_sum, given)
    return {"keras": keras.__version__, "lr": lr, "scaled": ["^$", 1.0], "result": RESULT,
            "inputs": {**inputs, **LABEL}, "files": {"tf": list(state)}, "state": state,
            "losses": losses(weights, given, label, lr), "output": describe(output),
            "gradients": {n: describe(g) for n, g in gradients.items()}}


def write(name):
    path = FOLDER / f"{name}.json"
    text = json.dumps(make(name), separators=(",", ":"))
    for key in ("inputs", "files", "state", "losses", "output", "gradients"):
        text = text.replace(f'"{key}":', f'\n"{key}":')
    path.write_text(text.replace('},"', '},\n"') + "\n")
    print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def read_back(name, ridge):
    """Export, ridge train, ridge export, keras_weights.py, and both outputs."""
    ridge = os.path.abspath(ridge)
    model = build(name, "float32")
    given = {n: input_value(n, entry, "f32") for n, entry in SETTINGS[name][1].items()}
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model.keras")
        export(model, f"{folder}/model.onnx")
        np.savez(f"{folder}/in.npz", **given)
        np.savez(f"{folder}/data.npz", **given, label=input_value("label", LABEL["label"], "f64"))

        def run(*words):
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)

        run(ridge, "train", "model.onnx", "--data", "npz:data.npz", "--loss",
            f"cross_entropy:{RESULT}", "--batch", str(BATCH), "--epochs", "20", "--out", "run", "-q")
        run(ridge, "export", "run", "--to", "onnx", "--out", "trained.onnx")
        run(sys.executable, str(HERE.parents[1] / "scripts" / "keras_weights.py"), "model.keras",
            "model.onnx", "trained.onnx", "--out", "trained.keras")
        run(ridge, "run", "trained.onnx", "--inputs", "in.npz", "--outputs", "out.npz")
        before = np.asarray(model(*given.values()))
        ours = np.load(f"{folder}/out.npz")[RESULT]
        theirs = np.asarray(keras.models.load_model(f"{folder}/trained.keras")(*given.values()))
    largest = np.abs(theirs).max()
    print(f"{name}: training moved the output by {np.abs(ours - before).max() / largest:.1e}, "
          f"Keras's differs from it by {np.abs(ours - theirs).max() / largest:.1e}", flush=True)


def main(arguments):
    if arguments[:1] == ["--read-back"]:
        for name in arguments[2:] or SETTINGS:
            read_back(name, arguments[1])
        return
    for name in arguments or SETTINGS:
        write(name)


if __name__ == "__main__":
    main(sys.argv[1:])
