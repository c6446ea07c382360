#include "ridge/backend/cuda/kernels/product_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "ridge/backend/cuda/kernels/index_text.h"
#include "ridge/backend/cuda/kernels/pointwise_text.h"
#include "ridge/backend/cuda/text_kernel_def.h"
#include "ridge/core/rounding.h"
#include "ridge/graph/ops/shared/epilogue.h"

namespace ridge::cuda {
namespace {

constexpr int64_t kSide = 16;       // threads along each side of a tile
constexpr int64_t kTileDepth = 16;  // of what is in shared memory at once
constexpr int64_t kFewBlocks = 132;
constexpr int64_t kMostParts = 64;
constexpr int64_t kShortestPart = 128;
constexpr int64_t kMostPartBytes = int64_t{1} << 28;

constexpr std::string_view kTileFunctions = R"cuda(
// A tile in shared memory has kDepth rows of 16 N numbers, and 4 between rows against conflicts of
// banks.  A thread has N of 16 N places along each side: runs of up to four neighbours.
enum { kDepth = 16, kSide = 16 };
template <int N> struct TileSide {
  static constexpr int kRun = N < 4 ? N : 4, kPitch = kSide * N + 4;
  static constexpr int kNumbers = kDepth * kPitch;
};
template <int N> RIDGE_FUNCTION int Place(int at, int i) {
  const int run = N < 4 ? N : 4;
  return i / run * (kSide * run) + at * run + i % run;
}

// A thread's part of a tile, on the way to shared memory: value(place, k).
template <int N, bool kAlongDepth, class V>
RIDGE_FUNCTION void Fetch(R (&part)[N], V value) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int e = threadIdx.x + 256 * i;
    part[i] = kAlongDepth ? value(e / kDepth, e % kDepth) : value(e % (kSide * N), e / (kSide * N));
  }
}
template <int N, bool kAlongDepth> RIDGE_FUNCTION void Keep(const R (&part)[N], R* tile) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const int e = threadIdx.x + 256 * i;
    const int place = kAlongDepth ? e / kDepth : e % (kSide * N);
    const int k = kAlongDepth ? e % kDepth : e / (kSide * N);
    tile[k * TileSide<N>::kPitch + place] = part[i];
  }
}

template <int N> RIDGE_FUNCTION void TakeRow(const R* row, int at, R (&numbers)[N]) {
  constexpr int kRun = TileSide<N>::kRun;
#pragma unroll
  for (int i = 0; i < N; i += kRun) {
    const Pack<R, kRun> run = LoadPack<kRun>(row, (i * kSide + at * kRun) / kRun);
#pragma unroll
    for (int j = 0; j < kRun; ++j) numbers[i + j] = run.at[j];
  }
}
// sum += a b for tiles of a, [kDepth][16 TM], and b, [kDepth][16 TN].
template <int TM, int TN> RIDGE_FUNCTION void AddTiles(R (&sum)[TM][TN], const R* a, const R* b) {
#pragma unroll 2
  for (int k = 0; k < kDepth; ++k) {
    R of_a[TM], of_b[TN];
    TakeRow<TM>(a + k * TileSide<TM>::kPitch, threadIdx.x / kSide, of_a);
    TakeRow<TN>(b + k * TileSide<TN>::kPitch, threadIdx.x % kSide, of_b);
#pragma unroll
    for (int i = 0; i < TM; ++i) {
#pragma unroll
      for (int j = 0; j < TN; ++j) sum[i][j] += of_a[i] * of_b[j];
    }
  }
}

// sum += the product over k of [first, last): a(place, k) and b(place, k) may be asked up to 15
// beyond last.  as and bs are one tile each, free again when it returns.  All threads call it.
template <int TM, int TN, bool kAAlongDepth, bool kBAlongDepth, class A, class B>
RIDGE_FUNCTION void BlockProduct(R (&sum)[TM][TN], Index first, Index last, R* as, R* bs, A a, B b) {
  R of_a[TM], of_b[TN];
  Fetch<TM, kAAlongDepth>(of_a, [&](int place, int k) { return a(place, first + k); });
  Fetch<TN, kBAlongDepth>(of_b, [&](int place, int k) { return b(place, first + k); });
#pragma unroll 1
  for (Index at = first; at < last; at += kDepth) {
    Keep<TM, kAAlongDepth>(of_a, as);
    Keep<TN, kBAlongDepth>(of_b, bs);
    __syncthreads();
    if (at + kDepth < last) {
      Fetch<TM, kAAlongDepth>(of_a, [&](int place, int k) { return a(place, at + kDepth + k); });
      Fetch<TN, kBAlongDepth>(of_b, [&](int place, int k) { return b(place, at + kDepth + k); });
    }
    AddTiles<TM, TN>(sum, as, bs);
    __syncthreads();
  }
}

