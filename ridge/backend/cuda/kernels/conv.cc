// conv and its gradients: a product a group, whose operands are read where they lie.
//
//   conv              y[o, (image, pixel)]  = sum over (channel, tap) of w x
//   conv_grad_input   dx[c, (image, pixel)] = sum over (output, tap) of w dy
//   conv_grad_weight  dw[o, (channel, tap)] = sum over (image, pixel) of dy x; one more column, of
//                     ones in the place of x, is dbias
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/conv_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr size_t kBias = 2;

int64_t LargestIndex(const OpCall& call, const ConvGeometry& g) {
  int64_t largest = LargestPosition(g.window);
  for (size_t i = 0; i < 2; ++i) largest = std::max(largest, call.inputs[i].elements());
  return std::max(largest, call.outputs[0].elements());
}

ProductText StartProduct(const OpCall& call, const ConvGeometry& g) {
  ProductText p{.compute = SumType(call)};
  p.batch = g.groups;
  p.largest_index = LargestIndex(call, g);
  return p;
}

// Where a channel of a group lies in one of the images of x or y: "channel" and "image" known.
std::string PlaneText(int64_t channels, int64_t group_channels, int64_t plane) {
  return fmt::format("((image * {} + batch * {} + channel) * (Index){} + at)", channels,
                     group_channels, plane);
}

const char* WriteConv(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const ConvGeometry g = ConvGeometryOf(call);
  const int64_t outputs = g.window.outputs(), taps = g.window.taps();
  ProductText p = StartProduct(call, g);
  p.rows = g.group_outputs;
  p.columns = g.batch * outputs;
  p.depth = g.group_inputs * taps;
  p.operands.AddInput(call, 0, "x");
  p.operands.AddInput(call, 1, "w");
  p.a = fmt::format("return (R)Load(w, (batch * {} + m) * (Index){} + k);", p.rows, p.depth);
  p.a_along_depth = true;
  p.b = fmt::format("const Index channel = k / {}, tap = k % {}, image = n / {}, pixel = n % {};\n",
                    taps, taps, outputs, outputs) +
        TapText(g.window, "pixel", "tap") +
        fmt::format("  return (R)Load(x, {});",
                    PlaneText(g.inputs(), g.group_inputs, g.window.inputs()));
  const std::string channel = fmt::format("(batch * {} + m)", p.rows);
  const std::string at = fmt::format("((n / {}) * {} + {}) * (Index){} + n % {}", outputs,
                                     g.outputs(), channel, outputs, outputs);
  if (const char* reason = AddFinish(call, kBias, channel, at, p); reason != nullptr) return reason;
  return WriteProduct(p, text);
}

const char* WriteGradInput(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const ConvGeometry g = GradInputGeometryOf(call);
  const int64_t inputs = g.window.inputs(), taps = g.window.taps();
  ProductText p = StartProduct(call, g);
  p.rows = g.group_inputs;
  p.columns = g.batch * inputs;
  p.depth = g.group_outputs * taps;
  p.operands.AddInput(call, 0, "dy");
  p.operands.AddInput(call, 1, "w");
  p.a = fmt::format("return (R)Load(w, ((batch * {} + k / {}) * {} + m) * (Index){} + k % {});",
                    g.group_outputs, taps, p.rows, taps, taps);
  p.a_along_depth = true;
  p.b = fmt::format("const Index channel = k / {}, tap = k % {}, image = n / {}, pixel = n % {};\n",
                    taps, taps, inputs, inputs) +
        OutputText(g.window, "pixel", "tap") +
        fmt::format("  return (R)Load(dy, {});",
                    PlaneText(g.outputs(), g.group_outputs, g.window.outputs()));
  p.results.AddOutput(call, 0, "dx");
  p.store = fmt::format(
      "      Store(dx, ((n / {0}) * {1} + batch * {2} + m) * (Index){0} + n % {0}, value);", inputs,
      g.inputs(), p.rows);
  return WriteProduct(p, text);
}

const char* WriteGradWeight(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const ConvGeometry g = GradWeightGeometryOf(call);
  const int64_t outputs = std::max<int64_t>(g.window.outputs(), 1), taps = g.window.taps();
  const bool bias = call.integer("bias") != 0;
  const int64_t weights = g.group_inputs * taps;  // of an output channel
  ProductText p = StartProduct(call, g);
  p.rows = g.group_outputs;
  p.columns = weights + (bias ? 1 : 0);
  p.depth = g.batch * g.window.outputs();
  p.operands.AddInput(call, 0, "x");
  p.operands.AddInput(call, 1, "dy");
  p.a =
      fmt::format("return (R)Load(dy, ((k / {0}) * {1} + batch * {2} + m) * (Index){0} + k % {0});",
                  outputs, g.outputs(), p.rows);
  p.a_along_depth = p.b_along_depth = true;
  p.b = (bias ? fmt::format("if (n == {}) return R(1);\n  ", weights) : std::string()) +
        fmt::format("const Index channel = n / {}, tap = n % {}, image = k / {}, pixel = k % {};\n",
                    taps, taps, outputs, outputs) +
        TapText(g.window, "pixel", "tap") +
        fmt::format("  return (R)Load(x, {});",
                    PlaneText(g.inputs(), g.group_inputs, g.window.inputs()));
  p.results.AddOutput(call, 0, "dw");
  if (bias) p.results.AddOutput(call, 1, "dbias");
  p.store = fmt::format("      const Index row = batch * {} + m;\n", p.rows);
  if (bias)
    p.store += fmt::format("      if (n == {}) Store(dbias, row, value);\n      else ", weights);
  p.store += fmt::format("      Store(dw, row * (Index){} + n, value);", weights);
  return WriteProduct(p, text);
}

}  // namespace

TextKernelDef ConvTextKernel() {
  return {.name = "cuda.conv", .ops = {"conv"}, .write = WriteConv};
}
TextKernelDef ConvGradInputTextKernel() {
  return {.name = "cuda.conv_grad_input", .ops = {"conv_grad_input"}, .write = WriteGradInput};
}
TextKernelDef ConvGradWeightTextKernel() {
  return {.name = "cuda.conv_grad_weight", .ops = {"conv_grad_weight"}, .write = WriteGradWeight};
}

}  // namespace ridge::cuda
