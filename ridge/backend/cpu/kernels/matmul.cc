// matmul by oneDNN: strides for transposed operands, batch dimensions broadcast, bias and epilogue
// in the same pass.
//
// Leading dimensions of a are folded into its rows when b is one matrix: one big product instead of
// a batch of small ones.  The second choice wants b packed as the kernel likes it; whether a
// reorder per step pays is the planner's question (measured: 2-15 %, most for tall b).
#include <algorithm>
#include <bit>
#include <cmath>

#include "ridge/backend/cpu/gemm_buffers.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/epilogue.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

// The operands as the primitive sees them; all ranks are equal.
struct Operands {
  memory::desc a, b, bias, dst;
  bool has_bias = false;
  bool b_is_matrix = false;  // may be packed
  bool b_transposed = false;
};

// Row-major `dims` of at least `rank` dimensions, the last two swapped when `transpose`.
//
// An extent of 1 has the stride that it has in row-major: oneDNN's cache of primitives holds
// descriptors for the same that differ there alone, though their scratchpads differ, and a kernel
// that needs more than was planned writes over its neighbours.
memory::desc MatrixDesc(DType dtype, Dims dims, size_t rank, bool transpose) {
  dims.insert(dims.begin(), rank - dims.size(), 1);
  Dims strides = RowMajorStrides(dims);
  if (transpose) {
    std::swap(dims[rank - 1], dims[rank - 2]);
    std::swap(strides[rank - 1], strides[rank - 2]);
    if (dims[rank - 1] == 1) strides[rank - 1] = 1;
    if (dims[rank - 2] == 1) strides[rank - 2] = dims[rank - 1] * strides[rank - 1];
  }
  return memory::desc(dims, DnnlType(dtype).value(), strides);
}

// [.., M, K] -> [rows, K]
Dims FoldRows(const Dims& dims) { return {ElementCount(dims) / dims.back(), dims.back()}; }

Operands DescribeOperands(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype, out = call.outputs[0].dtype;
  Dims a = call.inputs[0].dims, b = call.inputs[1].dims, dst = call.outputs[0].dims;
  const bool transpose_a = call.integer("transpose_a") != 0;
  Operands o;
  o.b_transposed = call.integer("transpose_b") != 0;
  if (b.size() == 2 && !transpose_a) {
    a = FoldRows(a);
    dst = FoldRows(dst);
  }
  const size_t rank = dst.size();
  o.b_is_matrix = b.size() == 2 && rank == 2;
  o.a = MatrixDesc(dtype, a, rank, transpose_a);
  o.b = MatrixDesc(dtype, b, rank, o.b_transposed);
  o.dst = MatrixDesc(out, dst, rank, /*transpose=*/false);
  o.has_bias = call.has_input(2);
  if (o.has_bias) {
    const TensorType& bias = call.inputs[2];
    o.bias = MatrixDesc(bias.dtype, bias.dims, rank, /*transpose=*/false);
  }
  return o;
}

dnnl::matmul::primitive_desc MakeDesc(const CpuContext& cpu, const Operands& o,
                                      const memory::desc& b, const dnnl::primitive_attr& attr) {
  if (o.has_bias) return {cpu.engine, o.a, b, o.bias, o.dst, attr};
  return {cpu.engine, o.a, b, o.dst, attr};
}

// Leading dimensions are folded into the rows where the library can, else each thread takes
// products of its own.
int64_t HeapBytes(const Operands& o, DType dtype, const std::string& implementation, int threads,
                  Instructions vectors) {
  if (!AllocatesInCalls(implementation)) return 0;
  const memory::dims dst = o.dst.get_dims();
  const size_t rank = dst.size();
  const memory::dims strides = o.a.get_strides();
  GemmExtents e{.m = dst[rank - 1],
                .n = dst[rank - 2],
                .k = o.a.get_dims()[rank - 1],
                .transposed_b = strides[rank - 1] != 1};
  if (rank == 2) return GemmBufferBytes(e, dtype, threads, vectors);
  const int64_t alone = GemmBufferBytesAlone(e, dtype, threads, vectors);
  for (size_t d = 0; d + 2 < rank; ++d) e.n *= dst[d];
  return std::max(alone, GemmBufferBytes(e, dtype, threads, vectors));
}

struct Wish {
  LayoutSource source;
  bool packed;                 // b as the primitive likes it
  const KernelChoice* choice;  // with kChoice
};

// `weights`: b as the primitive reads it.
void BindOperands(const OpCall& call, const Operands& o, const memory::desc& weights,
                  PrimitivePlan& plan) {
  plan.BindInput(DNNL_ARG_SRC, 0, o.a, o.a);
  if (o.b_transposed && o.b_is_matrix) {
    plan.BindTransposedInput(DNNL_ARG_WEIGHTS, 1, o.b, weights);
  } else {
    plan.BindInput(DNNL_ARG_WEIGHTS, 1, o.b, weights);
  }
  if (o.has_bias) plan.BindInput(DNNL_ARG_BIAS, 2, o.bias, o.bias);
  BindEpilogue(call, /*first_extra=*/3, o.dst, o.dst, plan);
  plan.BindOutput(DNNL_ARG_DST, 0, o.dst, o.dst);
}

