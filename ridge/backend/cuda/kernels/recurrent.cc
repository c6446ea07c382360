// lstm, gru, rnn and their gradients: a block goes through all steps of a few samples.
//
// Forward: a warp has a number of the state and multiplies its rows of r by the states.  Backward:
// first all numbers of a step, then their product with r, whose rows are shared out among groups of
// threads.  States are kept in the type of the sums, in workspace.
#include "ridge/graph/ops/shared/recurrent.h"

#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/backend/cuda/kernels/product_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kMostThreads = 512;

// states: [2][batch, hidden], of which a step reads one and writes the other; memory: [batch,
// hidden], the c of lstm.
constexpr std::string_view kForwardText = R"cuda(
RIDGE_KERNEL void recurrent($parameters) {
  const Index first = (Index)blockIdx.x * $samples;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (Index e = threadIdx.x; e < $samples * $hidden; e += blockDim.x) {
    const Index at = first * $hidden + e;
    if (at >= $state) break;
    states[at] = (R)Load(h, at);
    $begin
  }
  __syncthreads();
  for (Index step = 0; step < $steps; ++step) {
    const Index time = $time;
    const R* before = states + step % 2 * $state;
    R* after = states + (step + 1) % 2 * $state;
    for (Index k = warp; k < $hidden; k += warps) {
      R sums[$gates][$samples] = {}, inner[$gates] = {};
      for (Index from = lane; from < $hidden; from += 32) {
        R state[$samples];
#pragma unroll
        for (int n = 0; n < $samples; ++n)
          state[n] = first + n < $batch ? before[(first + n) * $hidden + from] : R(0);
#pragma unroll
        for (int gate = 0; gate < $gates; ++gate) {
          const R weight = (R)Load(r, (gate * $hidden + k) * $hidden + from);
#pragma unroll
          for (int n = 0; n < $samples; ++n) sums[gate][n] += weight * state[n];
        }
      }
#pragma unroll
      for (int gate = 0; gate < $gates; ++gate) {
#pragma unroll
        for (int n = 0; n < $samples; ++n) {
          const R sum = WarpSum(sums[gate][n]);
          if (lane == n) inner[gate] = sum;
        }
      }
      const Index n = first + lane;
      if (lane < $samples && n < $batch) {
        const Index row = time * $batch + n, own = n * $hidden + k, at = row * $hidden + k;
$cell
      }
    }
    __syncthreads();
  }
}
)cuda";

// What a lane does with number k of sample n.
constexpr std::string_view kLstmText = R"cuda(
      const Index place = row * (4 * $hidden) + k;
      const R in = Sigmoid((R)Load(projected, place + $i * $hidden) + inner[$i]);
      const R forget = Sigmoid((R)Load(projected, place + $f * $hidden) + inner[$f]);
      const R candidate = tanh((R)Load(projected, place + $g * $hidden) + inner[$g]);
      const R out = Sigmoid((R)Load(projected, place + $o * $hidden) + inner[$o]);
      const R cell = forget * memory[own] + in * candidate, result = out * tanh(cell);
      memory[own] = cell;
      after[own] = result;
      Store(y, at, result);
      Store(cells, at, cell);
      Store(activated, place + $i * $hidden, in);
      Store(activated, place + $f * $hidden, forget);
      Store(activated, place + $g * $hidden, candidate);
      Store(activated, place + $o * $hidden, out);)cuda";

constexpr std::string_view kGruText = R"cuda(
      const Index place = row * (3 * $hidden) + k, kept = row * (4 * $hidden) + k;
      const R reset = Sigmoid((R)Load(projected, place + $r * $hidden) + inner[$r]);
      const R update = Sigmoid((R)Load(projected, place + $z * $hidden) + inner[$z]);
      const R product = inner[$n]$bias;
      const R candidate = tanh((R)Load(projected, place + $n * $hidden) + reset * product);
      const R result = candidate + update * (before[own] - candidate);
      after[own] = result;
      Store(y, at, result);
      Store(activated, kept, reset);
      Store(activated, kept + $hidden, update);
      Store(activated, kept + 2 * $hidden, candidate);
      Store(activated, kept + 3 * $hidden, product);)cuda";

