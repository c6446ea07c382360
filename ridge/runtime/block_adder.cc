#include "ridge/runtime/block_adder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ridge/core/rounding.h"

namespace ridge {
namespace {

// Elements of one type, side by side.
struct Run {
  DType dtype = DType::kF32;
  ByteRange bytes;
};

// What one kernel adds.
constexpr int64_t kMostBytes = int64_t{1} << 30;

// The runs of a range: values of one type with nothing but padding between them are one.
std::vector<Run> RunsIn(const SumBlock& block, const ByteRange& range) {
  std::vector<Run> runs;
  for (const SumBlock::Values& values : block.values) {
    const int64_t end = values.offset_bytes + values.elements * BytesPerElement(values.dtype);
    const ByteRange own = {std::max(range.begin, values.offset_bytes), std::min(range.end, end)};
    if (own.begin >= own.end) continue;
    const bool follows = !runs.empty() && runs.back().dtype == values.dtype &&
                         RoundUp(runs.back().bytes.end, kChunkLine) == own.begin;
    if (follows) {
      runs.back().bytes.end = own.end;
    } else {
      runs.push_back({values.dtype, own});
    }
  }
  return runs;
}

// In parts of at most kMostBytes.
std::vector<Run> InParts(const std::vector<Run>& runs) {
  std::vector<Run> cut;
  for (const Run& run : runs) {
    for (int64_t begin = run.bytes.begin; begin < run.bytes.end; begin += kMostBytes)
      cut.push_back({run.dtype, {begin, std::min(begin + kMostBytes, run.bytes.end)}});
  }
  return cut;
}

struct Adding {
  std::unique_ptr<Kernel> kernel;
  int64_t workspace_bytes = 0;
};

// Every kernel of `add` reads an element of both operands before it writes that element.
Result<Adding> AddKernel(Backend& backend, const Run& run) {
  const TensorType type = {run.dtype, {run.bytes.bytes() / BytesPerElement(run.dtype)}};
  OpCall call;
  call.where = "a sum over slices";
  call.inputs = {type, type};
  call.outputs = {type};
  const OpDef& add = *FindOp("add");
  constexpr std::array<LayoutId, 2> kAsTheyAre = {kRowMajor, kRowMajor};
  KernelCandidates candidates = backend.Candidates(add, call, kAsTheyAre);
  const auto least = std::min_element(
      candidates.choices.begin(), candidates.choices.end(),
      [](const auto& a, const auto& b) { return a.workspace_bytes < b.workspace_bytes; });
  if (least == candidates.choices.end()) {
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{} does not add {}", backend.name(), DTypeName(run.dtype)));
  }
  RIDGE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, backend.Create(add, call, *least));
  return Adding{std::move(kernel), least->workspace_bytes};
}

}  // namespace

Result<BlockAdder> BlockAdder::Create(Backend& backend, const SumBlock& block,
                                      const std::vector<ByteRange>& ranges) {
  const bool narrow = std::any_of(block.values.begin(), block.values.end(),
                                  [](const SumBlock::Values& values) { return values.narrow; });
  if (narrow) {
    return Status(ErrorCode::kUnsupported,
                  "--wire bf16 is for memory that the host reaches. hint: --wire f32");
  }
  BlockAdder adder;
  int64_t workspace_bytes = 0;
  for (const ByteRange& range : ranges) {
    for (const Run& run : InParts(RunsIn(block, range))) {
      RIDGE_ASSIGN_OR_RETURN(Adding adding, AddKernel(backend, run));
      workspace_bytes = std::max(workspace_bytes, adding.workspace_bytes);
      adder.pieces_.push_back({run.bytes.begin, std::move(adding.kernel)});
    }
  }
  if (workspace_bytes > 0) {
    RIDGE_ASSIGN_OR_RETURN(adder.workspace_, backend.device().Allocate(workspace_bytes));
  }
  return adder;
}

Status BlockAdder::Add(Stream& stream, const std::byte* left, const std::byte* right,
                       std::byte* to) const {
  for (const Piece& piece : pieces_) {
    const std::array<const void*, 2> inputs = {left + piece.offset_bytes,
                                               right + piece.offset_bytes};
    const std::array<void*, 1> outputs = {to + piece.offset_bytes};
    void* const workspace = workspace_ == nullptr ? nullptr : workspace_->data();
    RIDGE_RETURN_IF_ERROR(piece.kernel->Enqueue(stream, {inputs, outputs, workspace}));
  }
  return Status();
}

}  // namespace ridge
