// transpose, slice, slice_grad, concat, pad, expand, reshape: strided copies of any dtype, and a
// fill before those that leave gaps.
//
// slice, slice_grad and concat also move blocks of channels (nChw16c) where no block is cut: they
// are the same copies of a row-major array of whole blocks.
#include <algorithm>
#include <cstring>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/backend/cpu/layouts.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/checks.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge::cpu {
namespace {

// What one call does: copy k moves input k.
struct MoveParams {
  std::vector<StridedCopy> copies;
  bool fill = false;
  double fill_value = 0;
};

StridedCopy CopyOf(const OpCall& call, Dims dims) {
  StridedCopy copy;
  copy.from_strides = copy.to_strides = RowMajorStrides(dims);
  copy.dims = std::move(dims);
  copy.element_bytes = BytesPerElement(call.outputs[0].dtype);
  return copy;
}

MoveParams TransposeParams(const OpCall& call) {
  const TensorType& x = call.inputs[0];
  std::vector<int64_t> permutation = call.integers("permutation");
  if (permutation.empty()) {  // reversed
    for (int64_t d = x.rank(); d-- > 0;) permutation.push_back(d);
  }
  StridedCopy copy = CopyOf(call, call.outputs[0].dims);
  const Dims own = RowMajorStrides(x.dims);
  for (size_t d = 0; d < permutation.size(); ++d) {
    const int64_t from = permutation[d] < 0 ? permutation[d] + x.rank() : permutation[d];
    copy.from_strides[d] = own[static_cast<size_t>(from)];
  }
  return {{copy}};
}

MoveParams SliceParams(const OpCall& call) {
  const SliceView view = ViewSlice(*AxisSlices(call, call.inputs[0].dims), call.inputs[0].dims);
  StridedCopy copy = CopyOf(call, call.outputs[0].dims);
  copy.from_strides = view.strides;
  copy.from_base = view.base;
  return {{copy}};
}

MoveParams SliceGradParams(const OpCall& call) {
  const Dims& dims = call.outputs[0].dims;
  const SliceView view = ViewSlice(*AxisSlices(call, dims), dims);
  StridedCopy copy = CopyOf(call, call.inputs[0].dims);
  copy.to_strides = view.strides;
  copy.to_base = view.base;
  return {{copy}, /*fill=*/true, 0};
}

MoveParams ConcatParams(const OpCall& call) {
  MoveParams plan;
  const Dims strides = RowMajorStrides(call.outputs[0].dims);
  const auto axis = static_cast<size_t>(CallAxis(call));
  int64_t begin = 0;
  for (const TensorType& x : call.inputs) {
    StridedCopy copy = CopyOf(call, x.dims);
    copy.to_strides = strides;
    copy.to_base = begin * strides[axis];
    begin += x.dims[axis];
    plan.copies.push_back(std::move(copy));
  }
  return plan;
}

MoveParams PadParams(const OpCall& call) {
  StridedCopy copy = CopyOf(call, call.inputs[0].dims);
  copy.to_strides = RowMajorStrides(call.outputs[0].dims);
  for (size_t d = 0; d < copy.dims.size(); ++d)
    copy.to_base += call.integers("before")[d] * copy.to_strides[d];
  return {{copy}, /*fill=*/true, call.number("value")};
}

MoveParams ExpandParams(const OpCall& call) {
  StridedCopy copy = CopyOf(call, call.outputs[0].dims);
  copy.from_strides = BroadcastStrides(call.inputs[0].dims, call.outputs[0].dims);
  return {{copy}};
}

// Where the plan cannot let the output be the input's memory.
MoveParams ReshapeParams(const OpCall& call) { return {{CopyOf(call, call.outputs[0].dims)}}; }

// [B, C, ...] -> [B, C / block, ..., block]
Dims BlockedDims(Dims dims, int64_t block) {
  dims[1] /= block;
  dims.push_back(block);
  return dims;
}

// Ranges over blocks; REQUIRES: CutsNoBlock.
std::vector<AxisSlice> BlockedRanges(std::vector<AxisSlice> ranges, int64_t block) {
  ranges[1].start /= block;
  ranges[1].count /= block;
  ranges.push_back({0, 1, block});
  return ranges;
}

StridedCopy BlockedSlice(const OpCall& call, const Dims& whole, const Dims& part, int64_t block) {
  StridedCopy copy = CopyOf(call, BlockedDims(part, block));
  const SliceView view =
      ViewSlice(BlockedRanges(*AxisSlices(call, whole), block), BlockedDims(whole, block));
  copy.from_strides = view.strides;
  copy.from_base = view.base;
  return copy;
}

MoveParams BlockedSliceParams(const OpCall& call, int64_t block) {
  return {{BlockedSlice(call, call.inputs[0].dims, call.outputs[0].dims, block)}};
}

MoveParams BlockedSliceGradParams(const OpCall& call, int64_t block) {
  StridedCopy copy = BlockedSlice(call, call.outputs[0].dims, call.inputs[0].dims, block);
  std::swap(copy.from_strides, copy.to_strides);
  std::swap(copy.from_base, copy.to_base);
  return {{copy}, /*fill=*/true, 0};
}

MoveParams BlockedConcatParams(const OpCall& call, int64_t block) {
  OpCall blocks = call;
  for (TensorType& x : blocks.inputs) x.dims = BlockedDims(x.dims, block);
  blocks.outputs[0].dims = BlockedDims(call.outputs[0].dims, block);
  blocks.attrs["axis"] = int64_t{CallAxis(call)};
  return ConcatParams(blocks);
}

struct MoveForm {
  const char* op;
  MoveParams (*plan)(const OpCall&);
  MoveParams (*blocked)(const OpCall&, int64_t block) = nullptr;
};
constexpr MoveForm kForms[] = {
    {"transpose", TransposeParams},
    {"slice", SliceParams, BlockedSliceParams},
    {"slice_grad", SliceGradParams, BlockedSliceGradParams},
    {"concat", ConcatParams, BlockedConcatParams},
    {"pad", PadParams},
    {"expand", ExpandParams},
    {"reshape", ReshapeParams},
};

const MoveForm& FormOf(const OpDef& op) {
  return *std::find_if(std::begin(kForms), std::end(kForms) - 1,
                       [&](const MoveForm& form) { return op.name == form.op; });
}

class MoveKernel : public HostKernel<MoveKernel> {
 public:
  MoveKernel(MoveParams plan, const TensorType& output, int threads)
      : params_(std::move(plan)), bytes_(output.bytes()), threads_(threads) {
    element_bytes_ = BytesPerElement(output.dtype);
    StoreFromDouble(output.dtype, fill_, 0, params_.fill_value);
    for (StridedCopy& copy : params_.copies) {
      if (ElementCount(copy.dims) > 0) copy.Simplify();
    }
  }

