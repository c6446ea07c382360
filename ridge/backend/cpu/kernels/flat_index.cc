// element_index and ravel_index: places in a flat array from indices, a row at a time.
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/index_place.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/checks.h"

namespace ridge::cpu {
namespace {

class ElementIndexKernel : public HostKernel<ElementIndexKernel> {
 public:
  ElementIndexKernel(const OpCall& call, int threads)
      : dims_(call.inputs[0].dims),
        strides_(RowMajorStrides(call.integers("dims"))),
        missing_(ElementCount(call.integers("dims"))),
        index_type_(call.inputs[0].dtype),
        threads_(threads) {
    const auto at = static_cast<size_t>(CallAxis(call));
    extent_ = call.integers("dims")[at];
    along_ = strides_[at];
    strides_[at] = 0;  // the index says where
  }

  Status Run(const KernelBuffers& b) {
    auto* y = static_cast<int64_t*>(b.outputs[0]);
    const int64_t width = dims_.back(), step = strides_.back();
    if (width == 0) return Status();
    ParallelFor(threads_, ElementCount(dims_) / width, 1, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t base = Base(row);
        for (int64_t i = 0; i < width; ++i) {
          const int64_t at = row * width + i;
          const int64_t place = PlaceOf(index_type_, b.inputs[0], at, extent_);
          y[at] = place < 0 ? missing_ : base + i * step + place * along_;
        }
      }
    });
    return Status();
  }

 private:
  // Where a row begins, but for the axis.
  int64_t Base(int64_t row) const {
    int64_t base = 0;
    for (size_t d = dims_.size() - 1; d-- > 0;) {
      base += row % dims_[d] * strides_[d];
      row /= dims_[d];
    }
    return base;
  }

  const Dims dims_;  // of the indices
  Dims strides_;     // of the array, 0 along the axis
  const int64_t missing_;
  const DType index_type_;
  const int threads_;
  int64_t extent_ = 0, along_ = 0;
};

class RavelIndexKernel : public HostKernel<RavelIndexKernel> {
 public:
  RavelIndexKernel(const OpCall& call, int threads)
      : count_(call.outputs[0].elements()),
        missing_(ElementCount(call.integers("dims"))),
        index_type_(call.inputs[0].dtype),
        threads_(threads) {
    const Dims& dims = call.integers("dims");
    const int64_t batch = call.integer("batch_dims");
    batches_ = ElementCount(Dims(dims.begin(), dims.begin() + batch));
    extents_.assign(dims.begin() + batch, dims.end());
  }

  Status Run(const KernelBuffers& b) {
    auto* y = static_cast<int64_t*>(b.outputs[0]);
    const auto width = static_cast<int64_t>(extents_.size());
    if (count_ == 0) return Status();
    const int64_t rows_of_batch = count_ / batches_;
    ParallelFor(threads_, count_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        int64_t place = n / rows_of_batch;
        for (int64_t k = 0; k < width && place >= 0; ++k) {
          const int64_t extent = extents_[static_cast<size_t>(k)];
          const int64_t at = PlaceOf(index_type_, b.inputs[0], n * width + k, extent);
          place = at < 0 ? -1 : place * extent + at;
        }
        y[n] = place < 0 ? missing_ : place;
      }
    });
    return Status();
  }

 private:
  const int64_t count_, missing_;
  const DType index_type_;
  const int threads_;
  int64_t batches_ = 1;
  Dims extents_;
};

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return q.op.name == "ravel_index" ? MakeKernel<RavelIndexKernel>(q, choice)
                                    : MakeKernel<ElementIndexKernel>(q, choice);
}

}  // namespace

KernelDef FlatIndexKernelDef() {
  return {.name = "cpu.places",
          .ops = {"element_index", "ravel_index"},
          .takes_empty = true,
          .make = Make};
}

}  // namespace ridge::cpu
