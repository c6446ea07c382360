// rotary_embedding: a thread turns a pair; it reads both numbers before it writes them.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kRotaryText = R"cuda(
typedef $R R;
typedef $Index Index;
RIDGE_KERNEL void rotary_embedding($parameters) {
  for (Index e = (Index)Thread(); e < $pairs; e += (Index)Threads()) {
    const Index row = e / $half, i = e % $half;
    const Index p = $first, q = $second, from = row * $width;
    const R x1 = (R)Load(x, from + p), x2 = (R)Load(x, from + q);
    const R y1 = x1 * (R)Load(cosines, $cos1) - x2 * (R)Load(sines, $sin1);
    const R y2 = x2 * (R)Load(cosines, $cos2) + x1 * (R)Load(sines, $sin2);
    Store(y, from + p, y1);
    Store(y, from + q, y2);
  }
}
)cuda";

// Where a table has the number for `place` of a row, which is in pair i.
std::string TableText(const OpCall& call, size_t table, const char* place) {
  const Dims &x = call.inputs[0].dims, &own = call.inputs[table].dims;
  const Dims rows(x.begin(), x.end() - 1), own_rows(own.begin(), own.end() - 1);
  Dims strides = BroadcastStrides(own_rows, rows);
  for (int64_t& stride : strides) stride *= own.back();
  return fmt::format("({}) + {}", OffsetText(rows, strides, "row"),
                     own.back() == x.back() ? place : "i");
}

const char* WriteRotary(const OpDef& /*op*/, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  const TensorType& x = call.inputs[0];
  const int64_t width = x.dims.back(), half = width / 2, pairs = x.elements() / 2;
  const bool interleaved = call.integer("interleaved") != 0;
  Parameters p;
  p.AddInput(call, 0, "x");
  p.AddInput(call, 1, "cosines");
  p.AddInput(call, 2, "sines");
  p.AddOutput(call, 0, "y");
  text.source =
      FillText(kRotaryText, {{"R", ComputeType(x.dtype)},
                             {"Index", IndexType(x.elements())},
                             {"parameters", p.text},
                             {"pairs", std::to_string(pairs)},
                             {"half", std::to_string(half)},
                             {"width", std::to_string(width)},
                             {"first", interleaved ? "2 * i" : "i"},
                             {"second", interleaved ? "2 * i + 1" : fmt::format("i + {}", half)},
                             {"cos1", TableText(call, 1, "p")},
                             {"cos2", TableText(call, 1, "q")},
                             {"sin1", TableText(call, 2, "p")},
                             {"sin2", TableText(call, 2, "q")}});
  text.launches = {{"rotary_embedding", BlocksFor(pairs), kBlockThreads, p.arguments}};
  return nullptr;
}

}  // namespace

TextKernelDef RotaryEmbeddingTextKernel() {
  return {.name = "cuda.rotary_embedding", .ops = {"rotary_embedding"}, .write = WriteRotary};
}

}  // namespace ridge::cuda
