// Read off the library's answers about convolutions and products of many extents; the test beside
// asks the library again, for the instructions of the CPU that it runs on.
#include "ridge/backend/cpu/onednn_rules.h"

#include <algorithm>

#include "ridge/core/rounding.h"

namespace ridge::cpu {
namespace {

using dnnl::memory;

// ---- layouts, by the number of spatial dimensions

using Tags = dnnl_format_tag_t[3];

constexpr Tags kPlain = {dnnl_abc, dnnl_abcd, dnnl_abcde};
constexpr Tags kChannelsLast = {dnnl_acb, dnnl_acdb, dnnl_acdeb};
constexpr Tags kBlocks16 = {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b};
constexpr Tags kBlocks8 = {dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b};
constexpr Tags kBlocks4 = {dnnl_aBc4b, dnnl_aBcd4b, dnnl_aBcde4b};

const Tags& Blocks(int64_t block) {
  return block == 16 ? kBlocks16 : block == 8 ? kBlocks8 : kBlocks4;
}

constexpr Tags kWeights16 = {dnnl_ABc16b16a, dnnl_ABcd16b16a, dnnl_ABcde16b16a};
constexpr Tags kWeights16Back = {dnnl_ABc16a16b, dnnl_ABcd16a16b, dnnl_ABcde16a16b};
constexpr Tags kWeights16BackPointwise = {dnnl_BAc16a16b, dnnl_BAcd16a16b, dnnl_BAcde16a16b};
constexpr Tags kWeights16First = {dnnl_Acb16a, dnnl_Acdb16a, dnnl_Acdeb16a};
constexpr Tags kWeights8 = {dnnl_ABc8b8a, dnnl_ABcd8b8a, dnnl_ABcde8b8a};
constexpr Tags kWeights8Back = {dnnl_ABc8a8b, dnnl_ABcd8a8b, dnnl_ABcde8a8b};
constexpr Tags kWeights8First = {dnnl_Acb8a, dnnl_Acdb8a, dnnl_Acdeb8a};
constexpr Tags kWeightsBF16 = {dnnl_ABc8b16a2b, dnnl_ABcd8b16a2b, dnnl_ABcde8b16a2b};
constexpr Tags kWeightsBF16Back = {dnnl_ABc8a16b2a, dnnl_ABcd8a16b2a, dnnl_ABcde8a16b2a};
constexpr Tags kWeightsBF16BackPointwise = {dnnl_BAc8a16b2a, dnnl_BAcd8a16b2a, dnnl_BAcde8a16b2a};
constexpr Tags kWeightsBF16First = {dnnl_AcB16a2b, dnnl_AcdB16a2b, dnnl_AcdeB16a2b};
constexpr Tags kWeightsStrided = {dnnl_Bca24b, dnnl_Bcda24b, dnnl_Bcdea24b};
constexpr Tags kWeightsStridedBF16 = {dnnl_BcA64b2a, dnnl_BcdA64b2a, dnnl_BcdeA64b2a};
// Of groups; all are copied by the kernel, so only their bytes count.
constexpr Tags kGroups16 = {dnnl_aBCd16c16b, dnnl_aBCde16c16b, dnnl_aBCdef16c16b};
constexpr Tags kGroups8 = {dnnl_aBCd8c8b, dnnl_aBCde8c8b, dnnl_aBCdef8c8b};

// ---- convolutions

enum class Kind : uint8_t { kPacking, kDepthwise, kPointwise, kFirst, kBlocked, kStrided };

struct ConvCase {
  ConvPass pass;
  const ConvGeometry& g;
  bool bf16, avx512;
  Kind kind = Kind::kBlocked;
  int64_t block = 16;  // of channels

