#!/usr/bin/env python3
"""Reads the weights of a trained ONNX file back into the Keras model that it was exported from.

    keras_weights.py model.keras exported.onnx trained.onnx --out trained.keras

Keras's exporter (tf2onnx) renames weights, transposes them, orders the gates of an LSTM anew and
folds batch norm into the layer before it.  So each initializer of exported.onnx is recognized by its
numbers, and that of the same name in trained.onnx is brought back the same way.  Fails when a weight
of the model is not in the file.  Needs keras (TensorFlow's backend), onnx and numpy.

Batch norm is trained in its folded form: the statistics and the scale of a norm stay, what changed
comes back in the kernel before it and in its shift.
"""
import argparse
import dataclasses
import sys

import numpy as np

TOLERANCE = 1e-5  # f32 that was multiplied once


@dataclasses.dataclass
class Form:
    """How a weight of the file is made of Keras's, and back; both get and give arrays by path."""
    path: str  # of the variable that `back` makes
    forward: object  # values -> array
    back: object  # (values, array) -> the variable
    within: tuple = ()  # paths of others that the file's weight stands for


def norm_after(model, layer):
    """The batch norm that reads the layer's output, and that alone."""
    import keras
    for norm in model.layers:
        if isinstance(norm, keras.layers.BatchNormalization) and norm.input is layer.output:
            return norm
    return None


def scale_of(norm, values):
    """gamma / sqrt(variance + epsilon)"""
    gamma = values[norm.gamma.path] if norm.scale else 1.0
    return gamma / (values[norm.moving_variance.path] + norm.epsilon) ** 0.5


def turned(layer, keras):
    """-> the axes of the file's kernel in Keras's, and Keras's axes of output channels."""
    rank = len(layer.kernel.shape)
    if isinstance(layer, keras.layers.DepthwiseConv2D):
        return (2, 3, 0, 1), 2
    if isinstance(layer, (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)):
        return (rank - 1, rank - 2, *range(rank - 2)), 1
    return tuple(range(rank)), 1


def kernel_form(layer, keras, norm):
    """The kernel, times the scale of a norm that was folded into it."""
    from keras import ops
    axes, outputs = turned(layer, keras)
    path, shape = layer.kernel.path, tuple(layer.kernel.shape)
    lies = [shape[a] for a in axes]  # a depthwise kernel's channels are one axis in the file
    inverse = [int(a) for a in np.argsort(axes)]

    def scale(values):
        return 1.0 if norm is None else ops.reshape(scale_of(norm, values), shape[-outputs:])

    within = (norm.gamma.path,) if norm is not None and norm.scale else ()
    return Form(path, lambda v: ops.transpose(v[path] * scale(v), axes),
                lambda v, a: ops.transpose(ops.reshape(a, lies), inverse) / scale(v), within)


def shift_form(layer, norm):
    """The bias of a layer that a norm was folded into: the norm's shift."""
    from keras import ops
    beta = norm.beta.path

    def moved(values):
        bias = values[layer.bias.path] if layer.use_bias else 0.0
        return (bias - values[norm.moving_mean.path]) * scale_of(norm, values)

    return Form(beta, lambda v: v[beta] + moved(v), lambda v, a: ops.reshape(a, (-1,)) - moved(v),
                (layer.bias.path,) if layer.use_bias else ())


def kernel_forms(model, layer, keras):
    """A convolution or dense layer, with or without the batch norm behind it."""
    norm = norm_after(model, layer)
    if norm is not None:
        yield kernel_form(layer, keras, norm)
        if norm.center:
            yield shift_form(layer, norm)
    yield kernel_form(layer, keras, None)


