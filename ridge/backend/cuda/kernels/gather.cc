// gather: a thread moves words of y, whose index says from where; one out of range gives NaN or 0.
#include <algorithm>
#include <limits>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cuda {
namespace {

// x: [outer, extent, inner].  y: [outer, taken, inner].
constexpr std::string_view kGatherText = R"cuda(
typedef $Word Word;
typedef $Index Index;
RIDGE_KERNEL void gather(const Word* x, const $I* indices, Word* y) {
  const Index threads = (Index)Threads();
  for (Index first = (Index)Thread(); first < $count; first += $each * threads) {
    Word words[$each];
#pragma unroll
    for (int k = 0; k < $each; ++k) {
      const Index e = first + k * threads;
      if (e >= $count) continue;
      const i64 place = PlaceOfIndex(indices[e / $inner % $taken], $extent);
      words[k] = $missing;
      if (place >= 0)
        words[k] = x[(e / $inner / $taken * $extent + (Index)place) * $inner + e % $inner];
    }
#pragma unroll
    for (int k = 0; k < $each; ++k) {
      const Index e = first + k * threads;
      if (e < $count) y[e] = words[k];
    }
  }
}
)cuda";

const char* WriteGather(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const AxisView view = ViewAxis(x.dims, CallAxis(call));
  const int64_t element = BytesPerElement(x.dtype);
  const int64_t bytes = WordBytes(element, {view.inner});
  const int64_t count = y.bytes() / bytes;
  const int each = WordsAtOnce(count);
  const double missing = IsFloat(x.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
  text.source = std::string(kPlaceOfIndexText) +
                FillText(kGatherText, {{"Word", WordType(bytes)},
                                       {"Index", IndexType(std::max(x.elements(), y.elements()))},
                                       {"I", StorageType(call.inputs[1].dtype)},
                                       {"count", std::to_string(count)},
                                       {"each", std::to_string(each)},
                                       {"inner", std::to_string(view.inner * element / bytes)},
                                       {"taken", std::to_string(call.inputs[1].elements())},
                                       {"extent", std::to_string(view.extent)},
                                       {"missing", WordLiteral(bytes, x.dtype, missing)}});
  text.launches = {{"gather",
                    BlocksFor((count + each - 1) / each),
                    kBlockThreads,
                    {Argument::Input(0), Argument::Input(1), Argument::Output(0)}}};
  return nullptr;
}

}  // namespace

TextKernelDef GatherTextKernel() {
  return {.name = "cuda.gather", .ops = {"gather"}, .write = WriteGather};
}

}  // namespace ridge::cuda
