// ctc_loss and its gradient, f32 and f64 logits; threads share the samples.
//
// The recursion is in double, in log space, in the workspace: sums over hundreds of frames reach
// -1000, where f32 keeps four digits of a share.  The gradient keeps a row of states a frame, the
// loss one row in all.  A thread has one sample at a time: the bits don't depend on their number.
#include "ridge/graph/ops/shared/ctc.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ridge/backend/cpu/kernels/cross_entropy_rows.h"
#include "ridge/backend/cpu/kernels/for_dtype.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/cross_entropy.h"

namespace ridge::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t LargestOf(const float* row, int64_t classes) {
  return std::max_element(row, row + classes) - row;
}

// log(sum(exp(row)))
double LogSum(const float* row, int64_t classes) {
  const int64_t largest = LargestOf(row, classes);
  return static_cast<double>(row[largest]) + CrossEntropyRow(row, classes, largest);
}
double LogSum(const double* row, int64_t classes) { return LogSumExp(row, classes); }

// to = softmax(row) * scale; `to` may be `row`.
void ScaledSoftmax(const float* row, int64_t classes, double, double scale, float* to) {
  const int64_t largest = LargestOf(row, classes);
  CrossEntropyGradRow(row, classes, largest, static_cast<float>(scale), to);
  to[largest] += static_cast<float>(scale);
}
void ScaledSoftmax(const double* row, int64_t classes, double log_sum, double scale, double* to) {
  for (int64_t k = 0; k < classes; ++k) to[k] = std::exp(row[k] - log_sum) * scale;
}

int64_t IntegerAt(const void* data, DType type, int64_t i) {
  return type == DType::kI64 ? static_cast<const int64_t*>(data)[i]
                             : static_cast<const int32_t*>(data)[i];
}

// A thread's part of the workspace, all elements of 8 bytes.
struct CtcScratch {
  int64_t* labels;   // (S) of the states
  double* log_sums;  // (T) of the frames
  double* beta;      // (S)
  double* alpha;     // (T, S), or (S) for the loss alone

  CtcScratch(void* workspace, const CtcShape& shape, int part, int64_t rows) {
    const int64_t states = shape.max_states();
    labels = static_cast<int64_t*>(workspace) + part * Elements(shape, rows);
    log_sums = reinterpret_cast<double*>(labels + states);
    beta = log_sums + shape.frames;
    alpha = beta + states;
  }
  static int64_t Elements(const CtcShape& shape, int64_t rows) {
    return shape.frames + (2 + rows) * shape.max_states();
  }
};

// One sample's recursion.
template <typename T>
class CtcSample {
 public:
  // Rows of alpha: one a frame where the gradient reads them.
  CtcSample(const CtcShape& shape, const CtcScratch& scratch, bool keep)
      : shape_(shape), scratch_(scratch), keep_(keep) {}

  // False for a length outside its range or a counted target that is no class.
  bool Read(const OpCall& call, const KernelBuffers& b, int64_t sample) {
    const auto integer = [&](size_t i, int64_t at) {
      return IntegerAt(b.inputs[i], call.inputs[i].dtype, at);
    };
    logits_ = static_cast<const T*>(b.inputs[0]) + sample * shape_.frames * shape_.classes;
    frames_ = integer(2, sample);
    const int64_t count = integer(3, sample);
    if (frames_ < 0 || frames_ > shape_.frames || count < 0 || count > shape_.targets) return false;
    states_ = 2 * count + 1;
    for (int64_t s = 0; s < states_; ++s) {
      int64_t& label = scratch_.labels[s];
      label = s % 2 == 0 ? shape_.blank : integer(1, sample * shape_.targets + s / 2);
      if (label < 0 || label >= shape_.classes) return false;
    }
    return true;
  }

  double Loss() {
    if (frames_ == 0) return states_ == 1 ? 0 : kInfinity;
    for (int64_t t = 0; t < frames_; ++t) {
      scratch_.log_sums[t] = LogSum(logits_ + t * shape_.classes, shape_.classes);
      if (t == 0)
        Start();
      else
        Step(t);
    }
    const double* last = Row(frames_ - 1);
    return 0 - LogAdd(last[states_ - 1], states_ > 1 ? last[states_ - 2] : -kInfinity, -kInfinity);
  }

  // REQUIRES: `keep`, and a finite `loss` that Loss() gave.  dlogits may be the logits.
  void Gradient(double loss, double dloss, T* dlogits) {
    for (int64_t t = frames_ - 1; t >= 0; --t) {
      StepBack(t);
      Share(t, loss);
      const T* row = logits_ + t * shape_.classes;
      T* to = dlogits + t * shape_.classes;
      ScaledSoftmax(row, shape_.classes, scratch_.log_sums[t], dloss, to);
      Subtract(Row(t), dloss, to);
    }
  }

  int64_t frames() const { return frames_; }

 private:
  double* Row(int64_t t) const { return scratch_.alpha + (keep_ ? t * states_ : 0); }
  double LogProb(int64_t t, int64_t s) const {
    return static_cast<double>(logits_[t * shape_.classes + scratch_.labels[s]]) -
           scratch_.log_sums[t];
  }
  bool Skips(int64_t s) const {
    return s % 2 == 1 && s >= 3 && scratch_.labels[s] != scratch_.labels[s - 2];
  }

