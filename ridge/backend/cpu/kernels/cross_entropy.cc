// softmax_cross_entropy and its gradient, a row at a time or short rows side by side; threads share
// the rows.  Logits of 16 bits are widened to a thread's own rows of f32, where gradients are
// written too before they are rounded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/cross_entropy_rows.h"
#include "ridge/backend/cpu/kernels/tile_program.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

struct Rows {
  int64_t rows, classes, ignore_index;
  DType logit_type, label_type;
  int threads;

  Rows(const OpCall& call, int team)
      : rows(call.inputs[1].elements()),
        classes(call.inputs[0].dims.back()),
        ignore_index(call.integer("ignore_index")),
        logit_type(call.inputs[0].dtype),
        label_type(call.inputs[1].dtype),
        threads(team) {}

  int64_t Label(const void* labels, int64_t row) const {
    return label_type == DType::kI64 ? static_cast<const int64_t*>(labels)[row]
                                     : static_cast<const int32_t*>(labels)[row];
  }
  bool short_rows() const { return classes >= 1 && classes <= kFewClasses; }
  bool narrow() const { return logit_type != DType::kF32; }
  int64_t rows_at_once() const { return short_rows() ? kRowsAtOnce : 1; }
  // Of a thread's widened rows.
  int64_t OwnFloats() const {
    constexpr int64_t kAligned = 16;
    return narrow() ? RoundUp(rows_at_once() * classes, kAligned) : 0;
  }
  bool Valid(int64_t label) const { return label != ignore_index && label >= 0 && label < classes; }
  // What stands for the loss and its gradients where the label is not valid.
  float Unlabelled(int64_t label) const {
    return label == ignore_index ? 0 : std::numeric_limits<float>::quiet_NaN();
  }

  // Calls f(first, count, own) for all rows, rows_at_once() at a time; `own` are a thread's floats.
  template <typename F>
  void ForEachBlock(void* workspace, const F& f) const {
    ForEachPart(threads, [&](int part) {
      const Range range = PartOf(rows, threads, part, kRowsAtOnce);
      float* own = narrow() ? static_cast<float*>(workspace) + part * OwnFloats() : nullptr;
      const int64_t step = rows_at_once();
      for (int64_t first = range.begin; first < range.end; first += step)
        f(first, std::min(step, range.end - first), own);
    });
  }

  // Rows [first, first + count) as f32: where they are, or widened to `own`.
  const float* Read(const void* logits, int64_t first, int64_t count, float* own) const {
    const int64_t at = first * classes, elements = count * classes;
    if (!narrow()) return static_cast<const float*>(logits) + at;
    const uint16_t* from = static_cast<const uint16_t*>(logits) + at;
    for (int64_t i = LoadVectors(logit_type, from, own, elements); i < elements; ++i)
      own[i] = logit_type == DType::kBF16 ? BF16ToFloat(from[i]) : F16ToFloat(from[i]);
    return own;
  }

  // Where gradients of these rows are written, and then rounded to the logits' type.
  float* WriteTo(void* dlogits, int64_t first, float* own) const {
    return narrow() ? own : static_cast<float*>(dlogits) + first * classes;
  }
  void Written(const float* own, int64_t first, int64_t count, void* dlogits) const {
    if (!narrow()) return;
    const int64_t elements = count * classes;
    uint16_t* to = static_cast<uint16_t*>(dlogits) + first * classes;
    for (int64_t i = StoreVectors(logit_type, own, to, elements); i < elements; ++i)
      to[i] = logit_type == DType::kBF16 ? FloatToBF16(own[i]) : FloatToF16(own[i]);
  }
};

