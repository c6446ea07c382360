#include "ridge/backend/cuda/kernels/attention_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"

namespace ridge::cuda {
namespace {

// Where rows lie, and what the scores of both operators are.
constexpr std::string_view kScoreText = R"cuda(
RIDGE_FUNCTION Index RowOfQ(Index b, Index h, Index i) { return $q; }
RIDGE_FUNCTION Index RowOfK(Index b, Index h, Index i) { return $k; }
RIDGE_FUNCTION Index RowOfV(Index b, Index h, Index i) { return $v; }
RIDGE_FUNCTION Index RowOfY(Index b, Index h, Index i) { return $y; }

// The score of query i and key j from their product, -inf where j is hidden or one of them beyond
// the end; slope is its derivative by scale * dot.
RIDGE_FUNCTION R Score(R dot, Index b, Index h, Index i, Index j, R& slope$mask_parameter) {
  slope = R(1);
  if (i >= $queries || j >= $keys$or_hidden) return -Infinity<R>();
  R s = $scale * dot;
$cap$add  return s;
}

// A thread's part of a tile, transposed in shared memory.
template <int TM, int TN> RIDGE_FUNCTION void KeepOwn(const R (&part)[TM][TN], R* tile) {
  const int tx = threadIdx.x % kSide, ty = threadIdx.x / kSide;
#pragma unroll
  for (int i = 0; i < TM; ++i) {
#pragma unroll
    for (int j = 0; j < TN; ++j)
      tile[Place<TN>(tx, j) * TileSide<TM>::kPitch + Place<TM>(ty, i)] = part[i][j];
  }
}

// Over the 16 threads that have a row of a tile.
template <class F> RIDGE_FUNCTION R BlockRowFold(R x, F fold) {
  for (int distance = 8; distance > 0; distance >>= 1)
    x = fold(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
)cuda";

std::string ViewText(const AttentionView& view) {
  return fmt::format("{} + b * {} + h * {} + i * {}", IndexNumber(view.base),
                     IndexNumber(view.batch), IndexNumber(view.head), IndexNumber(view.row));
}

}  // namespace

AttentionText::AttentionText(const OpCall& of, size_t mask)
    : call(of),
      e(ExtentsOf(of)),
      views(ViewsOf(of)),
      causal_offset(of.integer("causal_offset")),
      mask_(mask),
      wide_(of.inputs[0].dtype == DType::kF64) {}

int64_t AttentionText::ScoreSums(int64_t extent) const { return SumsAlong(extent, wide_ ? 2 : 4); }
int64_t AttentionText::ColumnSums(int64_t extent) const { return SumsAlong(extent, wide_ ? 4 : 8); }

Parameters AttentionText::Operands() const {
  Parameters p;
  p.AddInput(call, 0, "q");
  p.AddInput(call, views.k_operand, "k");
  p.AddInput(call, views.v_operand, "v");
  if (call.has_input(mask_)) p.AddInput(call, mask_, "mask");
  return p;
}

void AttentionText::AddExtents(Names& names) const {
  names.insert(names.end(), {{"heads", IndexNumber(e.heads)},
                             {"group", IndexNumber(e.group())},
                             {"queries", IndexNumber(e.queries)},
                             {"keys", IndexNumber(e.keys)},
                             {"head_dim", IndexNumber(e.head_dim)},
                             {"value_dim", IndexNumber(e.value_dim)},
                             {"mask", call.has_input(mask_) ? ", mask" : ""}});
}

std::string AttentionText::Begin() const {
  int64_t largest = e.batch * e.heads * e.queries;
  for (size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) largest = std::max(largest, call.inputs[i].elements());
  largest = std::max(largest, call.outputs[0].elements());
  return fmt::format("typedef {} R;\ntypedef {} Index;\n", wide_ ? "double" : "float",
                     IndexType(largest)) +
         std::string(TileFunctions()) + ScoreText();
}

std::string AttentionText::ScoreText() const {
  Names names = {{"q", ViewText(views.q)},
                 {"k", ViewText(views.k)},
                 {"v", ViewText(views.v)},
                 {"y", ViewText(views.y)},
                 {"queries", IndexNumber(e.queries)},
                 {"keys", IndexNumber(e.keys)},
                 {"scale", Literal(call.number("scale"))}};
  const double cap = call.number("softcap");
  names.emplace_back("cap", cap > 0 ? fmt::format("  const R t = tanh(s / {0});\n  s = {0} * t;\n"
                                                  "  slope = R(1) - t * t;\n",
                                                  Literal(cap))
                                    : "");
  AddHidden(names);
  return FillText(kScoreText, names);
}

// Causality and the mask.
void AttentionText::AddHidden(Names& names) const {
  std::string hidden, add, parameter;
  if (call.integer("causal") != 0)
    hidden = fmt::format(" || (i64)j > (i64)i + {}ll", causal_offset);
  if (call.has_input(mask_)) {
    const TensorType& type = call.inputs[mask_];
    const std::array<int64_t, 4> strides = MaskStrides(e, type.dims);
    const std::string at =
        fmt::format("b * {} + h * {} + i * {} + j * {}", IndexNumber(strides[0]),
                    IndexNumber(strides[1]), IndexNumber(strides[2]), IndexNumber(strides[3]));
    parameter = fmt::format(", const {}* mask", StorageType(type.dtype));
    if (type.dtype == DType::kBool) {
      hidden += fmt::format(" || mask[{}].bits == 0", at);
    } else {
      add = fmt::format("  s += (R)Load(mask, {});\n", at);
    }
  }
  names.emplace_back("or_hidden", hidden);
  names.emplace_back("add", add);
  names.emplace_back("mask_parameter", parameter);
}

std::string AttentionText::VisibleText(const char* first, int64_t queries) const {
  if (call.integer("causal") == 0) return IndexNumber(e.keys);
  return fmt::format("(Index)Limited((i64){} + {}ll, 0ll, {}ll)", first, queries + causal_offset,
                     e.keys);
}

std::string IndexNumber(int64_t value) { return fmt::format("(Index){}ll", value); }

const char* AddLaunch(const char* function, int64_t blocks, const Parameters& parameters,
                      KernelText& text) {
  if (blocks > std::numeric_limits<int32_t>::max()) return refusal::kSize;
  text.launches.push_back({function, blocks, kBlockThreads, parameters.arguments});
  return nullptr;
}

}  // namespace ridge::cuda
