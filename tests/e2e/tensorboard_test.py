#!/usr/bin/env python3
"""TensorBoard itself reads what a run wrote.

    tensorboard_test.py            trains a tiny model, then checks its run folder
    tensorboard_test.py RUN        checks the run folder RUN

Needs build/deps/test-venv (scripts/setup.sh --test-tools) and, without RUN, the program $RIDGE.
"""
import json
import math
import os
import subprocess
import sys
import tempfile

SOURCE = os.environ.get(
    "RIDGE_SOURCE_DIR",
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
PYTHON = os.environ.get("RIDGE_TEST_PYTHON", os.path.join(SOURCE, "build/deps/test-venv/bin/python"))
RIDGE = os.environ.get("RIDGE", os.path.join(SOURCE, "build/release/bin/ridge"))
TAGS = ("train/loss", "train/lr")  # of every run; accuracy and validation where there are any


def train(folder):
    subprocess.run(
        [RIDGE, "train", "mlp", "--data", "synthetic", "--batch", "8", "--steps", "30",
         "--validation", "0.25", "--out", folder, "--progress", "none"],
        check=True, stdout=subprocess.DEVNULL)


def read_metrics(run):
    with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def check_scalars(run):
    """The accumulator finds every tag, and train/loss is what metrics.jsonl says."""
    from tensorboard.backend.event_processing import event_accumulator
    accumulator = event_accumulator.EventAccumulator(run, size_guidance={"scalars": 0})
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    for tag in TAGS:
        assert tag in tags, f"{run}: no tag {tag}; there are {tags}"
    for tag in tags:
        points = accumulator.Scalars(tag)
        steps = [point.step for point in points]
        assert steps == sorted(set(steps)), f"{run}: steps of {tag} do not grow: {steps}"
        metadata = accumulator.SummaryMetadata(tag)
        assert metadata.plugin_data.plugin_name == "scalars", f"{run}: {tag} has {metadata}"
    metrics_path = os.path.join(run, "metrics.jsonl")
    if os.path.exists(metrics_path):
        compare_with_metrics(run, {p.step: p.value for p in accumulator.Scalars("train/loss")})
    return tags


def compare_with_metrics(run, loss_at):
    compared = 0
    for report in read_metrics(run):
        if report.get("loss") is None or report["step"] not in loss_at:
            continue
        shown = loss_at[report["step"]]  # a float32
        assert math.isclose(shown, report["loss"], rel_tol=1e-6, abs_tol=1e-30), \
            f"{run}: step {report['step']}: train/loss is {shown}, metrics.jsonl says {report['loss']}"
        compared += 1
    assert compared > 0, f"{run}: metrics.jsonl and the event file share no step"


def check_new_style(run):
    """The way TensorBoard's own pages read: old-style values are migrated to tensors."""
    from tensorboard.backend.event_processing import plugin_event_accumulator
    accumulator = plugin_event_accumulator.EventAccumulator(run)
    accumulator.Reload()
    content = accumulator.PluginTagToContent("scalars")
    for tag in TAGS:
        assert tag in content, f"{run}: the scalars page would not show {tag}"


def load_floats(path):
    """The f32 tensors of a safetensors file."""
    import numpy
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        data = file.read()
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], "<f4")
            for name, entry in header.items() if entry.get("dtype") == "F32"}


def last_histogram(accumulator, tag):
    """(left, right, count) of the buckets at the last step, and that step."""
    from tensorboard.util import tensor_util
    event = accumulator.Tensors(tag)[-1]
    return tensor_util.make_ndarray(event.tensor_proto), event.step


def check_histograms(run, accumulator):
    """Each parameter has its weights and the mean of its gradients; counts and range are those of
    the newest checkpoint."""
    import numpy
    content = accumulator.PluginTagToContent("histograms")
    folder = os.path.join(run, "checkpoints")
    newest = max((f for f in os.listdir(folder) if f.startswith("step-")),
                 key=lambda f: int(f[len("step-"):]))
    weights = load_floats(os.path.join(folder, newest, "parameters.safetensors"))
    assert weights, f"{run}: no parameters"
    for name, weight in weights.items():
        assert f"momentum/{name}" in content, f"{run}: no histogram of the momentum of {name}"
        buckets, step = last_histogram(accumulator, f"weights/{name}")
        assert step == int(newest[len("step-"):]), f"{run}: the histogram of {name} is of step {step}"
        low, high = buckets[0][0], buckets[-1][1]
        if weight.size <= 65536:
            assert buckets[:, 2].sum() == weight.size, f"{run}: {name} misses elements: {buckets}"
            expected = numpy.histogram(weight.astype("f8"), bins=30)[0]
            assert numpy.abs(buckets[:, 2] - expected).sum() <= 2, f"{run}: {name}: {buckets}"
        assert low <= weight.min() or weight.size > 65536, f"{run}: {name} starts at {low}"
        assert high >= weight.max() or weight.size > 65536, f"{run}: {name} ends at {high}"
    return len(weights)