class LossKernel : public HostKernel<LossKernel> {
 public:
  LossKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const void* labels = buffers.inputs[1];
    auto* losses = static_cast<float*>(buffers.outputs[0]);
    rows_.ForEachBlock(buffers.workspace, [&](int64_t first, int64_t count, float* own) {
      const float* logits = rows_.Read(buffers.inputs[0], first, count, own);
      if (rows_.short_rows())
        RunShort(logits, labels, first, count, losses);
      else
        RunLong(logits, labels, first, losses);
    });
    return Status();
  }

 private:
  void RunLong(const float* logits, const void* labels, int64_t row, float* losses) const {
    const int64_t label = rows_.Label(labels, row);
    losses[row] = rows_.Valid(label) ? CrossEntropyRow(logits, rows_.classes, label)
                                     : rows_.Unlabelled(label);
  }

  void RunShort(const float* logits, const void* labels, int64_t first, int64_t count,
                float* losses) const {
    ShortRows block;
    ExponentiateShortRows(logits, count, rows_.classes, block);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r, label = rows_.Label(labels, row);
      if (!rows_.Valid(label)) {
        losses[row] = rows_.Unlabelled(label);
        continue;
      }
      const double log_sum = std::log(static_cast<double>(block.sum[r]));
      const double below_max =
          static_cast<double>(block.max[r]) - logits[r * rows_.classes + label];
      losses[row] = static_cast<float>(log_sum + below_max);
    }
  }

  const Rows rows_;
};

// dlogits may be logits: rows are read before they are written.
class GradKernel : public HostKernel<GradKernel> {
 public:
  GradKernel(const OpCall& call, int threads) : rows_(call, threads) {}
  Status Run(const KernelBuffers& buffers) {
    const void* labels = buffers.inputs[1];
    const auto* dlosses = static_cast<const float*>(buffers.inputs[2]);
    rows_.ForEachBlock(buffers.workspace, [&](int64_t first, int64_t count, float* own) {
      const float* logits = rows_.Read(buffers.inputs[0], first, count, own);
      float* dlogits = rows_.WriteTo(buffers.outputs[0], first, own);
      if (rows_.short_rows())
        RunShort(logits, labels, dlosses, first, count, dlogits);
      else
        RunLong(logits, labels, dlosses, first, dlogits);
      rows_.Written(own, first, count, buffers.outputs[0]);
    });
    return Status();
  }

 private:
  void RunLong(const float* logits, const void* labels, const float* dlosses, int64_t row,
               float* dlogits) const {
    const int64_t label = rows_.Label(labels, row);
    if (rows_.Valid(label))
      CrossEntropyGradRow(logits, rows_.classes, label, dlosses[row], dlogits);
    else
      std::fill_n(dlogits, rows_.classes, rows_.Unlabelled(label));
  }

  void RunShort(const float* logits, const void* labels, const float* dlosses, int64_t first,
                int64_t count, float* dlogits) const {
    ShortRows block;
    ExponentiateShortRows(logits, count, rows_.classes, block);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = first + r, at = r * rows_.classes, label = rows_.Label(labels, row);
      float* to = dlogits + at;
      if (!rows_.Valid(label)) {
        std::fill_n(to, rows_.classes, rows_.Unlabelled(label));
        continue;
      }
      const double below_max = static_cast<double>(logits[at + label]) - block.max[r];
      const double sum = block.sum[r];
      const auto scale = static_cast<float>(dlosses[row] / sum);
      for (int64_t c = 0; c < rows_.classes; ++c) to[c] = block.terms[c][r] * scale;
      // p - 1 of a sure row would cancel in f32.
      to[label] = static_cast<float>((std::exp(below_max) / sum - 1) * dlosses[row]);
    }
  }

  const Rows rows_;
};

// Of a row it gives the loss alone, and its gradient finds the log-sum again: it is in cache.
const char* Refuse(const CandidateQuery& q) {
  constexpr size_t kLogSums = 3;
  if (q.call.outputs.size() > 1 || q.call.has_input(kLogSums)) return refusal::kAttribute;
  const bool gradient = q.op.name == "softmax_cross_entropy_grad";
  const DType out = gradient ? q.call.inputs[0].dtype : DType::kF32;
  return q.call.outputs[0].dtype == out ? nullptr : refusal::kDType;
}

int64_t WorkspaceBytes(const CandidateQuery& q) {
  const Rows rows(q.call, q.threads());
  return rows.threads * rows.OwnFloats() * static_cast<int64_t>(sizeof(float));
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return q.op.name == "softmax_cross_entropy" ? MakeKernel<LossKernel>(q, choice)
                                              : MakeKernel<GradKernel>(q, choice);
}

}  // namespace

KernelDef CrossEntropyKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"softmax_cross_entropy", "softmax_cross_entropy_grad"},
          .dtypes = {DType::kF32, DType::kBF16, DType::kF16},
          .refuse = Refuse,
          .workspace_bytes = WorkspaceBytes,
          .make = Make};
}

}  // namespace ridge::cpu