constexpr std::string_view kRnnText = R"cuda(
      const R sum = (R)Load(projected, at) + inner[0];
      const R result = $activation;
      after[own] = result;
      Store(y, at, result);)cuda";

// states: [batch, hidden], dh; memory: the same, dc of lstm; rows: [batch, gates * hidden], what is
// multiplied by r.
constexpr std::string_view kBackwardText = R"cuda(
RIDGE_KERNEL void recurrent_grad($parameters) {
  __shared__ R sums[$parts * $samples * $width];
  const Index first = (Index)blockIdx.x * $samples;
  const int place = threadIdx.x % $width, part = threadIdx.x / $width;
  for (Index e = threadIdx.x; e < $samples * $hidden; e += blockDim.x) {
    if (first * $hidden + e >= $state) break;
    states[first * $hidden + e] = 0;
    $begin
  }
  __syncthreads();
  for (Index step = $steps - 1; step >= 0; --step) {
    const Index time = $time, time_before = $time_before;
    for (Index e = threadIdx.x; e < $samples * $hidden; e += blockDim.x) {
      const Index n = first + e / $hidden, k = e % $hidden;
      if (n >= $batch) break;
      const Index row = time * $batch + n, own = n * $hidden + k, at = row * $hidden + k;
      const Index at_before = (time_before * $batch + n) * $hidden + k;
      const Index to = n * ($gates * $hidden) + k;
      const R dstate = states[own] + (R)Load(dy, at);
$cell
    }
    __syncthreads();
    for (Index k0 = 0; k0 < $hidden; k0 += $width) {
      const Index k = k0 + place;
      R sum[$samples] = {};
      for (Index row = part; row < $gates * $hidden && k < $hidden; row += $parts) {
        const R weight = (R)Load(r, row * $hidden + k);
#pragma unroll
        for (int n = 0; n < $samples; ++n)
          if (first + n < $batch) sum[n] += weight * rows[(first + n) * ($gates * $hidden) + row];
      }
#pragma unroll
      for (int n = 0; n < $samples; ++n) sums[(part * $samples + n) * $width + place] = sum[n];
      __syncthreads();
      for (int n = part; n < $samples; n += $parts) {
        if (k >= $hidden || first + n >= $batch) continue;
        R total = 0;
        for (int p = 0; p < $parts; ++p) total += sums[(p * $samples + n) * $width + place];
        states[(first + n) * $hidden + k] += total;
      }
      __syncthreads();
    }
  }
  for (Index e = threadIdx.x; e < $samples * $hidden; e += blockDim.x) {
    const Index at = first * $hidden + e;
    if (at >= $state) break;
    Store(dh, at, states[at]);
    $end
  }
}
)cuda";

constexpr std::string_view kLstmGradText = R"cuda(
      const Index kept = row * (4 * $hidden) + k;
      const R in = (R)Load(activated, kept + $i * $hidden);
      const R forget = (R)Load(activated, kept + $f * $hidden);
      const R candidate = (R)Load(activated, kept + $g * $hidden);
      const R out = (R)Load(activated, kept + $o * $hidden), t = tanh((R)Load(cells, at));
      const R before = step == 0 ? (R)Load(c, own) : (R)Load(cells, at_before);
      const R dcell = memory[own]$dcells + dstate * out * (R(1) - t * t);
      const R d_in = dcell * candidate * in * (R(1) - in);
      const R d_forget = dcell * before * forget * (R(1) - forget);
      const R d_candidate = dcell * in * (R(1) - candidate * candidate);
      const R d_out = dstate * t * out * (R(1) - out);
      rows[to + $i * $hidden] = d_in;
      rows[to + $f * $hidden] = d_forget;
      rows[to + $g * $hidden] = d_candidate;
      rows[to + $o * $hidden] = d_out;
      Store(dprojected, kept + $i * $hidden, d_in);
      Store(dprojected, kept + $f * $hidden, d_forget);
      Store(dprojected, kept + $g * $hidden, d_candidate);
      Store(dprojected, kept + $o * $hidden, d_out);
      memory[own] = dcell * forget;
      states[own] = 0;)cuda";