// sum += a b for a that lies in shared memory, `depth` rows as those of a tile, and b(place, k) for
// k below depth.  bs is one tile; a and bs are free again when it returns.  All threads call it.
template <int TM, int TN, class B>
RIDGE_FUNCTION void BlockTimes(R (&sum)[TM][TN], int depth, const R* a, R* bs, B b) {
  R of_b[TN];
  Fetch<TN, false>(of_b, b);
#pragma unroll 1
  for (int at = 0; at < depth; at += kDepth) {
    Keep<TN, false>(of_b, bs);
    __syncthreads();
    if (at + kDepth < depth)
      Fetch<TN, false>(of_b, [&](int place, int k) { return b(place, at + kDepth + k); });
    AddTiles<TM, TN>(sum, a + at * TileSide<TM>::kPitch, bs);
    __syncthreads();
  }
}
)cuda";

// What all forms begin with.
constexpr std::string_view kOperandsText = R"cuda(
    const auto a = [&](Index m, Index k) -> R { $a };
    const auto b = [&](Index k, Index n) -> R { $b };
)cuda";

// A block computes a tile: all of the sums or one of $parts parts.
constexpr std::string_view kTilesText = R"cuda(
RIDGE_KERNEL void product($parameters) {
  alignas(32) __shared__ R as[TileSide<$TM>::kNumbers];
  alignas(32) __shared__ R bs[TileSide<$TN>::kNumbers];
  const Index n0 = (Index)(blockIdx.x % $n_tiles) * (kSide * $TN);
  const Index m0 = (Index)(blockIdx.x / $n_tiles % $m_tiles) * (kSide * $TM);
  const Index batch = blockIdx.x / ($n_tiles * $m_tiles) % $batch;
  const Index part = blockIdx.x / ($n_tiles * $m_tiles * $batch);
  const Index first = part * $part_depth;
  const Index last = first + $part_depth < $depth ? first + $part_depth : $depth;
$operands
  R sum[$TM][$TN] = {};
  BlockProduct<$TM, $TN, $a_along, $b_along>(
      sum, first, last, as, bs,
      [&](int place, Index k) { return m0 + place < $rows && k < last ? a(m0 + place, k) : R(0); },
      [&](int place, Index k) { return n0 + place < $columns && k < last ? b(k, n0 + place) : R(0); });
#pragma unroll
  for (int i = 0; i < $TM; ++i) {
    const Index m = m0 + Place<$TM>(threadIdx.x / kSide, i);
#pragma unroll
    for (int j = 0; j < $TN; j += $together) {
      const Index n = n0 + Place<$TN>(threadIdx.x % kSide, j);
      if (m >= $rows || n >= $columns) continue;
      $take
$store
    }
  }
}
)cuda";

// A thread adds the parts of one sum.
constexpr std::string_view kPartsText = R"cuda(
RIDGE_KERNEL void total($parameters) {
  for (i64 e = Thread(); e < $sums; e += Threads()) {
    R value = 0;
    for (int part = 0; part < $parts; ++part) value += sums[part * ($sums) + e];
    const Index n = (Index)(e % $columns), m = (Index)(e / $columns % $rows);
    const Index batch = (Index)(e / ($columns * $rows));
$store
  }
}
)cuda";

// A thread computes a sum.
constexpr std::string_view kThreadText = R"cuda(
RIDGE_KERNEL void product($parameters) {
  for (i64 e = Thread(); e < $sums; e += Threads()) {
    const Index n = (Index)(e % $columns), m = (Index)(e / $columns % $rows);
    const Index batch = (Index)(e / ($columns * $rows));
$operands
    R value = 0;
    for (Index k = 0; k < $depth; ++k) value += a(m, k) * b(k, n);
$store
  }
}
)cuda";

// A block computes a sum.
constexpr std::string_view kBlockText = R"cuda(
RIDGE_KERNEL void product($parameters) {
  __shared__ R scratch[32];
  for (i64 e = blockIdx.x; e < $sums; e += gridDim.x) {
    const Index n = (Index)(e % $columns), m = (Index)(e / $columns % $rows);
    const Index batch = (Index)(e / ($columns * $rows));
$operands
    R value = 0;
    for (Index k = threadIdx.x; k < $depth; k += blockDim.x) value += a(m, k) * b(k, n);
    value = BlockSum(value, scratch);
    if (threadIdx.x == 0) {
$store
    }
  }
}
)cuda";