// By the rules of another CPU's library.
std::optional<PrimitivePlan> PlanElsewhere(const CandidateQuery& q, const Wish& wish,
                                           const Operands& o) {
  const DType dtype = q.call.inputs[0].dtype;
  if (!HasRules(dtype, q.cpu.instructions)) return std::nullopt;
  const memory::dims dst = o.dst.get_dims(), a = o.a.get_dims();
  const ProductExtents e{.rows = dst[dst.size() - 2],
                         .depth = a.back(),
                         .columns = dst.back(),
                         .copies_a = q.call.integer("transpose_a") != 0,
                         .copies_b = !wish.packed};
  const ProductAnswer answer = AnswerProduct(e, o.b, q.cpu.instructions, q.threads());
  PrimitivePlan plan(q, wish.source, wish.choice);
  BindOperands(q.call, o, wish.packed ? answer.packed : o.b, plan);
  plan.SetAnswer(answer.implementation, answer.scratchpad_bytes);
  plan.SetHeapBytes(
      HeapBytes(o, dtype, plan.implementation(), q.threads(), q.cpu.instructions.vectors));
  return plan;
}

std::optional<PrimitivePlan> PlanMatmul(const CandidateQuery& q, const Wish& wish) {
  const OpCall& call = q.call;
  const int threads = q.threads();
  const TeamSize team(threads);
  const Operands o = DescribeOperands(call);
  const auto attr = EpilogueAttr(call, o.dst);
  if (!attr) return std::nullopt;
  if (!q.cpu.is_here) return PlanElsewhere(q, wish, o);
  const memory::desc b =
      wish.packed ? memory::desc(o.b.get_dims(), o.b.get_data_type(), memory::format_tag::any)
                  : o.b;
  const auto desc = SelectDesc([&] { return MakeDesc(q.cpu, o, b, *attr); },
                               wish.choice ? ImplementationOf(*wish.choice) : "");
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, wish.source, wish.choice);
  BindOperands(call, o, desc->weights_desc(), plan);
  plan.SetPrimitive(*desc);
  plan.SetHeapBytes(HeapBytes(o, call.inputs[0].dtype, plan.implementation(), threads,
                              q.cpu.instructions.vectors));
  return plan;
}

// Of the peak, for b as it is and for b packed.
struct Shares {
  double plain = 0.94, packed = 1;
};

// A transposed `a` is copied while it is multiplied, the more the longer it is.  Packing b gains
// nothing then, but where its rows share sets of the caches.  Fitted to 75 products of f32 on
// Zen 4: 2.6 % off in the mean, 8 % at most (docs/design/0011).  Under AVX2 the library stays
// further from the peak.
Shares SharesOf(const CandidateQuery& q) {
  const OpCall& call = q.call;
  if (call.inputs[0].dtype == DType::kF32 && !q.cpu.HasAvx512())
    return {.plain = 0.84, .packed = 0.88};
  if (call.integer("transpose_a") == 0 || call.inputs[0].dtype != DType::kF32) return {};
  const Dims& y = call.outputs[0].dims;
  const auto rows = static_cast<double>(y[y.size() - 2]), columns = static_cast<double>(y.back());
  const double share =
      std::clamp(0.96 - 0.022 * std::log2(rows / 256), 0.8, 0.96) * std::max(0.8, 1 - 10 / columns);
  const bool conflicts = y.back() >= 512 && std::has_single_bit(static_cast<uint64_t>(y.back()));
  return {.plain = conflicts ? 0.92 * share : share, .packed = share};
}

const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const auto plain = PlanMatmul(q, {LayoutSource::kRowMajor, /*packed=*/false, nullptr});
  if (!plain) return refusal::kNoPrimitive;
  const Shares shares = SharesOf(q);
  plain->Describe(candidates.Add(shares.plain));
  if (q.call.inputs[1].rank() != 2) return nullptr;
  const auto packed = PlanMatmul(q, {LayoutSource::kPrimitive, /*packed=*/true, nullptr});
  if (packed && packed->input_layout(1) != kRowMajor)
    packed->Describe(candidates.Add(shares.packed));
  return nullptr;
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  const bool packed = choice.input_layouts.at(1) != kRowMajor;
  return CompilePlan(PlanMatmul(q, {LayoutSource::kChoice, packed, &choice}), q, choice);
}

}  // namespace

KernelDef MatmulKernelDef() {
  return {.name = "onednn.matmul",
          .ops = {"matmul"},
          .dtypes = {DType::kF32, DType::kBF16},
          .fuses = TakesEpilogue,
          .in_place = false,
          .offer = Offer,
          .make = Make};
}

}  // namespace ridge::cpu
