// concat and gather_slices: a thread asks of each word of y which input it comes from; up to 32
// inputs a launch.
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/move_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cuda {
namespace {

constexpr size_t kMostInputs = 32;  // of a launch

constexpr std::string_view kConcatText = R"cuda(
RIDGE_FUNCTION Word Joined$number($parameters, Index e) {
  const Index o = e / $columns, column = e % $columns;
$choices}
)cuda";

struct Joined {
  int64_t outer = 1;
  std::vector<int64_t> columns;  // of each input
  bool repeats = false;          // outer counts repetitions, which the inputs lack
};

Joined JoinedOf(const OpDef& op, const OpCall& call) {
  Joined joined;
  joined.repeats = op.name == "gather_slices";
  if (joined.repeats) {
    joined.outer = call.integer("slices");
    for (const TensorType& x : call.inputs) joined.columns.push_back(x.elements());
    return joined;
  }
  const int axis = *NormalizeAxis(call.integer("axis"), call.outputs[0].rank(), call.where);
  joined.outer = ViewAxis(call.outputs[0].dims, axis).outer;
  for (const TensorType& x : call.inputs) {
    const AxisView view = ViewAxis(x.dims, axis);
    joined.columns.push_back(view.extent * view.inner);
  }
  return joined;
}

class ConcatWriter {
 public:
  ConcatWriter(const Joined& joined, const TensorType& y)
      : joined_(joined), bytes_(WordBytes(BytesPerElement(y.dtype), joined.columns)) {
    const int64_t width = bytes_ / BytesPerElement(y.dtype);
    for (int64_t& columns : joined_.columns) {
      columns /= width;
      row_ += columns;
    }
  }

  void Write(KernelText& text) {
    text.source = MoveTypes(bytes_, joined_.outer * row_);
    int64_t begin = 0;
    for (size_t first = 0; first < joined_.columns.size(); first += kMostInputs) {
      const size_t end = std::min(first + kMostInputs, joined_.columns.size());
      begin += WriteGroup(first, end, begin, text);
    }
  }

 private:
  // Columns [begin, ..) of y, which is [outer, row_].  Returns their number.
  int64_t WriteGroup(size_t first, size_t end, int64_t begin, KernelText& text) {
    std::string parameters, names, choices;
    std::vector<Argument> arguments;
    int64_t columns = 0;
    for (size_t i = first; i < end; ++i) {
      const int64_t own = joined_.columns[i];
      if (own == 0) continue;
      parameters += fmt::format("{}const Word* x{}", columns == 0 ? "" : ", ", i);
      names += fmt::format("x{}, ", i);
      arguments.push_back(Argument::Input(static_cast<int>(i)));
      choices += fmt::format("  if (column < {}) return x{}[{} + column - {}];\n", columns + own, i,
                             joined_.repeats ? "0" : fmt::format("o * {}", own), columns);
      columns += own;
    }
    if (columns == 0) return 0;
    const std::string number = std::to_string(text.launches.size());
    text.source += FillText(kConcatText, {{"number", number},
                                          {"parameters", parameters},
                                          {"columns", std::to_string(columns)},
                                          {"choices", choices + "  return Word();\n"}});
    AppendMove({.name = "concat" + number,
                .parameters = parameters,
                .arguments = arguments,
                .value = fmt::format("Joined{}({}e)", number, names),
                .to = fmt::format("e / {0} * {1} + {2} + e % {0}", columns, row_, begin),
                .count = joined_.outer * columns},
               text);
    return columns;
  }

  Joined joined_;
  const int64_t bytes_;
  int64_t row_ = 0;  // words
};

const char* WriteConcat(const OpDef& op, const OpCall& call, KernelText& text) {
  ConcatWriter(JoinedOf(op, call), call.outputs[0]).Write(text);
  return nullptr;
}

// The arrays as they are stored, joined along the place of the axis.
const char* WriteConcatChannelsLast(const OpDef& op, const OpCall& call, KernelText& text) {
  const int rank = call.outputs[0].rank();
  if (op.name != "concat" || !HasLayouts(call.outputs[0])) return refusal::kLayout;
  OpCall stored = call;
  for (TensorType& type : stored.inputs) type = StoredChannelsLast(type);
  stored.outputs[0] = StoredChannelsLast(call.outputs[0]);
  const int axis = *NormalizeAxis(call.integer("axis"), rank, call.where);
  stored.attrs["axis"] = int64_t{ChannelsLastPlace(axis, rank)};
  return WriteConcat(op, stored, text);
}

}  // namespace

TextKernelDef ConcatTextKernel() {
  return {.name = "cuda.concat",
          .ops = {"concat", "gather_slices"},
          .write = WriteConcat,
          .write_channels_last = WriteConcatChannelsLast};
}

}  // namespace ridge::cuda