def lstm_forms(layer):
    """Gates are i, f, c, o in Keras and i, o, f, c in ONNX, which has two biases."""
    from keras import ops
    units = layer.units
    kernel, recurrent = layer.cell.kernel.path, layer.cell.recurrent_kernel.path

    def reorder(x, order):
        parts = ops.split(x, 4, axis=-1)
        return ops.concatenate([parts[i] for i in order], axis=-1)

    for path in (kernel, recurrent):
        yield Form(path, lambda v, p=path: ops.transpose(reorder(v[p], (0, 3, 1, 2)))[None],
                   lambda v, a: reorder(ops.transpose(a[0]), (0, 2, 3, 1)))
    if layer.use_bias:
        bias = layer.cell.bias.path
        yield Form(bias, lambda v: ops.concatenate([reorder(v[bias], (0, 3, 1, 2)),
                                                    ops.zeros(4 * units, v[bias].dtype)])[None],
                   lambda v, a: reorder(a[0, :4 * units] + a[0, 4 * units:], (0, 2, 3, 1)))


def norm_forms(norm):
    """A batch norm that was not folded: scale and shift."""
    from keras import ops
    mean, variance = norm.moving_mean.path, norm.moving_variance.path
    if norm.scale:
        yield Form(norm.gamma.path, lambda v: scale_of(norm, v),
                   lambda v, a: ops.reshape(a, (-1,)) * (v[variance] + norm.epsilon) ** 0.5)
    if norm.center:
        beta = norm.beta.path
        yield Form(beta, lambda v: v[beta] - v[mean] * scale_of(norm, v),
                   lambda v, a: ops.reshape(a, (-1,)) + v[mean] * scale_of(norm, v))


def plain_form(variable):
    from keras import ops
    path, shape = variable.path, tuple(variable.shape)
    return Form(path, lambda v: v[path], lambda v, a: ops.reshape(a, shape))


def all_forms(model):
    import keras
    for layer in model._flatten_layers(include_self=False, recursive=True):
        if hasattr(layer, "kernel") and hasattr(layer, "use_bias"):
            yield from kernel_forms(model, layer, keras)
        elif isinstance(layer, keras.layers.LSTM):
            yield from lstm_forms(layer)
        elif isinstance(layer, keras.layers.BatchNormalization):
            yield from norm_forms(layer)
    yield from (plain_form(variable) for variable in model.trainable_variables)


def values_of(model):
    return {variable.path: np.asarray(variable) for variable in model.variables}


def same(array, form, values):
    made = np.asarray(form.forward(values)).reshape(-1)
    if made.size != array.size:
        return False
    return np.abs(made - array.reshape(-1)).max() <= TOLERANCE * max(np.abs(made).max(), 1e-30)


def match(model, initializers):
    """-> [(name of an initializer, Form)], scales before shifts; initializers: name -> array."""
    values, found, made = values_of(model), [], set()
    for form in all_forms(model):
        taken = {name for name, _ in found}
        name = next((n for n, array in initializers.items()
                     if n not in taken and same(array, form, values)), None)
        if name is not None and form.path not in made:
            found.append((name, form))
            made |= {form.path, *form.within}
    missing = [v.path for v in model.trainable_variables if v.path not in made]
    if missing:
        raise SystemExit(f"not in the ONNX file: {', '.join(missing)}. hint: tf2onnx leaves out "
                         "what is zero and joins what is equal: set or train the weights first")
    return found


def read_back(found, arrays, values):
    """-> values by path with those of the file; `arrays`: name of an initializer -> array."""
    values = dict(values)
    for name, form in found:
        values[form.path] = form.back(values, arrays[name])
    return values


def float_initializers(path):
    import onnx
    from onnx import numpy_helper
    arrays = {t.name: numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
    return {name: array for name, array in arrays.items() if array.dtype.kind == "f"}


def assign(model, values):
    for variable in model.variables:
        variable.assign(values[variable.path])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="the Keras model that was exported")
    parser.add_argument("exported", help="its ONNX file")
    parser.add_argument("trained", help="the file that `ridge export --to onnx` wrote")
    parser.add_argument("--out", required=True, help="the Keras model with the trained weights")
    arguments = parser.parse_args()
    import keras
    model = keras.models.load_model(arguments.model)
    found = match(model, float_initializers(arguments.exported))
    assign(model, read_back(found, float_initializers(arguments.trained), values_of(model)))
    model.save(arguments.out)
    print(f"{arguments.out}: {len(found)} weights read back")


if __name__ == "__main__":
    sys.exit(main())