  Status Run(const KernelBuffers& b) {
    if (params_.fill) Fill(static_cast<std::byte*>(b.outputs[0]));
    ForEachPart(threads_, [&](int part) {
      for (size_t k = 0; k < params_.copies.size(); ++k) {
        const StridedCopy& copy = params_.copies[k];
        if (ElementCount(copy.dims) > 0) copy.Run(b.inputs[k], b.outputs[0], threads_, part);
      }
    });
    return Status();
  }

 private:
  // The pattern doubles until the share is full.
  void Fill(std::byte* to) const {
    ParallelFor(threads_, bytes_, 64, [&](int64_t begin, int64_t end) {
      const int64_t count = end - begin;
      std::memcpy(to + begin, fill_, static_cast<size_t>(element_bytes_));
      for (int64_t done = element_bytes_; done < count; done *= 2) {
        std::memcpy(to + begin + done, to + begin,
                    static_cast<size_t>(std::min(done, count - done)));
      }
    });
  }

  MoveParams params_;
  const int64_t bytes_;
  const int threads_;
  int64_t element_bytes_ = 0;
  alignas(8) std::byte fill_[8] = {};
};

// The channels of a block, 1 for row-major; 0 where the layout is not for this call: other tensors
// than x and y, padded blocks, or a slice that begins or ends inside a block.
int64_t BlockOf(const OpDef& op, const OpCall& call, LayoutId layout) {
  if (layout == kRowMajor) return 1;
  if (FormOf(op).blocked == nullptr) return 0;
  int64_t block = 0;
  const auto whole = [&](const TensorType& type) {
    const auto blocks = ChannelBlocksOf(type.dims, layout);
    if (blocks) block = blocks->block;
    return blocks && !blocks->padded;
  };
  for (const TensorType& type : call.inputs) {
    if (!whole(type)) return 0;
  }
  if (!whole(call.outputs[0])) return 0;
  if (op.name == "concat") return block;
  const TensorType& type = op.name == "slice" ? call.inputs[0] : call.outputs[0];
  const AxisSlice channels = AxisSlices(call, type.dims)->at(1);
  return channels.step == 1 && channels.start % block == 0 ? block : 0;
}

void OfferLayout(const CandidateQuery& q, LayoutId layout, Candidates& candidates) {
  if (BlockOf(q.op, q.call, layout) == 0) return;
  KernelChoice& choice = candidates.Add();
  if (layout == kRowMajor) return;
  choice.input_layouts.assign(q.call.inputs.size(), layout);
  choice.output_layouts = {layout};
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  std::vector<LayoutId> layouts;
  for (size_t i = 0; i < q.call.inputs.size(); ++i) {
    const LayoutId layout = q.available_layout(i);
    const bool known = std::find(layouts.begin(), layouts.end(), layout) != layouts.end();
    if (layout != kRowMajor && !known) layouts.push_back(layout);
  }
  layouts.push_back(kRowMajor);
  for (const LayoutId layout : layouts) OfferLayout(q, layout, candidates);
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const MoveForm& form = FormOf(q.op);
  const int64_t block = BlockOf(q.op, q.call, choice.output_layouts.at(0));
  if (block == 0) return Status(ErrorCode::kInternal, q.call.where + ": blocks would be cut");
  MoveParams plan = block > 1 ? form.blocked(q.call, block) : form.plan(q.call);
  return std::unique_ptr<Kernel>(
      std::make_unique<MoveKernel>(std::move(plan), q.call.outputs[0], q.threads()));
}

}  // namespace

KernelDef MoveKernelDef() {
  return {.name = "cpu.move",
          .ops = {"transpose", "slice", "slice_grad", "concat", "pad", "expand", "reshape"},
          .takes_empty = true,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
