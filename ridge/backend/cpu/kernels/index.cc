// argmax, gather, scatter_add: kernels around indices.
//
// scatter_add has no atomics: each part owns columns of the table, or rows when rows are short, and
// walks all indices in order; so sums have one order whatever the number of threads.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ridge/backend/cpu/kernels/kernels.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/axis_view.h"

namespace ridge::cpu {
namespace {

AxisView ViewOf(const OpCall& call, const Dims& dims) {
  const int64_t axis = call.integer("axis");
  const auto rank = static_cast<int64_t>(dims.size());
  return ViewAxis(dims, static_cast<int>(axis < 0 ? axis + rank : axis));
}

// The first of the largest; NaN counts as largest.
int64_t FirstLargest(const float* x, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t k = 1; k < count && !std::isnan(x[best * stride]); ++k) {
    const float value = x[k * stride];
    if (value > x[best * stride] || std::isnan(value)) best = k;
  }
  return best;
}

class ArgmaxKernel : public Kernel {
 public:
  ArgmaxKernel(const AxisView& view, int threads) : view_(view), threads_(threads) {}
  Status Run(const KernelBuffers& b) override {
    const auto* x = static_cast<const float*>(b.inputs[0]);
    auto* y = static_cast<int64_t*>(b.outputs[0]);
    ParallelFor(threads_, view_.outer * view_.inner, 16, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const float* line = x + view_.Index(o / view_.inner, 0, o % view_.inner);
        y[o] = FirstLargest(line, view_.extent, view_.inner);
      }
    });
    return Status();
  }

 private:
  const AxisView view_;
  const int threads_;
};

// The place an index names in [0, extent), or -1.
int64_t PlaceOf(DType dtype, const void* indices, int64_t n, int64_t extent) {
  const int64_t index = dtype == DType::kI64 ? static_cast<const int64_t*>(indices)[n]
                                             : static_cast<const int32_t*>(indices)[n];
  const int64_t place = index < 0 ? index + extent : index;
  return place >= 0 && place < extent ? place : -1;
}

class GatherKernel : public Kernel {
 public:
  GatherKernel(const OpCall& call, int threads)
      : view_(ViewOf(call, call.inputs[0].dims)),
        count_(call.inputs[1].elements()),
        index_type_(call.inputs[1].dtype),
        dtype_(call.inputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const auto* x = static_cast<const std::byte*>(b.inputs[0]);
    auto* y = static_cast<std::byte*>(b.outputs[0]);
    const int64_t row = view_.inner * BytesPerElement(dtype_);
    ParallelFor(threads_, view_.outer * count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t place = PlaceOf(index_type_, b.inputs[1], r % count_, view_.extent);
        if (place < 0) {
          FillMissing(y + r * row);
        } else {
          std::memcpy(y + r * row, x + (r / count_ * view_.extent + place) * row,
                      static_cast<size_t>(row));
        }
      }
    });
    return Status();
  }

 private:
  void FillMissing(std::byte* row) const {
    const double missing = IsFloat(dtype_) ? std::numeric_limits<double>::quiet_NaN() : 0;
    for (int64_t i = 0; i < view_.inner; ++i) StoreFromDouble(dtype_, row, i, missing);
  }

  const AxisView view_;
  const int64_t count_;
  const DType index_type_, dtype_;
  const int threads_;
};

class ScatterAddKernel : public Kernel {
 public:
  ScatterAddKernel(const OpCall& call, int threads)
      : view_(ViewOf(call, call.outputs[0].dims)),
        count_(call.inputs[0].elements()),
        index_type_(call.inputs[0].dtype),
        threads_(threads) {}

  Status Run(const KernelBuffers& b) override {
    const bool by_column = view_.inner >= 16 * threads_;
    ForEachPart(threads_, [&](int part) {
      Range rows{0, view_.extent}, columns{0, view_.inner};
      if (by_column) {
        columns = PartOf(view_.inner, threads_, part, 16);
      } else {
        rows = PartOf(view_.extent, threads_, part);
      }
      for (int64_t o = 0; o < view_.outer; ++o) RunOuter(b, o, rows, columns);
    });
    return Status();
  }

 private:
  void RunOuter(const KernelBuffers& b, int64_t o, Range rows, Range columns) const {
    const auto* updates = static_cast<const float*>(b.inputs[1]) + o * count_ * view_.inner;
    auto* table = static_cast<float*>(b.outputs[0]) + o * view_.extent * view_.inner;
    for (int64_t k = rows.begin; k < rows.end; ++k)
      std::fill(table + k * view_.inner + columns.begin, table + k * view_.inner + columns.end,
                0.0F);
    for (int64_t n = 0; n < count_; ++n) {
      const int64_t place = PlaceOf(index_type_, b.inputs[0], n, view_.extent);
      if (place < rows.begin || place >= rows.end) continue;
      float* to = table + place * view_.inner;
      const float* from = updates + n * view_.inner;
      for (int64_t i = columns.begin; i < columns.end; ++i) to[i] += from[i];
    }
  }

  const AxisView view_;
  const int64_t count_;
  const DType index_type_;
  const int threads_;
};

const char* OfferPlain(const Question& q, std::vector<KernelChoice>& choices) {
  KernelChoice choice = MakeChoice(q, "cpu." + q.op.name);
  choice.in_place.clear();
  SetKey(q, choice);
  choices.push_back(std::move(choice));
  return nullptr;
}

}  // namespace

const char* OfferArgmax(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (q.call.inputs[0].dtype != DType::kF32) return refusal::kDType;
  return OfferPlain(q, choices);
}
const char* OfferGather(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  return OfferPlain(q, choices);
}
const char* OfferScatterAdd(const Question& q, std::vector<KernelChoice>& choices) {
  if (AnyEmpty(q.call)) return refusal::kEmpty;
  if (q.call.outputs[0].dtype != DType::kF32) return refusal::kDType;
  return OfferPlain(q, choices);
}

Result<std::unique_ptr<Kernel>> CreateArgmax(const CpuContext& cpu, const OpDef& op,
                                             const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<ArgmaxKernel>(ViewOf(call, call.inputs[0].dims), ThreadsFor(cpu, op, call)));
}
Result<std::unique_ptr<Kernel>> CreateGather(const CpuContext& cpu, const OpDef& op,
                                             const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(std::make_unique<GatherKernel>(call, ThreadsFor(cpu, op, call)));
}
Result<std::unique_ptr<Kernel>> CreateScatterAdd(const CpuContext& cpu, const OpDef& op,
                                                 const OpCall& call, const KernelChoice&) {
  return std::unique_ptr<Kernel>(
      std::make_unique<ScatterAddKernel>(call, ThreadsFor(cpu, op, call)));
}

}  // namespace ridge::cpu
