// lstm, gru, rnn and their gradients, f32: the whole sequence in one kernel.
//
// A step is one product with the recurrent weight, which stays packed for the whole run, and a pass
// over the rows, which threads share.  Between steps the state does not leave the cache.
#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/recurrent_rows.h"
#include "ridge/backend/cpu/kernels/step_product.h"
#include "ridge/backend/cpu/parallel.h"
#include "ridge/graph/ops/shared/sequence.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kFewElements = 4096;  // of a state: a second thread wakes up too late

const float* In(const KernelBuffers& b, size_t i) {
  return i < b.inputs.size() ? static_cast<const float*>(b.inputs[i]) : nullptr;
}
float* Out(const KernelBuffers& b, size_t i) { return static_cast<float*>(b.outputs[i]); }
const float* At(const float* x, int64_t offset) { return x == nullptr ? nullptr : x + offset; }

// One step of one direction through time.
struct Step {
  int64_t now = 0;                 // states before that of this time
  int64_t before = -1;             // the same of the step before; -1: the initial state
  const float* product = nullptr;  // inner, or what the next step handed back; nullptr: nothing yet
};

// What the six kernels share.  Derived classes compute rows.
class SequenceKernel : public HostKernel<SequenceKernel> {
 public:
  SequenceKernel(const SequenceExtents& e, int64_t gates, std::unique_ptr<StepProduct> product,
                 int threads)
      : e_(e), gates_(gates), product_(std::move(product)), threads_(threads) {}
  virtual Status Run(const KernelBuffers& b) = 0;

 protected:
  virtual void Row(const KernelBuffers& b, const Step& step, int64_t n) const = 0;

  void Rows(const KernelBuffers& b, const Step& step) const {
    const int parts = e_.StateElements() < kFewElements ? 1 : threads_;
    ParallelFor(parts, e_.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) Row(b, step, n);
    });
  }
  Step StepAt(int64_t step, const float* product) const {
    const int64_t size = e_.StateElements();
    return {e_.TimeAt(step) * size, step == 0 ? -1 : e_.TimeAt(step - 1) * size, product};
  }
  // After what the product needs.
  float* Scratch(const KernelBuffers& b) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(b.workspace) +
                                    product_->WorkspaceBytes());
  }

  // Row n of the state before this step: of `first` or of `states`.
  const float* Before(const Step& step, const float* first, const float* states, int64_t n) const {
    return (step.before < 0 ? first : states + step.before) + n * e_.hidden;
  }
  int64_t At(const Step& step, int64_t n) const { return step.now + n * e_.hidden; }

  const SequenceExtents e_;
  const int64_t gates_;
  const std::unique_ptr<StepProduct> product_;
  const int threads_;
};

// Inputs are projected, r, h, ..; output 0 is y.
class ForwardKernel : public SequenceKernel {
 public:
  using SequenceKernel::SequenceKernel;
  Status Run(const KernelBuffers& b) override {
    const TeamSize team(threads_);
    float* inner = Scratch(b);  // [batch, gates*hidden]
    RIDGE_RETURN_IF_ERROR(product_->Pack(In(b, 1), b.workspace));
    for (int64_t s = 0; s < e_.seq_len; ++s) {
      const Step step = StepAt(s, inner);
      RIDGE_RETURN_IF_ERROR(
          product_->Run(Before(step, In(b, 2), Out(b, 0), 0), inner, b.workspace));
      Rows(b, step);
    }
    return Status();
  }

 protected:
  const float* Inner(const Step& step, int64_t n) const {
    return step.product + n * gates_ * e_.hidden;
  }
};

LstmBlocks LstmBlocksOf(const OpCall& call, int64_t hidden) {
  const std::string& gates = call.text("gates");
  const auto at = [&](char gate) { return GateAt(gates, gate) * hidden; };
  return {.hidden = hidden, .i = at('i'), .f = at('f'), .g = at('g'), .o = at('o')};
}

GruBlocks GruBlocksOf(const OpCall& call, int64_t hidden) {
  const std::string& gates = call.text("gates");
  const auto at = [&](char gate) { return GateAt(gates, gate) * hidden; };
  return {.hidden = hidden, .r = at('r'), .z = at('z'), .n = at('n')};
}