struct Tiling {
  int64_t tm = 1, tn = 1;  // sums of a thread along rows and columns
  int64_t parts = 1;       // of a sum
  int64_t part_depth = 0;

  int64_t Tiles(const ProductText& p) const {
    return p.batch * CeilDiv(p.rows, kSide * tm) * CeilDiv(p.columns, kSide * tn);
  }
};

void SplitDepth(const ProductText& p, Tiling& t) {
  const int64_t wanted = std::min(2 * kFewBlocks / t.Tiles(p), p.depth / kShortestPart);
  const int64_t bytes = p.batch * p.rows * p.columns * 8;
  const int64_t parts = std::min({wanted, kMostParts, kMostPartBytes / bytes});
  if (parts < 2 || p.together != 1) return;
  t.part_depth = RoundUp(CeilDiv(p.depth, parts), kTileDepth);
  t.parts = CeilDiv(p.depth, t.part_depth);
}

// Large tiles where there are enough of them; small ones and parts of sums to have enough blocks.
Tiling ChooseTiling(const ProductText& p) {
  const int64_t least = p.together;
  const auto sized = [&](int64_t most) {
    return Tiling{SumsAlong(p.rows, most), std::max(least, SumsAlong(p.columns, most)), 1, p.depth};
  };
  const bool wide = std::strcmp(p.compute, "float") == 0;
  Tiling t = sized(wide ? 8 : 4);
  if (t.Tiles(p) < 2 * kFewBlocks) t = sized(4);
  if (t.Tiles(p) < kFewBlocks) SplitDepth(p, t);
  if (t.Tiles(p) * t.parts < kFewBlocks / 2 && std::max(t.tm, t.tn) > 2) {
    t = sized(2);
    if (t.Tiles(p) < kFewBlocks) SplitDepth(p, t);
  }
  return t;
}

std::string Number(int64_t value) { return fmt::format("{}ll", value); }

class ProductWriter {
 public:
  explicit ProductWriter(const ProductText& product)
      : p_(product), sums_(p_.batch * p_.rows * p_.columns) {}

  const char* Write(KernelText& text) {
    const Tiling t = ChooseTiling(p_);
    const int64_t largest =
        std::max({p_.largest_index, sums_, p_.depth + kTileDepth + t.part_depth});
    text.source =
        PointwiseFunctions(p_.compute) + fmt::format("typedef {} Index;\n", IndexType(largest));
    const bool few_rows = p_.rows < 4 && p_.together == 1;
    if (few_rows && p_.depth <= 512 && !p_.b_along_depth) {
      AddFlat(kThreadText, BlocksFor(sums_), text);
    } else if (few_rows && p_.a_along_depth && p_.b_along_depth) {
      AddFlat(kBlockText, BlocksForRows(sums_), text);
    } else {
      return AddTiles(t, text);
    }
    return nullptr;
  }

 private:
  void AddFlat(std::string_view form, int64_t blocks, KernelText& text) {
    Parameters all = p_.operands;
    all.Append(p_.results);
    text.source += FillText(form, {{"parameters", all.text},
                                   {"sums", Number(sums_)},
                                   {"rows", Number(p_.rows)},
                                   {"columns", Number(p_.columns)},
                                   {"depth", Number(p_.depth)},
                                   {"operands", OperandsText()},
                                   {"store", p_.store}});
    text.launches = {{"product", blocks, kBlockThreads, all.arguments}};
  }

  const char* AddTiles(const Tiling& t, KernelText& text) {
    const int64_t blocks = t.Tiles(p_) * t.parts;
    if (blocks > std::numeric_limits<int32_t>::max()) return refusal::kSize;
    Parameters parts;
    if (t.parts > 1) {
      parts.Add("R* sums", Argument::Workspace());
      text.workspace_bytes = RoundUp(t.parts * sums_ * 8, 256);
    }
    Parameters all = p_.operands;
    all.Append(t.parts > 1 ? parts : p_.results);
    text.source += TileFunctions();
    text.source += FillTiles(t, all);
    text.launches = {{"product", blocks, kBlockThreads, all.arguments}};
    if (t.parts > 1) AddParts(t, parts, text);
    return nullptr;
  }