  void Start() {
    double* row = Row(0);
    for (int64_t s = 0; s < states_; ++s) row[s] = s <= 1 ? LogProb(0, s) : -kInfinity;
  }

  // Downwards, so that the row of frame t may be that of frame t - 1.
  void Step(int64_t t) {
    const double* before = Row(t - 1);
    double* row = Row(t);
    for (int64_t s = states_ - 1; s >= 0; --s) {
      row[s] = LogAdd(before[s], s >= 1 ? before[s - 1] : -kInfinity,
                      Skips(s) ? before[s - 2] : -kInfinity) +
               LogProb(t, s);
    }
  }

  // beta of frame t from that of t + 1, which has its emissions by then; upwards, in place.
  void StepBack(int64_t t) {
    double* beta = scratch_.beta;
    const bool last = t == frames_ - 1;
    for (int64_t s = 0; s < states_; ++s) {
      if (last)
        beta[s] = s >= states_ - 2 ? 0 : -kInfinity;
      else
        beta[s] = LogAdd(beta[s], s + 1 < states_ ? beta[s + 1] : -kInfinity,
                         s + 2 < states_ && Skips(s + 2) ? beta[s + 2] : -kInfinity);
    }
  }

  // Each state's share of the alignments, in alpha's place; beta gets frame t's emissions, before
  // its logits may be overwritten.
  void Share(int64_t t, double loss) {
    double *alpha = Row(t), *beta = scratch_.beta;
    for (int64_t s = 0; s < states_; ++s) {
      alpha[s] = std::exp(alpha[s] + beta[s] + loss);
      beta[s] += LogProb(t, s);
    }
  }

  void Subtract(const double* shares, double dloss, T* to) const {
    double blanks = 0;
    for (int64_t s = 0; s < states_; s += 2) blanks += shares[s];
    to[shape_.blank] -= static_cast<T>(blanks * dloss);
    for (int64_t s = 1; s < states_; s += 2) {
      to[scratch_.labels[s]] -= static_cast<T>(shares[s] * dloss);
    }
  }

  const CtcShape& shape_;
  const CtcScratch scratch_;
  const bool keep_;
  const T* logits_ = nullptr;  // (T, C)
  int64_t frames_ = 0, states_ = 0;
};

// Rows of alpha that a call keeps.
int64_t RowsKept(const OpCall& call) {
  return call.inputs.size() == 5 ? call.inputs[0].dims[1] : 1;
}

template <typename T>
class CtcKernel : public HostKernel<CtcKernel<T>> {
 public:
  CtcKernel(const OpCall& call, int threads)
      : call_(call), shape_(CtcShapeOf(call)), threads_(threads) {}

  Status Run(const KernelBuffers& b) {
    const bool gradient = call_.inputs.size() == 5;
    ForEachPart(threads_, [&](int part) {
      const CtcScratch scratch(b.workspace, shape_, part, RowsKept(call_));
      CtcSample<T> sample(shape_, scratch, gradient);
      const Range range = PartOf(shape_.batch, threads_, part);
      for (int64_t i = range.begin; i < range.end; ++i) {
        const bool valid = sample.Read(call_, b, i);
        const double loss = valid ? sample.Loss() : std::numeric_limits<double>::quiet_NaN();
        if (gradient)
          WriteGradient(b, i, valid, loss, sample);
        else
          WriteLoss(b, i, loss);
      }
    });
    return Status();
  }

 private:
  void WriteLoss(const KernelBuffers& b, int64_t i, double loss) const {
    const bool zero = shape_.zero_infinity && std::isinf(loss);
    static_cast<T*>(b.outputs[0])[i] = zero ? 0 : static_cast<T>(loss);
  }

  void WriteGradient(const KernelBuffers& b, int64_t i, bool valid, double loss,
                     CtcSample<T>& sample) const {
    const int64_t size = shape_.frames * shape_.classes;
    T* dlogits = static_cast<T*>(b.outputs[0]) + i * size;
    const bool zero = valid && shape_.zero_infinity && std::isinf(loss);
    const int64_t used = zero ? 0 : valid ? sample.frames() * shape_.classes : size;
    if (std::isfinite(loss))
      sample.Gradient(loss, static_cast<const T*>(b.inputs[4])[i], dlogits);
    else
      std::fill_n(dlogits, used, std::numeric_limits<T>::quiet_NaN());
    std::fill(dlogits + used, dlogits + size, T{0});
  }

  const OpCall call_;
  const CtcShape shape_;
  const int threads_;
};

int64_t WorkspaceBytes(const CandidateQuery& q) {
  return q.threads() * 8 * CtcScratch::Elements(CtcShapeOf(q.call), RowsKept(q.call));
}

}  // namespace

KernelDef CtcKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"ctc_loss", "ctc_loss_grad"},
          .dtypes = Reals::dtypes(),
          .workspace_bytes = WorkspaceBytes,
          .make = MakeOfElement<CtcKernel, Reals>};
}

}  // namespace ridge::cpu
