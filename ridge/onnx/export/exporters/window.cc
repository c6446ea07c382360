// ONNX exporters: convolutions and pools.
//
// Lists hold one entry a spatial dimension (padding: befores, then afters); an empty one stands for
// ones or zeros, which are ONNX's defaults too.
#include "ridge/onnx/export/exporter.h"

namespace ridge {
namespace {

void Copy(const OnnxNodeWriter& n, const char* from, const char* to, AttrMap& attrs) {
  if (!n.integers(from).empty()) attrs[to] = n.integers(from);
}

Status WriteConv(OnnxNodeWriter& n) {
  if (!n.text("epilogue").empty())
    return n.Unsupported("has an epilogue; export runs before passes");
  const Dims& weight = n.type(1).dims;
  AttrMap attrs = {{"group", n.integer("groups")},
                   {"kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end())}};
  Copy(n, "stride", "strides", attrs);
  Copy(n, "padding", "pads", attrs);
  Copy(n, "dilation", "dilations", attrs);
  const DType dtype = n.ComputeInWidest();
  std::vector<std::string> inputs = {n.As(0, dtype), n.As(1, dtype)};
  if (n.has_input(2)) inputs.push_back(n.As(2, dtype));
  n.EmitRounded("Conv", inputs, attrs, dtype);
  return Status();
}

// output_shape says what the strides leave open.
Status WriteConvTranspose(OnnxNodeWriter& n) {
  const Dims& weight = n.type(1).dims;
  const std::vector<ExportDim> y = n.extents().Dims(n.node().outputs[0]);
  const std::vector<ExportDim> x = n.extents().Dims(n.node().inputs[0]);
  const size_t spatial = weight.size() - 2;
  const auto entry = [&](const char* name, size_t i, int64_t fallback) {
    return n.integers(name).empty() ? fallback : n.integers(name)[i];
  };
  AttrMap attrs = {{"group", n.integer("groups")},
                   {"kernel_shape", std::vector<int64_t>(weight.begin() + 2, weight.end())}};
  std::vector<int64_t> extra;
  for (size_t d = 0; d < spatial; ++d) {
    const int64_t reach = entry("stride", d, 1) * (x[d + 2].here - 1) +
                          entry("dilation", d, 1) * (weight[d + 2] - 1) + 1;
    extra.push_back(y[d + 2].here -
                    (reach - entry("padding", d, 0) - entry("padding", d + spatial, 0)));
  }
  Copy(n, "stride", "strides", attrs);
  Copy(n, "padding", "pads", attrs);
  Copy(n, "dilation", "dilations", attrs);
  attrs["output_padding"] = extra;
  const DType dtype = n.ComputeInWidest();
  n.EmitRounded("ConvTranspose", {n.As(0, dtype), n.As(1, dtype)}, attrs, dtype);
  return Status();
}

AttrMap PoolAttrs(const OnnxNodeWriter& n) {
  AttrMap attrs = {{"kernel_shape", n.integers("kernel")}};
  if (n.integer("ceil_mode") != 0) attrs["ceil_mode"] = 1;
  Copy(n, "stride", "strides", attrs);
  Copy(n, "padding", "pads", attrs);
  return attrs;
}

bool Dilated(const OnnxNodeWriter& n) {
  for (const int64_t d : n.integers("dilation")) {
    if (d != 1) return true;
  }
  return false;
}

Status WriteMaxPool(OnnxNodeWriter& n) {
  if (n.used(1))
    return n.Unsupported("its index counts taps of the window; ONNX's counts elements");
  AttrMap attrs = PoolAttrs(n);
  if (Dilated(n)) Copy(n, "dilation", "dilations", attrs);
  const bool late = Dilated(n) || n.integer("ceil_mode") != 0;
  if (late && !n.HasOpset(10, "dilation or ceil_mode")) return Status();
  n.Emit("MaxPool", {n.in(0)}, attrs);
  return Status();
}

Status WriteAvgPool(OnnxNodeWriter& n) {
  AttrMap attrs = PoolAttrs(n);
  attrs["count_include_pad"] = n.integer("count_include_pad");
  if (n.integer("ceil_mode") != 0 && !n.HasOpset(10, "ceil_mode")) return Status();
  if (Dilated(n)) {
    if (!n.HasOpset(19, "dilation")) return Status();
    Copy(n, "dilation", "dilations", attrs);
  }
  n.Emit("AveragePool", {n.in(0)}, attrs);
  return Status();
}

constexpr OnnxExporter kTable[] = {
    {"avg_pool", WriteAvgPool},
    {"conv", WriteConv},
    {"conv_grad_input", WriteConvTranspose},
    {"max_pool", WriteMaxPool},
};

}  // namespace

std::span<const OnnxExporter> OnnxWindowExporters() { return kTable; }

}  // namespace ridge
