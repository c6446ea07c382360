// softmax_cross_entropy and its gradient, f32 logits, a row at a time or short rows side by side;
// threads share the rows.
#include <algorithm>
#include <cmath>
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
  bool short_rows() const { return classes >= 1 && classes <= kFewClasses; }
  bool Valid(int64_t label) const { return label != ignore_index && label >= 0 && label < classes; }
  // What stands for the loss and its gradients where the label is not valid.
  float Unlabelled(int64_t label) const {
    return label == ignore_index ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
};

class LossKernel : public HostKernel<LossKernel> {
 public:
  LossKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const auto* logits = static_cast<const float*>(buffers.inputs[0]);
    auto* losses = static_cast<float*>(buffers.outputs[0]);
    ParallelFor(rows_.threads, rows_.rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
      if (rows_.short_rows())
        RunShort(logits, buffers.inputs[1], begin, end, losses);
      else
        RunLong(logits, buffers.inputs[1], begin, end, losses);
    });
    return Status();
  }

 private:
  void RunLong(const float* logits, const void* labels, int64_t begin, int64_t end,
               float* losses) const {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = rows_.Label(labels, row);
      losses[row] = rows_.Valid(label)
                        ? CrossEntropyRow(logits + row * rows_.classes, rows_.classes, label)
                        : rows_.Unlabelled(label);
    }
  }

  void RunShort(const float* logits, const void* labels, int64_t begin, int64_t end,
                float* losses) const {
    ShortRows block;
    for (int64_t first = begin; first < end; first += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, end - first);
      ExponentiateShortRows(logits + first * rows_.classes, count, rows_.classes, block);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t row = first + r, label = rows_.Label(labels, row);
        if (!rows_.Valid(label)) {
          losses[row] = rows_.Unlabelled(label);
          continue;
        }
        const double log_sum = std::log(static_cast<double>(block.sum[r]));
        const double below_max =
            static_cast<double>(block.max[r]) - logits[row * rows_.classes + label];
        losses[row] = static_cast<float>(log_sum + below_max);
      }
    }
  }

  const Rows rows_;
};

class GradKernel : public HostKernel<GradKernel> {
 public:
  GradKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const auto* logits = static_cast<const float*>(buffers.inputs[0]);
    const auto* dlosses = static_cast<const float*>(buffers.inputs[2]);
    auto* dlogits = static_cast<float*>(buffers.outputs[0]);
    ParallelFor(rows_.threads, rows_.rows, kRowsAtOnce, [&](int64_t begin, int64_t end) {
      if (rows_.short_rows())
        RunShort(logits, buffers.inputs[1], dlosses, begin, end, dlogits);
      else
        RunLong(logits, buffers.inputs[1], dlosses, begin, end, dlogits);
    });
    return Status();
  }

 private:
  void RunLong(const float* logits, const void* labels, const float* dlosses, int64_t begin,
               int64_t end, float* dlogits) const {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t label = rows_.Label(labels, row), at = row * rows_.classes;
      if (rows_.Valid(label))
        CrossEntropyGradRow(logits + at, rows_.classes, label, dlosses[row], dlogits + at);
      else
        std::fill_n(dlogits + at, rows_.classes, rows_.Unlabelled(label));
    }
  }

  // dlogits may be logits: a row is read before it is written.
  void RunShort(const float* logits, const void* labels, const float* dlosses, int64_t begin,
                int64_t end, float* dlogits) const {
    ShortRows block;
    for (int64_t first = begin; first < end; first += kRowsAtOnce) {
      const int64_t count = std::min(kRowsAtOnce, end - first);
      ExponentiateShortRows(logits + first * rows_.classes, count, rows_.classes, block);
      for (int64_t r = 0; r < count; ++r) {
        const int64_t row = first + r, label = rows_.Label(labels, row);
        float* to = dlogits + row * rows_.classes;
        if (!rows_.Valid(label)) {
          std::fill_n(to, rows_.classes, rows_.Unlabelled(label));
          continue;
        }
        const double below_max =
            static_cast<double>(logits[row * rows_.classes + label]) - block.max[r];
        const double sum = block.sum[r];
        const auto scale = static_cast<float>(dlosses[row] / sum);
        for (int64_t c = 0; c < rows_.classes; ++c) to[c] = block.terms[c][r] * scale;
        // p - 1 of a sure row would cancel in f32.
        to[label] = static_cast<float>((std::exp(below_max) / sum - 1) * dlosses[row]);
      }
    }
  }

  const Rows rows_;
};

// Of a row it gives the loss alone, and its gradient finds the log-sum again: it is in cache.
const char* Refuse(const CandidateQuery& q) {
  constexpr size_t kLogSums = 3;
  if (q.call.outputs.size() > 1 || q.call.has_input(kLogSums)) return refusal::kAttribute;
  return q.call.outputs[0].dtype == DType::kF32 ? nullptr : refusal::kDType;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return q.op.name == "softmax_cross_entropy" ? MakeKernel<LossKernel>(q, choice)
                                              : MakeKernel<GradKernel>(q, choice);
}

}  // namespace

KernelDef CrossEntropyKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"softmax_cross_entropy", "softmax_cross_entropy_grad"},
          .dtypes = {DType::kF32},
          .refuse = Refuse,
          .make = Make};
}

}  // namespace ridge::cpu
