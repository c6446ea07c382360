// gather: a thread moves words of y, whose index says from where; one out of range gives NaN or 0.
#include <fmt/format.h>

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
RIDGE_FUNCTION Word Taken(const Word* x, const $I* indices, Index e) {
  const i64 place = PlaceOfIndex(indices[e / $inner % $taken], $extent);
  Word word = $missing;
  if (place >= 0) word = x[(e / $inner / $taken * $extent + (Index)place) * $inner + e % $inner];
  return word;
}
)cuda";

const char* WriteGather(const OpDef&, const OpCall& call, KernelText& text) {
  const TensorType &x = call.inputs[0], &y = call.outputs[0];
  const AxisView view = ViewAxis(x.dims, CallAxis(call));
  const int64_t element = BytesPerElement(x.dtype);
  const int64_t bytes = WordBytes(element, {view.inner});
  const char* index = StorageType(call.inputs[1].dtype);
  const double missing = IsFloat(x.dtype) ? std::numeric_limits<double>::quiet_NaN() : 0;
  text.source = MoveTypes(bytes, std::max(x.elements(), y.elements())) +
                std::string(kPlaceOfIndexText) +
                FillText(kGatherText, {{"I", index},
                                       {"inner", std::to_string(view.inner * element / bytes)},
                                       {"taken", std::to_string(call.inputs[1].elements())},
                                       {"extent", std::to_string(view.extent)},
                                       {"missing", WordLiteral(bytes, x.dtype, missing)}});
  AppendMove({.name = "gather",
              .parameters = fmt::format("const Word* x, const {}* indices", index),
              .arguments = {Argument::Input(0), Argument::Input(1)},
              .value = "Taken(x, indices, e)",
              .count = y.bytes() / bytes},
             text);
  return nullptr;
}

}  // namespace

TextKernelDef GatherTextKernel() {
  return {.name = "cuda.gather", .ops = {"gather"}, .write = WriteGather};
}

}  // namespace ridge::cuda