  std::string FillTiles(const Tiling& t, const Parameters& parameters) {
    const std::string keep = fmt::format("sums[((part * {} + batch) * {} + m) * {} + n] = value;",
                                         Number(p_.batch), Number(p_.rows), Number(p_.columns));
    return FillText(
        kTilesText,
        {{"parameters", parameters.text},
         {"TM", std::to_string(t.tm)},
         {"TN", std::to_string(t.tn)},
         {"m_tiles", fmt::format("{}u", CeilDiv(p_.rows, kSide * t.tm))},
         {"n_tiles", fmt::format("{}u", CeilDiv(p_.columns, kSide * t.tn))},
         {"batch", fmt::format("{}u", p_.batch)},
         {"part_depth", fmt::format("(Index){}", t.part_depth)},
         {"depth", fmt::format("(Index){}", p_.depth)},
         {"rows", fmt::format("(Index){}", p_.rows)},
         {"columns", fmt::format("(Index){}", p_.columns)},
         {"a_along", p_.a_along_depth ? "true" : "false"},
         {"b_along", p_.b_along_depth ? "true" : "false"},
         {"operands", OperandsText()},
         {"together", std::to_string(p_.together)},
         {"take", p_.together == 1
                      ? "R value = sum[i][j];"
                      : "R values[4] = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};"},
         {"store", t.parts > 1 ? keep : p_.store}});
  }

  void AddParts(const Tiling& t, const Parameters& parts, KernelText& text) {
    Parameters all = parts;
    all.Append(p_.results);
    text.source += FillText(kPartsText, {{"parameters", all.text},
                                         {"sums", Number(sums_)},
                                         {"parts", std::to_string(t.parts)},
                                         {"rows", Number(p_.rows)},
                                         {"columns", Number(p_.columns)},
                                         {"store", p_.store}});
    text.launches.push_back({"total", BlocksFor(sums_), kBlockThreads, all.arguments});
  }

  std::string OperandsText() const { return FillText(kOperandsText, {{"a", p_.a}, {"b", p_.b}}); }

  const ProductText& p_;
  const int64_t sums_;
};

}  // namespace

void Parameters::Add(const std::string& declaration, Argument argument) {
  text += (text.empty() ? "" : ", ") + declaration;
  arguments.push_back(argument);
}

void Parameters::AddInput(const OpCall& call, size_t input, std::string_view name) {
  Add(fmt::format("const {}* {}", StorageType(call.inputs[input].dtype), name),
      Argument::Input(static_cast<int>(input)));
}

void Parameters::AddOutput(const OpCall& call, size_t output, std::string_view name) {
  Add(fmt::format("{}* {}", StorageType(call.outputs[output].dtype), name),
      Argument::Output(static_cast<int>(output)));
}

void Parameters::Append(const Parameters& more) {
  if (more.text.empty()) return;
  text += (text.empty() ? "" : ", ") + more.text;
  arguments.insert(arguments.end(), more.arguments.begin(), more.arguments.end());
}

int64_t SumsAlong(int64_t extent, int64_t most) {
  int64_t sums = 1;
  while (sums < most && kSide * sums < extent) sums *= 2;
  return sums;
}

std::string_view TileFunctions() { return kTileFunctions; }

const char* WriteProduct(const ProductText& product, KernelText& text) {
  text.in_place = false;
  return ProductWriter(product).Write(text);
}

const char* SumType(const OpCall& call) {
  const DType dtype = call.inputs[0].dtype, out = call.outputs[0].dtype;
  const bool narrow = IsFloat(dtype) && dtype != DType::kF64 && out != DType::kF64;
  return narrow ? "float" : "double";
}

const char* AddFinish(const OpCall& call, size_t bias, const std::string& bias_at,
                      const std::string& at, ProductText& product) {
  const size_t first_extra = bias + 1;
  const char* stored = StorageType(call.outputs[0].dtype);
  std::string& store = product.store;
  if (call.has_input(bias)) {
    product.results.AddInput(call, bias, "bias");
    store += fmt::format("      value += (R)Load(bias, {});\n", bias_at);
  }
  store += fmt::format("      const Index at = {};\n", at);
  const Result<std::vector<EpilogueStep>> steps = ParseEpilogue(call.text("epilogue"), call.where);
  if (!steps.ok()) return refusal::kExpression;
  for (const EpilogueStep& step : *steps) {
    const std::optional<std::string> value = PointwiseValue(*step.op, step.attrs);
    if (!value) return refusal::kExpression;
    std::string other;
    if (step.extra >= 0) {
      product.results.AddInput(call, first_extra + static_cast<size_t>(step.extra),
                               fmt::format("extra{}", step.extra));
      other = fmt::format(", b = (R)Load(extra{}, at)", step.extra);
    }
    store += fmt::format(
        "      {{\n        const R a = As<{}>(value){};\n        value = {};\n      }}\n", stored,
        other, *value);
  }
  product.results.AddOutput(call, 0, "y");
  store += "      Store(y, at, value);";
  return nullptr;
}

}  // namespace ridge::cuda