class LstmKernel : public ForwardKernel {
 public:
  LstmKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
             int threads)
      : ForwardKernel(e, 4, std::move(product), threads), at_(LstmBlocksOf(call, e.hidden)) {}

 private:
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    LstmRow(at_, In(b, 0) + 4 * at, Inner(step, n), Before(step, In(b, 3), Out(b, 1), n),
            Out(b, 2) + 4 * at, Out(b, 1) + at, Out(b, 0) + at);
  }
  const LstmBlocks at_;
};

class GruKernel : public ForwardKernel {
 public:
  GruKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
            int threads)
      : ForwardKernel(e, 3, std::move(product), threads), at_(GruBlocksOf(call, e.hidden)) {}

 private:
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    GruRow(at_, In(b, 0) + 3 * at, Inner(step, n), In(b, 3), Before(step, In(b, 2), Out(b, 0), n),
           Out(b, 1) + 4 * at, Out(b, 0) + at);
  }
  const GruBlocks at_;
};

class RnnKernel : public ForwardKernel {
 public:
  RnnKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
            int threads)
      : ForwardKernel(e, 1, std::move(product), threads), relu_(call.integer("relu") != 0) {}

 private:
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    RnnRow(e_.hidden, relu_, In(b, 0) + at, Inner(step, n), Out(b, 0) + at);
  }
  const bool relu_;
};

// From the last step to the first; `d` is the output that the product hands back, `dh` what it
// gives.
class BackwardKernel : public SequenceKernel {
 public:
  BackwardKernel(const SequenceExtents& e, int64_t gates, std::unique_ptr<StepProduct> product,
                 int threads, size_t weight, size_t d, size_t dh)
      : SequenceKernel(e, gates, std::move(product), threads), weight_(weight), d_(d), dh_(dh) {}

  Status Run(const KernelBuffers& b) override {
    const TeamSize team(threads_);
    float* dh = Out(b, dh_);
    std::fill_n(dh, e_.StateElements(), 0.0F);
    Begin(b);
    RIDGE_RETURN_IF_ERROR(product_->Pack(In(b, weight_), b.workspace));
    for (int64_t s = e_.seq_len; s-- > 0;) {
      const Step step = StepAt(s, dh);
      Rows(b, step);
      RIDGE_RETURN_IF_ERROR(product_->Run(Out(b, d_) + gates_ * step.now, dh, b.workspace));
    }
    End(b);
    return Status();
  }

 protected:
  virtual void Begin(const KernelBuffers&) const {}
  virtual void End(const KernelBuffers&) const {}
  const float* Handed(const Step& step, int64_t n) const { return step.product + n * e_.hidden; }

 private:
  const size_t weight_, d_, dh_;
};

// r, c, cells, activated, dy, dcells -> dprojected, dh, dc
class LstmGradKernel : public BackwardKernel {
 public:
  LstmGradKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
                 int threads)
      : BackwardKernel(e, 4, std::move(product), threads, /*weight=*/0, /*d=*/0, /*dh=*/1),
        at_(LstmBlocksOf(call, e.hidden)) {}

 private:
  void Begin(const KernelBuffers& b) const override {
    std::fill_n(Out(b, 2), e_.StateElements(), 0.0F);
  }
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    LstmGradRow(at_, {.activated = In(b, 3) + 4 * at,
                      .cell = In(b, 2) + at,
                      .before = Before(step, In(b, 1), In(b, 2), n),
                      .dy = In(b, 4) + at,
                      .handed = Handed(step, n),
                      .dcell = cpu::At(In(b, 5), at),
                      .dc = Out(b, 2) + n * e_.hidden,
                      .d = Out(b, 0) + 4 * at});
  }
  const LstmBlocks at_;
};

// r, h, y, activated, dy -> dprojected, dinner, dh
class GruGradKernel : public BackwardKernel {
 public:
  GruGradKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
                int threads)
      : BackwardKernel(e, 3, std::move(product), threads, /*weight=*/0, /*d=*/1, /*dh=*/2),
        at_(GruBlocksOf(call, e.hidden)) {}

 private:
  // The part of dh that does not come from the product.
  void Begin(const KernelBuffers& b) const override {
    std::fill_n(Scratch(b), e_.StateElements(), 0.0F);
  }
  void End(const KernelBuffers& b) const override {
    const float* direct = Scratch(b);
    for (int64_t k = 0; k < e_.StateElements(); ++k) Out(b, 2)[k] += direct[k];
  }
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    GruGradRow(at_, {.activated = In(b, 3) + 4 * at,
                     .before = Before(step, In(b, 1), In(b, 2), n),
                     .dy = In(b, 4) + at,
                     .handed = Handed(step, n),
                     .direct = Scratch(b) + n * e_.hidden,
                     .dprojected = Out(b, 0) + 3 * at,
                     .dinner = Out(b, 1) + 3 * at});
  }
  const GruBlocks at_;
};

