// conv and its two gradients by oneDNN.
//
// The primitive chooses its layouts (`any`, forward_training: nChw16c on AVX-512, so activations
// stay blocked from node to node; an input of few channels stays row-major).  A second choice takes
// and gives row-major tensors and reorders inside.  Grouped weights have one dimension more in
// oneDNN than here, so they are always reordered inside.
#include "ridge/graph/ops/shared/conv.h"

#include <algorithm>
#include <array>

#include "ridge/backend/cpu/gemm_buffers.h"
#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/backend/cpu/kernels/epilogue.h"
#include "ridge/backend/cpu/onednn.h"
#include "ridge/backend/cpu/onednn_rules.h"
#include "ridge/backend/cpu/parallel.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

// What the tensors of a convolution hold; the results of bf16 may be f32.
struct ConvTypes {
  DType x, w, bias, y;

  static ConvTypes All(DType dtype) { return {dtype, dtype, dtype, dtype}; }
};

// One convolution as oneDNN describes it; row-major and `any` forms of each tensor.
struct ConvDescs {
  memory::desc x, w, bias, y;
  memory::dims stride, dilation, pad_begin, pad_end;

  static memory::desc Any(const memory::desc& desc) {
    return memory::desc(desc.get_dims(), desc.get_data_type(), memory::format_tag::any);
  }
};

// oneDNN counts the holes of a dilation: 0 is dense.
ConvDescs DescribeConv(const ConvTypes& types, const ConvGeometry& g) {
  Dims x = {g.batch, g.inputs()}, w = {g.groups, g.group_outputs, g.group_inputs};
  if (g.groups == 1) w.erase(w.begin());
  ConvDescs d;
  for (const WindowAxis& axis : g.window.own()) {
    x.push_back(axis.input);
    w.push_back(axis.kernel);
    d.stride.push_back(axis.stride);
    d.dilation.push_back(axis.dilation - 1);
    d.pad_begin.push_back(axis.pad_begin);
    d.pad_end.push_back(axis.pad_end);
  }
  d.x = RowMajorDesc(types.x, x);
  d.w = RowMajorDesc(types.w, w);
  d.bias = RowMajorDesc(types.bias, {g.outputs()});
  d.y = RowMajorDesc(types.y, g.output_dims());
  return d;
}

constexpr auto kTraining = dnnl::prop_kind::forward_training;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

dnnl::convolution_forward::primitive_desc ForwardDesc(const CpuContext& cpu, const ConvDescs& d,
                                                      bool bias, const dnnl::primitive_attr& attr) {
  using PD = dnnl::convolution_forward::primitive_desc;
  const memory::desc x = ConvDescs::Any(d.x), w = ConvDescs::Any(d.w), y = ConvDescs::Any(d.y);
  if (bias) {
    return PD(cpu.engine, kTraining, kDirect, x, w, d.bias, y, d.stride, d.dilation, d.pad_begin,
              d.pad_end, attr);
  }
  return PD(cpu.engine, kTraining, kDirect, x, w, y, d.stride, d.dilation, d.pad_begin, d.pad_end,
            attr);
}

// The gradients' descriptors want that of the forward pass as a hint; any implementation will do.
// oneDNN keeps a bare pointer to it and reads it again when it looks for the next implementation.
using Hint = std::optional<dnnl::convolution_forward::primitive_desc>;
dnnl::convolution_forward::primitive_desc HintDesc(const CpuContext& cpu, const OpCall& call,
                                                   const ConvGeometry& g) {
  const ConvDescs d = DescribeConv(ConvTypes::All(call.inputs[0].dtype), g);
  return ForwardDesc(cpu, d, /*bias=*/false, UserScratchpad());
}

dnnl::convolution_backward_data::primitive_desc GradInputDesc(const CpuContext& cpu,
                                                              const ConvDescs& d,
                                                              const Hint& hint) {
  return {cpu.engine,          kDirect,  ConvDescs::Any(d.x), ConvDescs::Any(d.w),
          ConvDescs::Any(d.y), d.stride, d.dilation,          d.pad_begin,
          d.pad_end,           *hint,    UserScratchpad()};
}

