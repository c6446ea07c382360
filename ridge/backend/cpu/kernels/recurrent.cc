// lstm, gru, rnn and their gradients, f32: the whole sequence in one kernel.
//
// A step is one product with the recurrent weight, which stays packed for the whole run, and a pass
// over the rows, which threads share.  Between steps the state does not leave the cache.
#include "ridge/graph/ops/shared/recurrent.h"

#include <algorithm>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/recurrent_rows.h"
#include "ridge/backend/cpu/kernels/step_product.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

constexpr int64_t kFewElements = 4096;  // of a state: a second thread wakes up too late

const float* In(const KernelBuffers& b, size_t i) {
  return i < b.inputs.size() ? static_cast<const float*>(b.inputs[i]) : nullptr;
}
float* Out(const KernelBuffers& b, size_t i) { return static_cast<float*>(b.outputs[i]); }
const float* At(const float* x, int64_t offset) { return x == nullptr ? nullptr : x + offset; }

// One sample at one step.
struct Row {
  const KernelBuffers& b;
  int64_t hidden = 0;
  const int64_t* at = nullptr;  // offsets of the gates' blocks, in the order of the cell's letters
  bool relu = false;            // rnn's flag
  int64_t sample = 0;           // the sample's place in a state
  int64_t now = 0,
          before = -1;  // its place in the states of this time and before; -1: there is none
  const float* product = nullptr;  // inner, or what the next step handed back
  float* direct = nullptr;         // of dh, what does not come from the product

  const float* In(size_t i) const { return cpu::In(b, i); }
  float* Out(size_t i) const { return cpu::Out(b, i); }
  // The state before this step: of `first` or of `states`.
  const float* Before(const float* first, const float* states) const {
    return before < 0 ? first + sample : states + before;
  }
  LstmBlocks AsLstm() const {
    return {.hidden = hidden, .i = at[0], .f = at[1], .g = at[2], .o = at[3]};
  }
  GruBlocks AsGru() const { return {.hidden = hidden, .r = at[0], .z = at[1], .n = at[2]}; }
};

// projected, r, h, c -> y, cells, activated
void Lstm(const Row& row) {
  LstmRow(row.AsLstm(), row.In(0) + 4 * row.now, row.product, row.Before(row.In(3), row.Out(1)),
          row.Out(2) + 4 * row.now, row.Out(1) + row.now, row.Out(0) + row.now);
}

// r, c, cells, activated, dy, dcells -> dprojected, dh, dc
void LstmGrad(const Row& row) {
  LstmGradRow(row.AsLstm(), {.activated = row.In(3) + 4 * row.now,
                             .cell = row.In(2) + row.now,
                             .before = row.Before(row.In(1), row.In(2)),
                             .dy = row.In(4) + row.now,
                             .handed = row.product,
                             .dcell = At(row.In(5), row.now),
                             .dc = row.Out(2) + row.sample,
                             .d = row.Out(0) + 4 * row.now});
}

// projected, r, h, bias -> y, activated
void Gru(const Row& row) {
  GruRow(row.AsGru(), row.In(0) + 3 * row.now, row.product, row.In(3),
         row.Before(row.In(2), row.Out(0)), row.Out(1) + 4 * row.now, row.Out(0) + row.now);
}

// r, h, y, activated, dy -> dprojected, dinner, dh
void GruGrad(const Row& row) {
  GruGradRow(row.AsGru(), {.activated = row.In(3) + 4 * row.now,
                           .before = row.Before(row.In(1), row.In(2)),
                           .dy = row.In(4) + row.now,
                           .handed = row.product,
                           .direct = row.direct,
                           .dprojected = row.Out(0) + 3 * row.now,
                           .dinner = row.Out(1) + 3 * row.now});
}

// projected, r, h -> y
void Rnn(const Row& row) {
  RnnRow(row.hidden, row.relu, row.In(0) + row.now, row.product, row.Out(0) + row.now);
}

// r, y, dy -> dprojected, dh
void RnnGrad(const Row& row) {
  RnnGradRow(row.hidden, row.relu, row.In(1) + row.now, row.In(2) + row.now, row.product,
             row.Out(0) + row.now);
}

struct CellKernel {
  const RecurrentCell& cell;
  void (*forward)(const Row&);
  void (*back)(const Row&);
  bool has_direct;  // dh has a part that does not come from the product
};
constexpr CellKernel kCells[] = {{kLstmCell, Lstm, LstmGrad, false},
                                 {kGruCell, Gru, GruGrad, true},
                                 {kRnnCell, Rnn, RnnGrad, false}};

// One call of an operator of a cell.
struct Sequence {
  const CellKernel& of;
  bool back;
  SequenceExtents e;

  const RecurrentOp& op() const { return back ? of.cell.back : of.cell.forward; }
  int64_t Wide() const { return of.cell.blocks() * e.hidden; }  // a row of inner
  // Inner, or `direct`.
  int64_t ScratchElements() const {
    return back ? of.has_direct * e.StateElements() : e.batch * Wide();
  }
};

Sequence SequenceOf(const CandidateQuery& q) {
  const auto* of =
      std::find_if(std::begin(kCells), std::end(kCells) - 1, [&](const CellKernel& cell) {
        return q.op.name == cell.cell.forward.name || q.op.name == cell.cell.back.name;
      });
  Sequence s{.of = *of, .back = q.op.name == of->cell.back.name, .e = {}};
  s.e = SequenceExtentsOf(s.op(), q.call);
  return s;
}