def check_hyperparameters(run, accumulator):
    from tensorboard.plugins.hparams import metadata
    content = accumulator.PluginTagToContent("hparams")
    start = metadata.parse_session_start_info_plugin_data(content[metadata.SESSION_START_INFO_TAG])
    with open(os.path.join(run, "options.json"), encoding="utf-8") as file:
        options = json.load(file)
    assert start.hparams["model"].string_value == options["model"], start
    assert start.hparams["lr"].number_value == options["lr"], start
    assert start.hparams["batch"].number_value == options["batch"], start
    if os.path.exists(os.path.join(run, "summary.json")):
        end = metadata.parse_session_end_info_plugin_data(content[metadata.SESSION_END_INFO_TAG])
        assert end.status == 1, f"{run}: the session has not ended well: {end}"  # STATUS_SUCCESS


def check_graph(run, accumulator):
    """The graph's nodes read only nodes that are there, and parameters have their shapes."""
    from tensorboard.compat.proto import graph_pb2
    nodes = {node.name: node for node in accumulator.Graph().node}
    assert len(nodes) == len(accumulator.Graph().node), f"{run}: nodes of one name"
    for node in nodes.values():
        for name in node.input:
            assert name.split(":")[0] in nodes, f"{run}: {node.name} reads {name}"
    parameters = [n for n in nodes.values() if n.op == "Parameter"]
    assert parameters, f"{run}: no parameters in {graph_pb2.GraphDef.__name__}"
    for node in parameters:
        assert node.attr["_output_shapes"].list.shape[0].dim, f"{run}: {node.name} has no shape"
    return len(nodes)


def check_pictures(run, accumulator):
    """Pictures of the page IMAGES are PNG files."""
    record = os.path.join(run, "evaluation.json")
    if not os.path.exists(record):
        return []
    content = accumulator.PluginTagToContent("images")
    with open(record, encoding="utf-8") as file:
        assert f"{json.load(file)['data']}/confusion" in content, f"{run}: {list(content)}"
    for tag in content:
        _, _, png = accumulator.Tensors(tag)[-1].tensor_proto.string_val
        assert png.startswith(b"\x89PNG"), f"{run}: {tag} is no PNG"
    return sorted(content)


def check(run):
    from tensorboard.backend.event_processing import plugin_event_accumulator
    tags = check_scalars(run)
    check_new_style(run)
    accumulator = plugin_event_accumulator.EventAccumulator(run, size_guidance={"tensors": 0})
    accumulator.Reload()
    check_hyperparameters(run, accumulator)
    print(f"ok: a graph of {check_graph(run, accumulator)} nodes")
    print(f"ok: pictures {check_pictures(run, accumulator)}")
    print(f"ok: histograms of {check_histograms(run, accumulator)} parameters")
    print(f"ok: TensorBoard reads {', '.join(tags)} of {run}")


def main():
    if not os.path.exists(PYTHON):
        sys.exit(f"missing: {PYTHON}; run scripts/setup.sh --test-tools")
    try:
        import tensorboard  # noqa: F401
    except ImportError:  # started with the system's python: go on in the environment that has it
        if os.environ.get("RIDGE_IN_TEST_PYTHON"):
            raise
        os.environ["RIDGE_IN_TEST_PYTHON"] = "1"
        os.execv(PYTHON, [PYTHON, os.path.abspath(__file__), *sys.argv[1:]])
    if len(sys.argv) > 1:
        check(sys.argv[1])
        return
    with tempfile.TemporaryDirectory() as folder:
        run = os.path.join(folder, "run")
        train(run)
        check(run)


if __name__ == "__main__":
    main()
