// softmax_cross_entropy and its gradient, f32 logits, a row at a time; threads share the rows.
#include <algorithm>
#include <limits>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/cross_entropy_rows.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

struct Rows {
  int64_t rows, classes, ignore_index;
  DType label_type;
  int threads;

  Rows(const OpCall& call, int team)
      : rows(call.inputs[1].elements()),
        classes(call.inputs[0].dims.back()),
        ignore_index(call.integer("ignore_index")),
        label_type(call.inputs[1].dtype),
        threads(team) {}

  int64_t Label(const void* labels, int64_t row) const {
    return label_type == DType::kI64 ? static_cast<const int64_t*>(labels)[row]
                                     : static_cast<const int32_t*>(labels)[row];
  }
  bool Valid(int64_t label) const { return label >= 0 && label < classes; }
};

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class LossKernel : public HostKernel<LossKernel> {
 public:
  LossKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const auto* logits = static_cast<const float*>(buffers.inputs[0]);
    auto* losses = static_cast<float*>(buffers.outputs[0]);
    ParallelFor(rows_.threads, rows_.rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = rows_.Label(buffers.inputs[1], row);
        if (label == rows_.ignore_index) {
          losses[row] = 0;
        } else {
          losses[row] = rows_.Valid(label)
                            ? CrossEntropyRow(logits + row * rows_.classes, rows_.classes, label)
                            : kNaN;
        }
      }
    });
    return Status();
  }

 private:
  const Rows rows_;
};

class GradKernel : public HostKernel<GradKernel> {
 public:
  GradKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const auto* logits = static_cast<const float*>(buffers.inputs[0]);
    const auto* dlosses = static_cast<const float*>(buffers.inputs[2]);
    auto* dlogits = static_cast<float*>(buffers.outputs[0]);
    ParallelFor(rows_.threads, rows_.rows, 16, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = rows_.Label(buffers.inputs[1], row), at = row * rows_.classes;
        if (label != rows_.ignore_index && rows_.Valid(label)) {
          CrossEntropyGradRow(logits + at, rows_.classes, label, dlosses[row], dlogits + at);
        } else {
          std::fill_n(dlogits + at, rows_.classes, label == rows_.ignore_index ? 0.0F : kNaN);
        }
      }
    });
    return Status();
  }

 private:
  const Rows rows_;
};

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return q.op.name == "softmax_cross_entropy" ? MakeKernel<LossKernel>(q, choice)
                                              : MakeKernel<GradKernel>(q, choice);
}

}  // namespace

KernelDef CrossEntropyKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"softmax_cross_entropy", "softmax_cross_entropy_grad"},
          .dtypes = {DType::kF32},
          .make = Make};
}

}  // namespace ridge::cpu