dnnl::convolution_backward_weights::primitive_desc GradWeightDesc(const CpuContext& cpu,
                                                                  const ConvDescs& d, bool bias,
                                                                  const Hint& hint) {
  using PD = dnnl::convolution_backward_weights::primitive_desc;
  const memory::desc x = ConvDescs::Any(d.x), w = ConvDescs::Any(d.w), y = ConvDescs::Any(d.y);
  if (bias) {
    return PD(cpu.engine, kDirect, x, w, d.bias, y, d.stride, d.dilation, d.pad_begin, d.pad_end,
              *hint, UserScratchpad());
  }
  return PD(cpu.engine, kDirect, x, w, y, d.stride, d.dilation, d.pad_begin, d.pad_end, *hint,
            UserScratchpad());
}

// Threads take images of their own or share one product; which extent is which depends on pass and
// layout, so the most of all orders counts.
int64_t HeapBytes(const CandidateQuery& q, const ConvGeometry& g,
                  const std::string& implementation) {
  if (!AllocatesInCalls(implementation)) return 0;
  const DType dtype = q.call.inputs[0].dtype;
  const int threads = q.threads();
  const Instructions vectors = q.cpu.instructions.vectors;
  std::array<int64_t, 3> extents = {std::max(g.window.outputs(), g.batch),
                                    g.group_inputs * g.window.taps(), g.group_outputs};
  std::sort(extents.begin(), extents.end());
  int64_t most = 0;
  do {
    for (const bool transposed : {false, true}) {
      const GemmExtents e{extents[0], extents[1], extents[2], transposed};
      most = std::max({most, GemmBufferBytes(e, dtype, threads, vectors),
                       GemmBufferBytesAlone(e, dtype, threads, vectors)});
    }
  } while (std::next_permutation(extents.begin(), extents.end()));
  return most;
}

// ---- arguments; `wanted`: the tensors as the primitive has them

void BindForward(const OpCall& call, const ConvDescs& d, const ConvTensors& wanted,
                 PrimitivePlan& plan) {
  plan.BindInput(DNNL_ARG_SRC, 0, d.x, wanted.x);
  plan.BindInput(DNNL_ARG_WEIGHTS, 1, d.w, wanted.w);
  if (call.has_input(2)) plan.BindInput(DNNL_ARG_BIAS, 2, d.bias, d.bias);
  BindEpilogue(call, /*first_extra=*/3, d.y, wanted.y, plan);
  plan.BindOutput(DNNL_ARG_DST, 0, d.y, wanted.y);
}

void BindGradInput(const OpCall&, const ConvDescs& d, const ConvTensors& wanted,
                   PrimitivePlan& plan) {
  plan.BindInput(DNNL_ARG_DIFF_DST, 0, d.y, wanted.y);
  plan.BindInput(DNNL_ARG_WEIGHTS, 1, d.w, wanted.w);
  plan.BindOutput(DNNL_ARG_DIFF_SRC, 0, d.x, wanted.x);
}

void BindGradWeight(const OpCall& call, const ConvDescs& d, const ConvTensors& wanted,
                    PrimitivePlan& plan) {
  plan.BindInput(DNNL_ARG_SRC, 0, d.x, wanted.x);
  plan.BindInput(DNNL_ARG_DIFF_DST, 1, d.y, wanted.y);
  plan.BindOutput(DNNL_ARG_DIFF_WEIGHTS, 0, d.w, wanted.w);
  if (call.integer("bias") != 0) plan.BindOutput(DNNL_ARG_DIFF_BIAS, 1, d.bias, d.bias);
}

// ---- plans

// By the rules of another CPU's library.
template <typename Bind>
std::optional<PrimitivePlan> PlanElsewhere(const CandidateQuery& q, ConvPass pass,
                                           const ConvGeometry& g, const ConvDescs& d,
                                           LayoutSource source, const Bind& bind) {
  if (!HasRules(q.call.inputs[0].dtype, q.cpu.instructions)) return std::nullopt;
  const ConvAnswer answer = AnswerConv(pass, g, {d.x, d.w, d.y}, q.cpu.instructions, q.threads());
  PrimitivePlan plan(q, source, nullptr);
  bind(q.call, d, answer.wanted, plan);
  plan.SetAnswer(answer.implementation, answer.scratchpad_bytes);
  plan.SetHeapBytes(HeapBytes(q, g, plan.implementation()));
  return plan;
}