constexpr std::string_view kGruGradText = R"cuda(
      const Index kept = row * (4 * $hidden) + k, result = row * (3 * $hidden) + k;
      const R reset = (R)Load(activated, kept), update = (R)Load(activated, kept + $hidden);
      const R candidate = (R)Load(activated, kept + 2 * $hidden);
      const R product = (R)Load(activated, kept + 3 * $hidden);
      const R before = step == 0 ? (R)Load(h, own) : (R)Load(y, at_before);
      const R d_candidate = dstate * (R(1) - update) * (R(1) - candidate * candidate);
      const R d_update = dstate * (before - candidate) * update * (R(1) - update);
      const R d_reset = d_candidate * product * reset * (R(1) - reset);
      rows[to + $r * $hidden] = d_reset;
      rows[to + $z * $hidden] = d_update;
      rows[to + $n * $hidden] = d_candidate * reset;
      Store(dprojected, result + $r * $hidden, d_reset);
      Store(dprojected, result + $z * $hidden, d_update);
      Store(dprojected, result + $n * $hidden, d_candidate);
      Store(dinner, result + $r * $hidden, d_reset);
      Store(dinner, result + $z * $hidden, d_update);
      Store(dinner, result + $n * $hidden, d_candidate * reset);
      states[own] = dstate * update;)cuda";

constexpr std::string_view kRnnGradText = R"cuda(
      const R result = (R)Load(y, at), d = dstate * ($slope);
      rows[to] = d;
      Store(dprojected, at, d);
      states[own] = 0;)cuda";

struct CellText {
  const RecurrentCell* cell;
  std::string_view forward, backward;
};
const CellText kCells[] = {{&kLstmCell, kLstmText, kLstmGradText},
                           {&kGruCell, kGruText, kGruGradText},
                           {&kRnnCell, kRnnText, kRnnGradText}};

using Names = std::vector<std::pair<std::string_view, std::string>>;

class RecurrentWriter {
 public:
  RecurrentWriter(const OpCall& call, const CellText& text, const RecurrentOp& op)
      : call_(call),
        text_(text),
        op_(op),
        e_(SequenceExtentsOf(op, call)),
        compute_(call.inputs[0].dtype == DType::kF64 ? "double" : "float"),
        gates_(text.cell->blocks()) {
    samples_ = e_.batch > 264 ? 4 : e_.batch > 132 ? 2 : 1;
  }

  void WriteForward(KernelText& text) {
    Parameters p = Operands();
    const int64_t states = 2 * e_.StateElements();
    AddWorkspace("R* states", states, p, text);
    const bool cells = text_.cell->has_cells();
    if (cells) AddWorkspace("R* memory", e_.StateElements(), p, text);
    Names names = CommonNames(p);
    names.emplace_back("begin", cells ? "memory[at] = (R)Load(c, at);" : "");
    names.emplace_back("bias", call_.has_input(3) ? " + (R)Load(bias, k)" : "");
    AddCell(text_.forward, names);
    text.source = Begin() + FillText(kForwardText, names);
    const auto warps = std::min<int64_t>(e_.hidden, kMostThreads / kWarpThreads);
    Launch("recurrent", static_cast<int>(warps * kWarpThreads), p, text);
  }

  void WriteBackward(KernelText& text) {
    Parameters p = Operands();
    AddWorkspace("R* states", e_.StateElements(), p, text);
    const bool cells = text_.cell->has_cells();
    if (cells) AddWorkspace("R* memory", e_.StateElements(), p, text);
    AddWorkspace("R* rows", gates_ * e_.StateElements(), p, text);
    const int64_t width = std::min(RoundUp(e_.hidden, kWarpThreads), kMostThreads);
    const int64_t parts = kMostThreads / width;
    Names names = CommonNames(p);
    names.emplace_back("width", std::to_string(width));
    names.emplace_back("parts", std::to_string(parts));
    names.emplace_back("time_before", e_.reverse ? "time + 1" : "time - 1");
    names.emplace_back("begin", cells ? "memory[first * " + Number(e_.hidden) + " + e] = 0;" : "");
    names.emplace_back("end", cells ? "Store(dc, at, memory[at]);" : "");
    const bool dcells = cells && call_.has_input(op_.Input("dcells"));
    names.emplace_back("dcells", dcells ? " + (R)Load(dcells, at)" : "");
    AddCell(text_.backward, names);
    text.source = Begin() + FillText(kBackwardText, names);
    Launch("recurrent_grad", static_cast<int>(width * parts), p, text);
  }