class SequenceKernel : public HostKernel<SequenceKernel> {
 public:
  SequenceKernel(const OpCall& call, const Sequence& s, std::unique_ptr<StepProduct> product,
                 int threads)
      : call_(s), product_(std::move(product)), threads_(threads) {
    for (const char* gate = s.of.cell.gates; *gate != 0; ++gate)
      blocks_.push_back(GateAt(call.text("gates"), *gate) * s.e.hidden);
    relu_ = s.of.cell.flag != nullptr && call.integer(s.of.cell.flag) != 0;
  }

  Status Run(const KernelBuffers& b) {
    const TeamSize team(threads_);
    RIDGE_RETURN_IF_ERROR(product_->Pack(In(b, call_.op().Input("r")), b.workspace));
    return call_.back ? Backward(b) : Forward(b);
  }

 private:
  Status Forward(const KernelBuffers& b) const {
    float* inner = Scratch(b);
    const float* h = In(b, call_.op().Input("h"));
    for (int64_t step = 0; step < call_.e.seq_len; ++step) {
      RIDGE_RETURN_IF_ERROR(product_->Run(h, inner, b.workspace));
      Rows(b, step, inner, call_.Wide());
      h = Out(b, call_.op().Output("y")) + StatesAt(step);
    }
    return Status();
  }

  // From the last step to the first.
  Status Backward(const KernelBuffers& b) const {
    const int64_t size = call_.e.StateElements();
    const RecurrentOp& op = call_.op();
    for (size_t i = 0; i < op.outputs.size(); ++i)
      if (op.outputs[i].shape == RecurrentOperand::kState) std::fill_n(Out(b, i), size, 0.0F);
    float *dh = Out(b, op.Output("dh")), *direct = Scratch(b);
    const float* dinner = Out(b, op.Output(call_.of.cell.inner_grad()));
    std::fill_n(direct, call_.ScratchElements(), 0.0F);
    for (int64_t step = call_.e.seq_len; step-- > 0;) {
      Rows(b, step, dh, call_.e.hidden);
      const float* d = dinner + call_.of.cell.blocks() * StatesAt(step);
      RIDGE_RETURN_IF_ERROR(product_->Run(d, dh, b.workspace));
    }
    for (int64_t k = 0; k < call_.ScratchElements(); ++k) dh[k] += direct[k];
    return Status();
  }

  // `product` has `width` elements a sample.
  void Rows(const KernelBuffers& b, int64_t step, const float* product, int64_t width) const {
    const int64_t hidden = call_.e.hidden, now = StatesAt(step);
    const int64_t before = step == 0 ? -1 : StatesAt(step - 1);
    const auto row = call_.back ? call_.of.back : call_.of.forward;
    const int parts = call_.e.StateElements() < kFewElements ? 1 : threads_;
    ParallelFor(parts, call_.e.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        row({.b = b,
             .hidden = hidden,
             .at = blocks_.data(),
             .relu = relu_,
             .sample = n * hidden,
             .now = now + n * hidden,
             .before = before < 0 ? before : before + n * hidden,
             .product = product + n * width,
             .direct = Scratch(b) + n * hidden});
      }
    });
  }

  int64_t StatesAt(int64_t step) const { return call_.e.TimeAt(step) * call_.e.StateElements(); }
  // After what the product needs.
  float* Scratch(const KernelBuffers& b) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(b.workspace) +
                                    product_->WorkspaceBytes());
  }

  const Sequence call_;
  const std::unique_ptr<StepProduct> product_;
  const int threads_;
  std::vector<int64_t> blocks_;
  bool relu_ = false;
};

StepProduct::Extents ProductExtentsOf(const Sequence& s) {
  StepProduct::Extents extents = {.rows = s.e.batch, .depth = s.Wide(), .columns = s.e.hidden};
  if (!s.back) {
    std::swap(extents.depth, extents.columns);
    extents.transposed = true;
  }
  return extents;
}

std::unique_ptr<StepProduct> ProductOf(const CandidateQuery& q, const Sequence& s) {
  return StepProduct::Make(q.cpu, ProductExtentsOf(s), q.threads());
}

const char* OfferElsewhere(const CandidateQuery& q, Candidates& candidates) {
  if (!HasRules(DType::kF32, q.cpu.instructions)) return refusal::kNoPrimitive;
  const Sequence s = SequenceOf(q);
  candidates.Add().workspace_bytes =
      StepProduct::WorkspaceElsewhere(q.cpu, ProductExtentsOf(s), q.threads()) +
      s.ScratchElements() * 4;
  return nullptr;
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  if (!q.cpu.is_here) return OfferElsewhere(q, candidates);
  const Sequence s = SequenceOf(q);
  const auto product = ProductOf(q, s);
  if (product == nullptr) return refusal::kNoPrimitive;
  KernelChoice& choice = candidates.Add();
  choice.workspace_bytes = product->WorkspaceBytes() + s.ScratchElements() * 4;
  choice.heap_bytes = product->HeapBytes();
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const Sequence s = SequenceOf(q);
  auto product = ProductOf(q, s);
  if (product == nullptr) return UnsupportedChoice(q, choice);
  std::unique_ptr<Kernel> made =
      std::make_unique<SequenceKernel>(q.call, s, std::move(product), q.threads());
  return made;
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