using PlanFn = std::optional<PrimitivePlan> (*)(const CandidateQuery&, LayoutSource,
                                                const KernelChoice*);

std::string WantedImplementation(const KernelChoice* choice) {
  return choice == nullptr ? "" : ImplementationOf(*choice);
}

std::optional<PrimitivePlan> PlanConv(const CandidateQuery& q, LayoutSource source,
                                      const KernelChoice* choice) {
  const OpCall& call = q.call;
  const TeamSize team(q.threads());
  const DType in = call.inputs[0].dtype, out = call.outputs[0].dtype;
  const bool bias = call.has_input(2);
  const ConvGeometry g = ConvGeometryOf(call);
  const ConvDescs d = DescribeConv({in, in, bias ? call.inputs[2].dtype : out, out}, g);
  const auto attr = EpilogueAttr(call, ConvDescs::Any(d.y));
  if (!attr) return std::nullopt;
  if (!q.cpu.is_here) return PlanElsewhere(q, ConvPass::kForward, g, d, source, BindForward);
  const auto desc =
      SelectDesc([&] { return ForwardDesc(q.cpu, d, bias, *attr); }, WantedImplementation(choice));
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, source, choice);
  BindForward(call, d, {desc->src_desc(), desc->weights_desc(), desc->dst_desc()}, plan);
  plan.SetPrimitive(*desc);
  plan.SetHeapBytes(HeapBytes(q, g, plan.implementation()));
  return plan;
}

std::optional<PrimitivePlan> PlanGradInput(const CandidateQuery& q, LayoutSource source,
                                           const KernelChoice* choice) {
  const OpCall& call = q.call;
  const TeamSize team(q.threads());
  const DType in = call.inputs[0].dtype, out = call.outputs[0].dtype;
  const ConvGeometry g = GradInputGeometryOf(call);
  const ConvDescs d = DescribeConv({out, in, in, in}, g);
  if (!q.cpu.is_here) return PlanElsewhere(q, ConvPass::kGradInput, g, d, source, BindGradInput);
  Hint hint;
  const auto make = [&] {
    hint = HintDesc(q.cpu, call, g);
    return GradInputDesc(q.cpu, d, hint);
  };
  const auto desc = SelectDesc(make, WantedImplementation(choice));
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, source, choice);
  BindGradInput(call, d, {desc->diff_src_desc(), desc->weights_desc(), desc->diff_dst_desc()},
                plan);
  plan.SetPrimitive(*desc);
  plan.SetHeapBytes(HeapBytes(q, g, plan.implementation()));
  return plan;
}

std::optional<PrimitivePlan> PlanGradWeight(const CandidateQuery& q, LayoutSource source,
                                            const KernelChoice* choice) {
  const OpCall& call = q.call;
  const TeamSize team(q.threads());
  const DType in = call.inputs[0].dtype, out = call.outputs[0].dtype;
  const ConvGeometry g = GradWeightGeometryOf(call);
  const ConvDescs d = DescribeConv({in, out, out, in}, g);
  if (!q.cpu.is_here) return PlanElsewhere(q, ConvPass::kGradWeight, g, d, source, BindGradWeight);
  const bool bias = call.integer("bias") != 0;
  Hint hint;
  const auto make = [&] {
    hint = HintDesc(q.cpu, call, g);
    return GradWeightDesc(q.cpu, d, bias, hint);
  };
  const auto desc = SelectDesc(make, WantedImplementation(choice));
  if (!desc) return std::nullopt;
  PrimitivePlan plan(q, source, choice);
  BindGradWeight(call, d, {desc->src_desc(), desc->diff_weights_desc(), desc->diff_dst_desc()},
                 plan);
  plan.SetPrimitive(*desc);
  plan.SetHeapBytes(HeapBytes(q, g, plan.implementation()));
  return plan;
}

PlanFn PlanFor(const OpDef& op) {
  if (op.name == "conv") return PlanConv;
  return op.name == "conv_grad_input" ? PlanGradInput : PlanGradWeight;
}

bool IsRowMajor(const KernelChoice& choice) {
  for (const LayoutId layout : choice.input_layouts) {
    if (layout != kRowMajor) return false;
  }
  for (const LayoutId layout : choice.output_layouts) {
    if (layout != kRowMajor) return false;
  }
  return true;
}