// r, y, dy -> dprojected, dh
class RnnGradKernel : public BackwardKernel {
 public:
  RnnGradKernel(const OpCall& call, const SequenceExtents& e, std::unique_ptr<StepProduct> product,
                int threads)
      : BackwardKernel(e, 1, std::move(product), threads, /*weight=*/0, /*d=*/0, /*dh=*/1),
        relu_(call.integer("relu") != 0) {}

 private:
  void Row(const KernelBuffers& b, const Step& step, int64_t n) const override {
    const int64_t at = At(step, n);
    RnnGradRow(e_.hidden, relu_, In(b, 1) + at, In(b, 2) + at, Handed(step, n), Out(b, 0) + at);
  }
  const bool relu_;
};

// Where an operator's sequence and weight are, and its kernel.
using MakeFn = std::unique_ptr<Kernel> (*)(const OpCall&, const SequenceExtents&,
                                           std::unique_ptr<StepProduct>, int);
template <typename K>
std::unique_ptr<Kernel> MakeOf(const OpCall& call, const SequenceExtents& e,
                               std::unique_ptr<StepProduct> product, int threads) {
  return std::make_unique<K>(call, e, std::move(product), threads);
}
struct Family {
  const char* op;
  size_t sequence, weight;
  int64_t gates;
  bool backward;
  int64_t scratch;  // widths of `hidden` a sample
  MakeFn make;
};
constexpr Family kFamilies[] = {
    {"lstm", 0, 1, 4, false, 4, MakeOf<LstmKernel>},
    {"lstm_grad", 3, 0, 4, true, 0, MakeOf<LstmGradKernel>},
    {"gru", 0, 1, 3, false, 3, MakeOf<GruKernel>},
    {"gru_grad", 3, 0, 3, true, 1, MakeOf<GruGradKernel>},
    {"rnn", 0, 1, 1, false, 1, MakeOf<RnnKernel>},
    {"rnn_grad", 1, 0, 1, true, 0, MakeOf<RnnGradKernel>},
};

const Family& FamilyOf(const OpDef& op) {
  return *std::find_if(std::begin(kFamilies), std::end(kFamilies) - 1,
                       [&](const Family& family) { return op.name == family.op; });
}

SequenceExtents ExtentsOf(const CandidateQuery& q, const Family& family) {
  return SequenceExtentsOf(q.call, family.sequence, family.weight);
}

std::unique_ptr<StepProduct> ProductOf(const CandidateQuery& q, const Family& family) {
  const SequenceExtents e = ExtentsOf(q, family);
  const int64_t wide = family.gates * e.hidden;
  if (family.backward) {
    return StepProduct::Make(q.cpu, {.rows = e.batch, .depth = wide, .columns = e.hidden},
                             q.threads());
  }
  return StepProduct::Make(
      q.cpu, {.rows = e.batch, .depth = e.hidden, .columns = wide, .transposed = true},
      q.threads());
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const Family& family = FamilyOf(q.op);
  const auto product = ProductOf(q, family);
  if (product == nullptr) return refusal::kNoPrimitive;
  KernelChoice& choice = candidates.Add();
  choice.workspace_bytes =
      product->WorkspaceBytes() + family.scratch * ExtentsOf(q, family).StateElements() * 4;
  choice.heap_bytes = product->HeapBytes();
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const Family& family = FamilyOf(q.op);
  auto product = ProductOf(q, family);
  if (product == nullptr) return UnsupportedChoice(q, choice);
  return family.make(q.call, ExtentsOf(q, family), std::move(product), q.threads());
}

}  // namespace

KernelDef RecurrentKernelDef() {
  return {.name = "cpu.{op}",
          .ops = {"lstm", "lstm_grad", "gru", "gru_grad", "rnn", "rnn_grad"},
          .dtypes = {DType::kF32},
          .one_dtype = true,
          .efficiency = 0.5,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
