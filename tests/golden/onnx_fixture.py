"""What the scripts that make tests/golden/onnx have in common: model files without their weights."""
import onnx


def strip(proto):
    """Takes out what no program reads."""
    proto.ClearField("doc_string")
    del proto.metadata_props[:]
    signature = [p for p in proto.graph.metadata_props if p.key.endswith("graph_signature")]
    graphs = [proto.graph]
    while graphs:
        graph = graphs.pop()
        graph.ClearField("doc_string")
        del graph.metadata_props[:], graph.value_info[:]
        for item in [*graph.node, *graph.input, *graph.output, *graph.initializer]:
            item.ClearField("doc_string")
            del item.metadata_props[:]
        for node in graph.node:
            node.ClearField("name")
            graphs += [a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH]
    for function in proto.functions:
        function.ClearField("doc_string")
        del function.metadata_props[:], function.value_info[:]
        for node in function.node:
            node.ClearField("doc_string")
            del node.metadata_props[:]
    proto.graph.metadata_props.extend(signature)  # it says what is trained


def move_out(tensor, dtype, offset):
    """Makes an initializer external data, at an offset of DTYPE.weights; -> the offset behind it."""
    size = onnx.numpy_helper.to_array(tensor).nbytes
    for field in ("raw_data", "float_data", "double_data"):
        tensor.ClearField(field)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", f"{dtype}.weights"), ("offset", str(offset)),
                       ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return offset + size