  bool grad_weight() const { return pass == ConvPass::kGradWeight; }
  bool grad_input() const { return pass == ConvPass::kGradInput; }
};

template <typename Test>
bool AnyAxis(const ConvGeometry& g, const Test& test) {
  const auto own = g.window.own();
  return std::any_of(own.begin(), own.end(), test);
}

bool IsStrided(const ConvGeometry& g) {
  return AnyAxis(g, [](const WindowAxis& axis) { return axis.stride > 1; });
}

// Gradients of the image are taken by strides where these divide it.
bool IsGradByStrides(const ConvGeometry& g) {
  return IsStrided(g) &&
         !AnyAxis(g, [](const WindowAxis& axis) { return axis.input % axis.stride != 0; });
}

// A stride is a copy of every second row and column before the product.
bool IsPointwise(const ConvGeometry& g) {
  const bool other = AnyAxis(g, [&](const WindowAxis& axis) {
    const bool skips = axis.stride > 1 && (g.window.rank > 2 || axis.input % axis.stride != 0);
    return axis.kernel != 1 || axis.pad_begin != 0 || axis.pad_end != 0 || skips;
  });
  return !other && g.groups == 1;
}

bool IsDepthwise(const ConvGeometry& g) {
  return g.groups > 1 && g.group_inputs == 1 && g.group_outputs == 1;
}

Kind DepthwiseKind(const ConvCase& c) {
  const bool wide = AnyAxis(c.g, [](const WindowAxis& axis) { return axis.kernel > 3; });
  if (c.g.window.rank != 2 || (c.grad_weight() && wide)) return Kind::kPacking;
  return c.grad_input() && c.bf16 && IsGradByStrides(c.g) ? Kind::kStrided : Kind::kDepthwise;
}

// The widest block that divides a group's channels; 0: none.
int64_t GroupBlock(const ConvCase& c) {
  for (const int64_t block : {16, 8, 4}) {
    const bool offered = block == 16 ? c.avx512 : block == 8 || c.avx512;
    if (offered && c.g.group_inputs % block == 0 && c.g.group_outputs % block == 0) return block;
  }
  return 0;
}

Kind GroupKind(const ConvCase& c) {
  if (c.block == 0) return Kind::kPacking;
  const bool narrow = c.block < (c.bf16 ? 16 : 8);
  return c.grad_weight() && narrow ? Kind::kPacking : Kind::kBlocked;
}

// Weight gradients that no blocked kernel takes.
bool IsWideGradWeight(const ConvCase& c) {
  if (c.g.window.x().kernel > 14 && !c.bf16) return true;
  if (c.avx512) return false;
  const bool dilated = AnyAxis(c.g, [](const WindowAxis& axis) { return axis.dilation > 1; });
  return dilated || (c.g.window.rank == 3 && c.g.window.taps() > 1);
}

Kind KindOf(const ConvCase& c) {
  if (IsDepthwise(c.g)) return DepthwiseKind(c);
  if (c.g.groups > 1) return GroupKind(c);
  if (c.grad_weight() && IsWideGradWeight(c)) return Kind::kPacking;
  if (c.grad_input() && IsGradByStrides(c.g) && (c.bf16 || !c.avx512)) return Kind::kStrided;
  if (IsPointwise(c.g)) return Kind::kPointwise;
  const int64_t few = c.grad_weight() && !c.avx512 ? 2 : 1;
  const bool first = !c.grad_input() && c.g.inputs() >= few && c.g.inputs() <= 3;
  return first ? Kind::kFirst : Kind::kBlocked;
}

std::string NameOf(const ConvCase& c) {
  const char* own = c.bf16 ? "avx512_core_bf16" : c.avx512 ? "avx512_core" : "avx2";
  const bool narrow = c.kind == Kind::kBlocked && c.grad_weight() && c.block == 8;
  const std::string isa = std::string(":") + (narrow ? "avx2" : own);
  switch (c.kind) {
    case Kind::kPacking:
      return "x64:gemm:jit";
    case Kind::kDepthwise:
      return "jit_dw" + isa;
    case Kind::kPointwise:
      return (c.bf16 ? "jit_bf16_1x1" : "jit_1x1") + isa;
    case Kind::kStrided:
      return "brgconv_strided" + isa;
    case Kind::kFirst:
    case Kind::kBlocked:
      break;
  }
  return (c.bf16 ? "jit_bf16" : "jit") + isa;
}

const Tags& ImageTags(const ConvCase& c) {
  if (c.kind == Kind::kPacking) return kPlain;
  return c.kind == Kind::kStrided ? kChannelsLast : Blocks(c.block);
}

const Tags& GradInputWeights(const ConvCase& c) {
  const bool pointwise = c.kind == Kind::kPointwise;
  if (c.kind == Kind::kStrided) return c.bf16 ? kWeightsStridedBF16 : kWeightsStrided;
  if (c.bf16) return pointwise ? kWeightsBF16BackPointwise : kWeightsBF16Back;
  if (!c.avx512) return kWeights8Back;
  return pointwise ? kWeights16BackPointwise : kWeights16Back;
}

const Tags& WeightTags(const ConvCase& c) {
  if (c.kind == Kind::kPacking) return kPlain;
  if (c.grad_input()) return GradInputWeights(c);
  const bool pairs = c.bf16 && !c.grad_weight();
  if (c.kind == Kind::kFirst)
    return pairs ? kWeightsBF16First : c.avx512 ? kWeights16First : kWeights8First;
  return pairs ? kWeightsBF16 : c.avx512 ? kWeights16 : kWeights8;
}

memory::desc InLayout(const memory::desc& desc, dnnl_format_tag_t tag) {
  return {desc.get_dims(), desc.get_data_type(), static_cast<memory::format_tag>(tag)};
}

memory::desc WantedWeights(const ConvCase& c, const memory::desc& w) {
  const auto axis = static_cast<size_t>(c.g.window.rank - 1);
  if (c.g.groups == 1) return InLayout(w, WeightTags(c)[axis]);
  if (c.kind == Kind::kPacking) return w;
  if (c.kind == Kind::kDepthwise) return InLayout(w, c.avx512 ? dnnl_Abcde16a : dnnl_Abcde8a);
  return InLayout(w, c.block == 16 ? kGroups16[axis] : kGroups8[axis]);
}

ConvTensors Wanted(const ConvCase& c, const ConvTensors& tensors) {
  const auto axis = static_cast<size_t>(c.g.window.rank - 1);
  const dnnl_format_tag_t images = ImageTags(c)[axis];
  return {InLayout(tensors.x, c.kind == Kind::kFirst ? kPlain[axis] : images),
          WantedWeights(c, tensors.w), InLayout(tensors.y, images)};
}

// ---- scratchpads

constexpr int64_t kFloat = 4, kSlack = 256;

// Parts of the images whose weight gradients are summed at the end: what reads and writes least,
// where weights count eightfold.
int64_t ImageParts(const ConvCase& c, int threads) {
  const ConvGeometry& g = c.g;
  const double x = static_cast<double>(g.batch * g.inputs() * g.window.outputs()),
               y = static_cast<double>(g.batch * g.outputs() * g.window.outputs()),
               w = 8.0 * static_cast<double>(g.outputs() * g.group_inputs * g.window.taps());
  int64_t best = 1;
  double least = 0;
  for (int64_t parts = 1; parts <= threads; ++parts) {
    const auto others = static_cast<double>(std::max<int64_t>(1, threads / parts));
    const double cost = (x + y / others) / static_cast<double>(parts) + w / others;
    if (parts > 1 && cost >= least) continue;
    best = parts;
    least = cost;
  }
  return best;
}

// Of a packing product: windows as columns, and sums of each part of the batch.
int64_t PackingScratch(const ConvCase& c, int64_t element, int64_t weight_bytes, int threads) {
  const ConvGeometry& g = c.g;
  const int64_t columns = g.group_inputs * g.window.taps() * g.window.outputs() * element;
  const int64_t parts = g.window.rank == 3 ? 16 : 8;
  return threads * columns + (c.grad_weight() ? parts * weight_bytes : 0) + kSlack;
}

// Of a gradient by strides: dy with its border.
int64_t StridedScratch(const ConvCase& c, int64_t element, int threads) {
  constexpr int64_t kOfThread = 32 * 1024;
  int64_t bordered = c.g.group_outputs;
  for (const WindowAxis& axis : c.g.window.own()) bordered *= axis.output + axis.kernel;
  return threads * (bordered * element + kOfThread);
}

int64_t PointwiseScratch(const ConvCase& c, int64_t element, int threads) {
  const ConvGeometry& g = c.g;
  const int64_t plane = threads * g.window.outputs();
  const int64_t copied = IsStrided(g) ? plane * RoundUp(g.inputs(), c.block) * element : 0;
  const int64_t summed = c.grad_input() ? g.inputs() : g.outputs();
  return copied + (c.bf16 && !c.grad_weight() ? plane * RoundUp(summed, c.block) * kFloat : 0);
}

int64_t Scratch(const ConvCase& c, int64_t element, int64_t weight_bytes, int threads) {
  if (c.kind == Kind::kPacking) return PackingScratch(c, element, weight_bytes, threads);
  if (c.kind == Kind::kStrided) return StridedScratch(c, element, threads);
  int64_t bytes = kSlack + 2 * kFloat * RoundUp(c.g.outputs(), c.block);
  if (c.kind == Kind::kPointwise) bytes += PointwiseScratch(c, element, threads);
  if (!c.grad_weight()) return bytes;
  const bool all = c.bf16 || c.kind == Kind::kPointwise;
  const int64_t parts = all ? threads : ImageParts(c, threads) - 1;
  bytes += parts * (weight_bytes / element * kFloat + 16 * 1024);
  // Pairs of pixels side by side; as much again for borders and whole blocks.
  const int64_t turned = c.g.inputs() * c.g.window.inputs() + c.g.outputs() * c.g.window.outputs();
  return c.bf16 ? bytes + threads * turned * element * 2 : bytes;
}

}  // namespace

bool HasRules(DType dtype, const InstructionSet& instructions) {
  if (dtype == DType::kBF16) return instructions.bf16;
  return instructions.vectors != Instructions::kSse4;
}

ConvAnswer AnswerConv(ConvPass pass, const ConvGeometry& g, const ConvTensors& tensors,
                      const InstructionSet& instructions, int threads) {
  const bool bf16 = tensors.x.get_data_type() == memory::data_type::bf16 ||
                    tensors.y.get_data_type() == memory::data_type::bf16;
  const bool avx512 = instructions.vectors == Instructions::kAvx512;
  ConvCase c{.pass = pass, .g = g, .bf16 = bf16, .avx512 = avx512, .block = avx512 ? 16 : 8};
  if (g.groups > 1 && !IsDepthwise(g)) c.block = GroupBlock(c);
  c.kind = KindOf(c);
  ConvAnswer answer;
  answer.implementation = NameOf(c);
  answer.wanted = Wanted(c, tensors);
  answer.scratchpad_bytes =
      Scratch(c, bf16 ? 2 : kFloat, static_cast<int64_t>(answer.wanted.w.get_size()), threads);
  return answer;
}

// ---- products

ProductAnswer AnswerProduct(const ProductExtents& e, const memory::desc& b,
                            const InstructionSet& instructions, int threads) {
  if (instructions.vectors != Instructions::kAvx512)
    return {"gemm:jit:f32", b, 0};  // its buffers are on the heap
  const bool bf16 = b.get_data_type() == memory::data_type::bf16;
  // Blocks of the library: so many rows of a and columns of b at a time.
  constexpr int64_t kRows = 256, kNumbers = 132 * 1024, kColumns = 64, kDepth = 1024;
  constexpr int64_t kOfThread = 576;
  const int64_t depth = std::min(RoundUp(e.depth, int64_t{16}), kDepth);
  const int64_t element = bf16 ? 2 : kFloat;
  int64_t bytes = kOfThread;
  const int64_t numbers = std::min(std::min(e.rows, kRows) * (depth + 16), kNumbers);
  if (e.copies_a) bytes += (bf16 ? 4 : 1) * numbers * element;
  if (e.copies_b || bf16) bytes += depth * kColumns * element;
  ProductAnswer answer{JitName("brg", bf16 ? DType::kBF16 : DType::kF32, instructions), b,
                       threads * bytes};
  if (b.get_dims().size() == 2) answer.packed = InLayout(b, bf16 ? dnnl_BA16a64b2a : dnnl_BA16a64b);
  return answer;
}

std::string JitName(const char* family, DType dtype, const InstructionSet& instructions) {
  const InstructionSet used{instructions.vectors, instructions.bf16 && dtype == DType::kBF16};
  return std::string(family) + ":" + InstructionSetName(used);
}

}  // namespace ridge::cpu