 private:
  static std::string Number(int64_t value) { return fmt::format("(Index){}", value); }

  Parameters Operands() const {
    Parameters p;
    for (size_t i = 0; i < call_.inputs.size(); ++i)
      if (call_.has_input(i)) p.AddInput(call_, i, op_.inputs[i].name);
    for (size_t o = 0; o < call_.outputs.size(); ++o) p.AddOutput(call_, o, op_.outputs[o].name);
    return p;
  }

  static void AddWorkspace(const char* declaration, int64_t elements, Parameters& p,
                           KernelText& text) {
    p.Add(declaration, text.Reserve(elements * 8));
  }

  std::string Begin() const {
    int64_t largest = 2 * e_.StateElements() * gates_;
    for (const TensorType& type : call_.inputs) largest = std::max(largest, type.elements());
    for (const TensorType& type : call_.outputs) largest = std::max(largest, type.elements());
    return PointwiseFunctions(compute_) + fmt::format("typedef {} Index;\n", IndexType(largest));
  }

  Names CommonNames(const Parameters& p) const {
    Names names = {{"parameters", p.text},
                   {"samples", std::to_string(samples_)},
                   {"gates", std::to_string(gates_)},
                   {"hidden", Number(e_.hidden)},
                   {"batch", Number(e_.batch)},
                   {"state", Number(e_.StateElements())},
                   {"steps", Number(e_.seq_len)},
                   {"time", e_.reverse ? Number(e_.seq_len - 1) + " - step" : "step"}};
    const std::string& gates = gates_ == 1 ? "" : call_.text("gates");
    for (const char* gate : {"i", "f", "g", "o", "r", "z", "n"})
      names.emplace_back(gate, std::to_string(GateAt(gates, gate[0])));
    const bool relu = text_.cell->flag != nullptr && call_.integer(text_.cell->flag) != 0;
    names.emplace_back("activation", relu ? "sum > 0 || IsNan(sum) ? sum : R(0)" : "tanh(sum)");
    names.emplace_back("slope", relu ? "result > 0 ? R(1) : R(0)" : "R(1) - result * result");
    return names;
  }

  static void AddCell(std::string_view cell, Names& names) {
    names.emplace_back("cell", FillText(cell, names));
  }

  void Launch(const char* function, int threads, const Parameters& p, KernelText& text) const {
    text.launches = {{function, CeilDiv(e_.batch, samples_), threads, p.arguments}};
  }

  const OpCall& call_;
  const CellText& text_;
  const RecurrentOp& op_;
  const SequenceExtents e_;
  const char* compute_;
  const int64_t gates_;
  int64_t samples_ = 1;  // of a block
};

const char* WriteRecurrent(const OpDef& op, const OpCall& call, KernelText& text) {
  if (!StoresAll(call)) return refusal::kDType;
  for (const CellText& cell : kCells) {
    if (op.name == cell.cell->forward.name)
      RecurrentWriter(call, cell, cell.cell->forward).WriteForward(text);
    if (op.name == cell.cell->back.name)
      RecurrentWriter(call, cell, cell.cell->back).WriteBackward(text);
  }
  return nullptr;
}

}  // namespace

TextKernelDef RecurrentTextKernel() {
  return {.name = "cuda.recurrent",
          .ops = {"lstm", "gru", "rnn", "lstm_grad", "gru_grad", "rnn_grad"},
          .write = WriteRecurrent};
}

}  // namespace ridge::cuda
