// transpose, slice, slice_grad, concat, pad, expand, reshape: strided copies of any dtype, and a
// fill before those that leave gaps.
#include <cstring>

#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/slice.h"
#include "ridge/graph/ops/shared/strided.h"

namespace ridge::cpu {
namespace {

// What one call does: copy k moves input k.
struct MovePlan {
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

MovePlan PlanTranspose(const OpCall& call) {
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

MovePlan PlanSlice(const OpCall& call) {
  const SliceView view = ViewSlice(*SliceRanges(call, call.inputs[0].dims), call.inputs[0].dims);
  StridedCopy copy = CopyOf(call, call.outputs[0].dims);
  copy.from_strides = view.strides;
  copy.from_base = view.base;
  return {{copy}};
}

MovePlan PlanSliceGrad(const OpCall& call) {
  const Dims& dims = call.outputs[0].dims;
  const SliceView view = ViewSlice(*SliceRanges(call, dims), dims);
  StridedCopy copy = CopyOf(call, call.inputs[0].dims);
  copy.to_strides = view.strides;
  copy.to_base = view.base;
  return {{copy}, /*fill=*/true, 0};
}

MovePlan PlanConcat(const OpCall& call) {
  MovePlan plan;
  const Dims strides = RowMajorStrides(call.outputs[0].dims);
  const int64_t given = call.integer("axis");
  const auto axis = static_cast<size_t>(given < 0 ? given + call.outputs[0].rank() : given);
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

MovePlan PlanPad(const OpCall& call) {
  StridedCopy copy = CopyOf(call, call.inputs[0].dims);
  copy.to_strides = RowMajorStrides(call.outputs[0].dims);
  for (size_t d = 0; d < copy.dims.size(); ++d)
    copy.to_base += call.integers("before")[d] * copy.to_strides[d];
  return {{copy}, /*fill=*/true, call.number("value")};
}

MovePlan PlanExpand(const OpCall& call) {
  StridedCopy copy = CopyOf(call, call.outputs[0].dims);
  copy.from_strides = BroadcastStrides(call.inputs[0].dims, call.outputs[0].dims);
  return {{copy}};
}

// Where the plan cannot let the output be the input's memory.
MovePlan PlanReshape(const OpCall& call) { return {{CopyOf(call, call.outputs[0].dims)}}; }

struct Planner {
  const char* op;
  MovePlan (*plan)(const OpCall&);
};
constexpr Planner kPlanners[] = {
    {"transpose", PlanTranspose}, {"slice", PlanSlice}, {"slice_grad", PlanSliceGrad},
    {"concat", PlanConcat},       {"pad", PlanPad},     {"expand", PlanExpand},
    {"reshape", PlanReshape},
};

class MoveKernel : public Kernel {
 public:
  MoveKernel(MovePlan plan, const TensorType& output, int threads)
      : plan_(std::move(plan)), bytes_(output.bytes()), threads_(threads) {
    element_bytes_ = BytesPerElement(output.dtype);
    StoreFromDouble(output.dtype, fill_, 0, plan_.fill_value);
    for (StridedCopy& copy : plan_.copies) {
      if (ElementCount(copy.dims) > 0) copy.Simplify();
    }
  }

  Status Run(const KernelBuffers& b) override {
    if (plan_.fill) Fill(static_cast<std::byte*>(b.outputs[0]));
    ForEachPart(threads_, [&](int part) {
      for (size_t k = 0; k < plan_.copies.size(); ++k) {
        const StridedCopy& copy = plan_.copies[k];
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

  MovePlan plan_;
  const int64_t bytes_;
  const int threads_;
  int64_t element_bytes_ = 0;
  alignas(8) std::byte fill_[8] = {};
};

}  // namespace

const char* OfferMove(const Question& q, std::vector<KernelChoice>& choices) {
  if (q.call.outputs[0].elements() == 0) return refusal::kEmpty;
  KernelChoice choice = MakeChoice(q, "cpu.move");
  choice.in_place.clear();
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> CreateMove(const CpuContext& cpu, const OpDef& op,
                                           const OpCall& call, const KernelChoice&) {
  for (const Planner& planner : kPlanners) {
    if (op.name != planner.op) continue;
    return std::unique_ptr<Kernel>(std::make_unique<MoveKernel>(planner.plan(call), call.outputs[0],
                                                                ThreadsFor(cpu, op, call)));
  }
  return Status(ErrorCode::kInternal, call.where + ": cpu.move does not know " + op.name);
}

}  // namespace ridge::cpu