// oneDNN's weight gradients in bf16 reach 87 GFLOP/s of 465 over 256 pixels, 270 over 784, 390 over
// 50,000; half of that where windows do not overlap (2x2, stride 2).
double GradWeightBF16Efficiency(const OpCall& call) {
  const ConvGeometry g = GradWeightGeometryOf(call);
  const auto pixels = static_cast<double>(g.batch * g.window.outputs());
  constexpr double kHalfRatePixels = 1024;
  bool side_by_side = true;
  for (const WindowAxis& axis : g.window.own())
    side_by_side = side_by_side && axis.kernel > 1 && axis.stride >= axis.kernel;
  return pixels / (pixels + kHalfRatePixels) * (side_by_side ? 0.5 : 1);
}

// A packing GEMM over the groups of a depthwise convolution reaches 1.6 to 3.4 GFLOP/s.
double EfficiencyOf(const CandidateQuery& q, const std::string& implementation) {
  const bool packing = implementation.find("gemm") != std::string::npos;
  if (packing && q.call.integer("groups") > 1) return 0.02;
  const bool bf16 = q.call.inputs[0].dtype == DType::kBF16;
  return bf16 && q.op.name == "conv_grad_weight" ? GradWeightBF16Efficiency(q.call) : 1;
}

// Reorders inside the row-major kernel cost time that its own cost does not show.
const char* Offer(const CandidateQuery& q, Candidates& candidates) {
  const PlanFn make_plan = PlanFor(q.op);
  const auto blocked = make_plan(q, LayoutSource::kPrimitive, nullptr);
  if (!blocked) return refusal::kNoPrimitive;
  const double efficiency = EfficiencyOf(q, blocked->implementation());
  KernelChoice& choice = candidates.Add(efficiency);
  blocked->Describe(choice);
  if (IsRowMajor(choice)) return nullptr;
  const auto row_major = make_plan(q, LayoutSource::kRowMajor, nullptr);
  row_major->Describe(candidates.Add(0.6 * efficiency));
  return nullptr;
}

// Those that are not reference code and do not allocate in a call.
constexpr const char* kImplementations[] = {"brgconv:avx512_core_bf16",
                                            "brgconv:avx512_core",
                                            "brgconv_1x1:avx512_core_bf16",
                                            "brgconv_1x1:avx512_core",
                                            "jit:avx512_core_bf16",
                                            "jit:avx512_core",
                                            "jit_1x1:avx512_core_bf16",
                                            "jit_1x1:avx512_core",
                                            "brgconv_strided:avx512_core_bf16",
                                            "brgconv_strided:avx512_core",
                                            "brgconv_bwd_w:avx512_core",
                                            "brgconv:avx2",
                                            "brgconv_1x1:avx2",
                                            "jit:avx2",
                                            "jit_1x1:avx2"};
constexpr double kUnlikely = 0.1;

void OfferImplementations(const CandidateQuery& q, Candidates& candidates) {
  if (!q.cpu.is_here) return;
  for (const char* implementation : kImplementations) {
    KernelChoice wanted;
    wanted.kernel = std::string("onednn/") + implementation;
    const auto plan = PlanFor(q.op)(q, LayoutSource::kPrimitive, &wanted);
    if (plan) plan->Describe(candidates.Add(kUnlikely));
  }
}

Result<std::unique_ptr<Kernel>> Make(const CandidateQuery& q, const KernelChoice& choice) {
  return CompilePlan(PlanFor(q.op)(q, LayoutSource::kChoice, &choice), q, choice);
}

// Gradients have no epilogue.
bool Fuses(const OpCall& call) { return call.attrs.contains("epilogue") && TakesEpilogue(call); }

}  // namespace

KernelDef ConvKernelDef() {
  return {.name = "onednn.{op}",
          .ops = {"conv", "conv_grad_input", "conv_grad_weight"},
          .dtypes = {DType::kF32, DType::kBF16},
          .fuses = Fuses,
          .in_place = false,
          .offer = Offer,
          .offer_measured = OfferImplementations,
          .make = Make};
}

}  // namespace ridge::cpu
