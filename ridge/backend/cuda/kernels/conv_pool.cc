// conv_pool and the gradient of its weight: products as those of conv.
//
//   conv_pool              four neighbouring columns are the pixels of one window, which the thread
//                          that has their sums compares: y[o, (image, window, tap)]
//   conv_pool_grad_weight  dw[o, (channel, tap)] = sum over (image, window, place) of dy, where
//                          this place won, times x
#include "ridge/graph/ops/shared/conv_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/conv_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr size_t kBias = 2;

// Rounded as the result of conv; the first of equal ones wins, the first NaN beats every number.
constexpr std::string_view kPoolText = R"cuda(
      R best = 0;
      int winner = 0;
#pragma unroll
      for (int place = 0; place < 4; ++place) {
        R v = As<$T>(values[place]$bias);
        if ($relu && v <= 0) v = 0;
        if (place > 0 && !(v > best) && !(IsNan(v) && !IsNan(best))) continue;
        best = v;
        winner = place;
      }
      const Index window = n / 4;
      const Index to = ((window / $windows) * $outputs + m) * (Index)$windows + window % $windows;
      Store(y, to, best);
      winners[to] = (u8)($relu && !(best > 0) ? $none : winner);)cuda";

// Statements that define `pixel`, the output of the convolution that is `place` of the window.
std::string PixelText(const ConvPoolGeometry& g) {
  const int64_t width = std::max<int64_t>(g.pool.window.x().output, 1);
  return fmt::format(
      "const Index pixel = (window / {0} * 2 + place / 2) * {1} + window % {0} * 2 + place % 2;\n",
      width, g.conv.window.x().output);
}

std::string InputText(const ConvPoolGeometry& g) {
  return TapText(g.conv.window, "pixel", "tap") +
         fmt::format("  return (R)Load(x, (image * {} + channel) * (Index){} + at);",
                     g.conv.inputs(), g.conv.window.inputs());
}

ProductText StartProduct(const OpCall& call, const ConvPoolGeometry& g) {
  ProductText p{.compute = SumType(call)};
  p.largest_index =
      std::max(LargestPosition(g.conv.window), 4 * g.pool.planes() * g.pool.window.outputs());
  for (const TensorType& type : call.inputs)
    p.largest_index = std::max(p.largest_index, type.elements());
  return p;
}

const char* WriteConvPool(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const ConvPoolGeometry g = *MakeConvPoolGeometry(call, call.inputs[0].dims, call.inputs[1].dims);
  const int64_t windows = g.pool.window.outputs(), taps = g.conv.window.taps();
  ProductText p = StartProduct(call, g);
  p.rows = g.conv.outputs();
  p.columns = g.conv.batch * windows * 4;
  p.depth = g.conv.inputs() * taps;
  p.together = 4;
  p.operands.AddInput(call, 0, "x");
  p.operands.AddInput(call, 1, "w");
  p.a = fmt::format("return (R)Load(w, m * (Index){} + k);", p.depth);
  p.a_along_depth = true;
  p.b = fmt::format(
            "const Index channel = k / {0}, tap = k % {0}, place = n % 4, image = n / 4 / {1}, "
            "window = n / 4 % {1};\n  ",
            taps, windows) +
        PixelText(g) + InputText(g);
  const char* stored = StorageType(call.outputs[0].dtype);
  const bool bias = call.has_input(kBias);
  if (bias) p.results.AddInput(call, kBias, "bias");
  p.results.AddOutput(call, 0, "y");
  p.results.AddOutput(call, 1, "winners");
  p.store = FillText(kPoolText, {{"T", stored},
                                 {"bias", bias ? " + (R)Load(bias, m)" : ""},
                                 {"relu", call.integer("relu") != 0 ? "true" : "false"},
                                 {"windows", std::to_string(windows)},
                                 {"outputs", std::to_string(p.rows)},
                                 {"none", std::to_string(kNoWinner)}});
  return WriteProduct(p, text);
}

const char* WriteGradWeight(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const ConvPoolGeometry g =
      *MakeConvPoolGeometry(call, call.inputs[0].dims, call.integers("weight_dims"));
  const int64_t windows = std::max<int64_t>(g.pool.window.outputs(), 1);
  const int64_t taps = g.conv.window.taps(), weights = g.conv.inputs() * taps;
  const bool bias = call.integer("bias") != 0;
  ProductText p = StartProduct(call, g);
  p.rows = g.conv.outputs();
  p.columns = weights + (bias ? 1 : 0);
  p.depth = g.conv.batch * g.pool.window.outputs() * 4;
  p.operands.AddInput(call, 0, "x");
  p.operands.AddInput(call, 1, "winners");
  p.operands.AddInput(call, 2, "dy");
  p.a = fmt::format(
      "const Index window = k / 4, from = ((window / {0}) * {1} + m) * (Index){0} + window % {0};\n"
      "  return winners[from] == k % 4 ? (R)Load(dy, from) : R(0);",
      windows, p.rows);
  p.a_along_depth = p.b_along_depth = true;
  p.b = (bias ? fmt::format("if (n == {}) return R(1);\n  ", weights) : std::string()) +
        fmt::format(
            "const Index channel = n / {0}, tap = n % {0}, place = k % 4, image = k / 4 / {1}, "
            "window = k / 4 % {1};\n  ",
            taps, windows) +
        PixelText(g) + InputText(g);
  p.results.AddOutput(call, 0, "dw");
  if (bias) p.results.AddOutput(call, 1, "dbias");
  p.store = bias ? fmt::format("      if (n == {}) Store(dbias, m, value);\n      else ", weights)
                 : std::string();
  p.store += fmt::format("      Store(dw, m * (Index){} + n, value);", weights);
  return WriteProduct(p, text);
}

}  // namespace

TextKernelDef ConvPoolTextKernel() {
  return {.name = "cuda.conv_pool", .ops = {"conv_pool"}, .write = WriteConvPool};
}
TextKernelDef ConvPoolGradWeightTextKernel() {
  return {.name = "cuda.conv_pool_grad_weight",
          .ops = {"conv_pool_grad_weight"},
          .write = WriteGradWeight};
}

}  // namespace ridge::cuda
