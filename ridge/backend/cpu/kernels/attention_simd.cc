// Tiles of attention.  Forward: running maximum and sum, y rescaled when the maximum grows (Milakov
// and Gimelshein, 2018; Dao et al., 2022).  Backward: probabilities again from logsumexp.
//
// Rows of a tile behind the last query of a block hold scores of zero queries; they are never read
// by the products.  Where the diagonal of a causal mask crosses a tile, 16 keys at a time are
// computed for the 16 queries that see one of them, and those behind: 10 of 16 squares.
#include "ridge/backend/cpu/kernels/attention_tiles.h"
#include "ridge/backend/cpu/kernels/strided_copy.h"
#include "ridge/core/rounding.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/attention_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"
#include "ridge/backend/cpu/kernels/small_matmul-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kT = kTileQueries;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// The columns of a tile that are computed for `rows` queries.
HWY_INLINE int64_t WholeVectors(int64_t rows) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  return RoundUp(rows, lanes);
}

// Keys and queries that are computed together in a tile that the diagonal crosses.
constexpr int64_t kSquare = 16;

// Queries [begin, end) and keys [first, last) of one tile.
struct Tile {
  int64_t begin, end, first, last;
  int64_t diagonal;  // the first query of the block that sees the first key; may be negative

  int64_t rows() const { return end - begin; }
  int64_t width() const { return WholeVectors(end - begin); }
  int64_t keys() const { return last - first; }

  // The first query for which the squares of key j are computed.
  int64_t FirstQuery(int64_t j) const {
    const int64_t seen = j / kSquare * kSquare + diagonal;
    return seen <= 0 ? 0 : seen / kSquare * kSquare;
  }
  // The keys whose squares of query i are computed: [0, result).
  int64_t KeysOf(int64_t i) const {
    const int64_t seen = i / kSquare * kSquare + kSquare - diagonal;
    return seen <= 0 ? 0 : std::min(keys(), RoundUp(seen, kSquare));
  }
  bool whole() const { return FirstQuery(keys() - 1) == 0; }
};

Tile TileAt(const AttentionShape& shape, int64_t begin, int64_t end, int64_t first, int64_t last) {
  const int64_t all_seen = -shape.keys - kTileQueries;
  return {begin, end, first, last, shape.causal ? first - shape.causal_offset - begin : all_seen};
}

// Rows of a whole tile that are computed between two calls of PrefetchQueue::Fetch.
constexpr int64_t kRun = 2 * small_matmul::kMostRows;

HWY_INLINE void Fetch(const AttentionHead& head) {
  if (head.ahead != nullptr) head.ahead->Fetch();
}

// Calls f(first, count, query) for runs of keys that are computed for the queries from `query` on.
template <class F>
HWY_INLINE void ForEachKeys(const AttentionHead& head, const Tile& t, const F& f) {
  const bool whole = t.whole();
  const int64_t run = whole ? kRun : kSquare;
  for (int64_t j = 0; j < t.keys(); j += run) {
    Fetch(head);
    f(j, std::min(run, t.keys() - j), whole ? 0 : t.FirstQuery(j));
  }
}

// Calls f(first, count, keys) for runs of queries that are computed for the first `keys` keys.
template <class F>
HWY_INLINE void ForEachQueries(const AttentionHead& head, const Tile& t, const F& f) {
  const bool whole = t.whole();
  const int64_t run = whole ? kRun : kSquare;
  for (int64_t i = 0; i < t.rows(); i += run) {
    Fetch(head);
    f(i, std::min(run, t.rows() - i), whole ? t.keys() : t.KeysOf(i));
  }
}

// Calls f(i) for each vector of a row of a tile.
template <class F>
HWY_INLINE void ForEachVector(int64_t width, const F& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t i = 0; i < width; i += lanes) f(i);
}

// to[c][r] = factor * from[r][c] for r < rows; zero for rows up to a whole vector:
// [width, kT].
void Transpose(const float* from, int64_t from_row, int64_t rows, int64_t width, float factor,
               float* to) {
  constexpr int64_t kFloat = sizeof(float), kStrip = 64;
  for (int64_t c = 0; c < width; c += kStrip) {
    const int64_t strip = std::min(kStrip, width - c);
    TransposeSquare(kFloat, reinterpret_cast<const std::byte*>(from + c), from_row * kFloat,
                    reinterpret_cast<std::byte*>(to + c * kT), kT * kFloat, rows, strip);
  }
  const int64_t end = WholeVectors(rows);
  const D d;
  const V f = hn::Set(d, factor);
  for (int64_t c = 0; c < width; ++c) {
    std::fill_n(to + c * kT + rows, end - rows, 0.0F);
    if (factor == 1) continue;
    ForEachVector(end, [&](int64_t i) HWY_ATTR {
      hn::StoreU(hn::Mul(f, hn::LoadU(d, to + c * kT + i)), d, to + c * kT + i);
    });
  }
}

void Copy(const float* from, int64_t from_row, int64_t rows, int64_t width, float* to,
          int64_t to_row) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r, from += from_row, to += to_row) {
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes) hn::StoreU(hn::LoadU(d, from + c), d, to + c);
    for (; c < width; ++c) to[c] = from[c];
  }
}

// Contiguous rows: `from` itself, or a copy in `to` [rows, width].
const float* Contiguous(const float* from, int64_t from_row, int64_t rows, int64_t width,
                        float* to) {
  if (from_row == width) return from;
  Copy(from, from_row, rows, width, to, width);
  return to;
}

// s = cap * tanh(s / cap); slope, when wanted, is its derivative 1 - tanh^2.
void ApplySoftcap(float cap, const Tile& t, float* tile, float* slope) {
  const D d;
  const V up = hn::Set(d, cap), down = hn::Set(d, 1 / cap), one = hn::Set(d, 1);
  for (int64_t j = 0; j < t.keys(); ++j) {
    ForEachVector(t.width(), [&](int64_t i) HWY_ATTR {
      const V y = SafeTanh(hn::Mul(down, hn::LoadU(d, tile + j * kT + i)));
      hn::StoreU(hn::Mul(up, y), d, tile + j * kT + i);
      if (slope != nullptr) hn::StoreU(hn::NegMulAdd(y, y, one), d, slope + j * kT + i);
    });
  }
}

// Scores [begin, end) of one key and `from`, which has one element a query, `stride` apart.
template <typename T>
HWY_INLINE void MaskKey(const T* from, int64_t stride, int64_t rows, float* scores) {
  for (int64_t r = 0; r < rows; ++r) {
    if constexpr (sizeof(T) == 1) {
      scores[r] = from[r * stride] != 0 ? scores[r] : kNone;
    } else {
      scores[r] += from[r * stride];
    }
  }
}

// Full masks have neighbouring keys side by side, so a tile of them is turned first.
template <typename T>
void ApplyMask(const AttentionShape& shape, const T* mask, const Tile& t, float* tile) {
  const T* from = mask + t.begin * shape.mask_row + t.first * shape.mask_col;
  alignas(64) T turned[kTileKeys * kT];
  int64_t key_stride = shape.mask_col, row_stride = shape.mask_row;
  if (shape.mask_col == 1 && shape.mask_row != 0) {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    TransposeSquare(kSize, reinterpret_cast<const std::byte*>(from), shape.mask_row * kSize,
                    reinterpret_cast<std::byte*>(turned), kT * kSize, t.rows(), t.keys());
    from = turned;
    key_stride = kT;
    row_stride = 1;
  }
  for (int64_t j = 0; j < t.keys(); ++j) {
    if (row_stride == 1) {
      MaskKey(from + j * key_stride, 1, t.rows(), tile + j * kT);
    } else {
      MaskKey(from + j * key_stride, row_stride, t.rows(), tile + j * kT);
    }
  }
}

// Key j is hidden from the queries before j - causal_offset.
void ApplyCausality(const AttentionShape& shape, const Tile& t, float* tile) {
  if (!shape.causal) return;
  for (int64_t j = t.first; j < t.last; ++j) {
    const int64_t hidden = std::clamp<int64_t>(j - shape.causal_offset - t.begin, 0, kT);
    std::fill_n(tile + (j - t.first) * kT, hidden, kNone);
  }
}

// tile = masked scores, from qt = scale * q^T [head_dim, kT].
void Scores(const AttentionShape& shape, const AttentionHead& head, const Tile& t, const float* qt,
            float* tile, float* slope) {
  const float* k = head.k + t.first * shape.k_row;
  ForEachKeys(head, t, [&](int64_t j, int64_t count, int64_t i) HWY_ATTR {
    small_matmul::Multiply(count, t.width() - i, shape.head_dim,
                           {k + j * shape.k_row, shape.k_row, 1}, qt + i, kT,
                           {tile + j * kT + i, kT, false});
  });
  if (shape.softcap > 0) ApplySoftcap(shape.softcap, t, tile, slope);
  if (head.mask != nullptr && shape.mask_is_bool) {
    ApplyMask(shape, static_cast<const uint8_t*>(head.mask), t, tile);
  } else if (head.mask != nullptr) {
    ApplyMask(shape, static_cast<const float*>(head.mask), t, tile);
  }
  ApplyCausality(shape, t, tile);
}

// tile = exp(tile - new maximum); max and sum [kT] move on; factor = exp(old - new maximum).
void Exponentials(const Tile& t, float* tile, float* max, float* sum, float* factor) {
  const D d;
  const V none = hn::Set(d, kNone), zero = hn::Zero(d);
  ForEachVector(t.width(), [&](int64_t i) HWY_ATTR {
    const int64_t keys = t.KeysOf(i);
    const V before = hn::LoadU(d, max + i);
    V top = before;
    for (int64_t j = 0; j < keys; ++j) top = hn::Max(hn::LoadU(d, tile + j * kT + i), top);
    // Where nothing was seen yet, scores are -inf too: any finite base keeps NaN away.
    const V base = hn::IfThenElse(hn::Eq(top, none), zero, top);
    const V f = ExpOfNegative(hn::Sub(before, base));
    V total = hn::Mul(f, hn::LoadU(d, sum + i));
    for (int64_t j = 0; j < keys; ++j) {
      const V p = ExpOfNegative(hn::Sub(hn::LoadU(d, tile + j * kT + i), base));
      hn::StoreU(p, d, tile + j * kT + i);
      total = hn::Add(total, p);
    }
    hn::StoreU(top, d, max + i);
    hn::StoreU(total, d, sum + i);
    hn::StoreU(f, d, factor + i);
  });
}

// Row r of y times factor[r].
void ScaleRows(const float* factor, int64_t rows, int64_t width, int64_t y_row, float* y) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t r = 0; r < rows; ++r) {
    if (factor[r] == 1) continue;
    const V f = hn::Set(d, factor[r]);
    float* row = y + r * y_row;
    int64_t c = 0;
    for (; c + lanes <= width; c += lanes)
      hn::StoreU(hn::Mul(f, hn::LoadU(d, row + c)), d, row + c);
    for (; c < width; ++c) row[c] *= factor[r];
  }
}

void FinishRows(const AttentionShape& shape, int64_t rows, const float* max, float* sum, float* y,
                float* logsumexp) {
  for (int64_t r = 0; r < rows; ++r) {
    const float base = max[r] == kNone ? 0 : max[r];
    logsumexp[r] = base + std::log(sum[r]);
    sum[r] = sum[r] == 0 ? 1 : 1 / sum[r];
  }
  ScaleRows(sum, rows, shape.value_dim, shape.y_row, y);
}

void ClearRows(int64_t rows, int64_t width, int64_t row, float* x) {
  for (int64_t r = 0; r < rows; ++r) std::fill_n(x + r * row, width, 0.0F);
}

void Forward(const AttentionShape& shape, const AttentionHead& head, int64_t begin, int64_t end,
             float* y, float* logsumexp, float* scratch) {
  float* qt = scratch;                     // [head_dim, kT]
  float* tile = qt + shape.head_dim * kT;  // [kTileKeys, kT]
  float *max = tile + kTileKeys * kT, *sum = max + kT, *factor = sum + kT;
  float* values = factor + kT;  // [kTileKeys, value_dim]
  const int64_t rows = end - begin, keys = shape.VisibleKeys(end), width = shape.value_dim;
  float* out = y + begin * shape.y_row;
  Transpose(head.q + begin * shape.q_row, shape.q_row, rows, shape.head_dim, shape.scale, qt);
  std::fill_n(max, kT, kNone);
  std::fill_n(sum, kT, 0.0F);
  if (keys == 0) ClearRows(rows, width, shape.y_row, out);
  for (int64_t first = 0; first < keys; first += kTileKeys) {
    const Tile t = TileAt(shape, begin, end, first, std::min(first + kTileKeys, keys));
    Scores(shape, head, t, qt, tile, nullptr);
    Exponentials(t, tile, max, sum, factor);
    if (first > 0) ScaleRows(factor, rows, width, shape.y_row, out);
    const float* v = Contiguous(head.v + first * shape.v_row, shape.v_row, t.keys(), width, values);
    ForEachQueries(head, t, [&](int64_t i, int64_t count, int64_t seen) HWY_ATTR {
      small_matmul::Multiply(count, width, seen, {tile + i, 1, kT}, v, width,
                             {out + i * shape.y_row, shape.y_row, first > 0});
    });
  }
  FinishRows(shape, rows, max, sum, out, logsumexp + begin);
}

// The buffers of a block of queries in the backward pass.
struct Block {
  float *qt, *dyt;           // [head_dim, kT] with the scale, [value_dim, kT]
  float *p, *ds, *slope;     // [kTileKeys, kT]
  float *logsumexp, *delta;  // [kT]
  float* k_copy;             // [kTileKeys, head_dim]
  float *q_copy, *dy_copy;   // [kT, head_dim], [kT, value_dim]
  const float *q, *dy;       // the block's rows, contiguous: copies, or in place
};

Block SplitScratch(const AttentionShape& shape, float* scratch) {
  Block b{};
  b.qt = scratch;
  b.dyt = b.qt + shape.head_dim * kT;
  b.p = b.dyt + shape.value_dim * kT;
  b.ds = b.p + kTileKeys * kT;
  b.slope = b.ds + kTileKeys * kT;
  b.logsumexp = b.slope + kTileKeys * kT;
  b.delta = b.logsumexp + kT;
  b.k_copy = b.delta + kT;
  b.q_copy = b.k_copy + kTileKeys * shape.head_dim;
  b.dy_copy = b.q_copy + kT * shape.head_dim;
  return b;
}

float Dot(const float* x, const float* y, int64_t count) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    sum = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum);
  float dot = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; i < count; ++i) dot += x[i] * y[i];
  return dot;
}

// delta = sum(dy * y) - dlogsumexp; a query that saw nothing gets p = exp(-inf - inf) = 0.
void FillRows(const AttentionShape& shape, const AttentionGrads& g, int64_t begin, int64_t end,
              const Block& b) {
  std::fill_n(b.logsumexp, kT, 0.0F);
  std::fill_n(b.delta, kT, 0.0F);
  for (int64_t r = begin; r < end; ++r) {
    const float dot =
        Dot(g.y + r * shape.y_row, b.dy + (r - begin) * shape.value_dim, shape.value_dim);
    b.delta[r - begin] = g.dlogsumexp == nullptr ? dot : dot - g.dlogsumexp[r];
    b.logsumexp[r - begin] = g.logsumexp[r] == kNone ? -kNone : g.logsumexp[r];
  }
}

// p = exp(score - logsumexp); ds = scale * slope * p * (dp - delta), where ds holds dp.
void ScoreGradients(const AttentionShape& shape, const Tile& t, const Block& b) {
  const D d;
  const V scale = hn::Set(d, shape.scale);
  const bool capped = shape.softcap > 0;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t j = 0; j < t.keys(); ++j) {
    for (int64_t i = t.FirstQuery(j); i < t.width(); i += lanes) {
      const int64_t at = j * kT + i;
      const V p = ExpOfNegative(hn::Sub(hn::LoadU(d, b.p + at), hn::LoadU(d, b.logsumexp + i)));
      V ds = hn::Mul(p, hn::Sub(hn::LoadU(d, b.ds + at), hn::LoadU(d, b.delta + i)));
      ds = hn::Mul(ds, scale);
      if (capped) ds = hn::Mul(ds, hn::LoadU(d, b.slope + at));
      hn::StoreU(p, d, b.p + at);
      hn::StoreU(ds, d, b.ds + at);
    }
  }
}

void BackwardTile(const AttentionShape& shape, const AttentionHead& head, const AttentionGrads& g,
                  const Tile& t, bool add_dq, const Block& b) {
  const int64_t dims = shape.head_dim, values = shape.value_dim;
  Scores(shape, head, t, b.qt, b.p, b.slope);
  // dp = v dy^T
  ForEachKeys(head, t, [&](int64_t j, int64_t count, int64_t i) HWY_ATTR {
    small_matmul::Multiply(count, t.width() - i, values,
                           {head.v + (t.first + j) * shape.v_row, shape.v_row, 1}, b.dyt + i, kT,
                           {b.ds + j * kT + i, kT, false});
  });
  ScoreGradients(shape, t, b);
  // dv += p dy;  dk += ds q;  dq += ds^T k
  ForEachKeys(head, t, [&](int64_t j, int64_t count, int64_t i) HWY_ATTR {
    const int64_t queries = t.rows() - i;
    if (queries <= 0) return;
    small_matmul::Multiply(count, values, queries, {b.p + j * kT + i, kT, 1}, b.dy + i * values,
                           values, {g.dv + (t.first + j) * shape.v_row, shape.v_row, true});
    small_matmul::Multiply(count, dims, queries, {b.ds + j * kT + i, kT, 1}, b.q + i * dims, dims,
                           {g.dk + (t.first + j) * shape.k_row, shape.k_row, true});
  });
  const float* k =
      Contiguous(head.k + t.first * shape.k_row, shape.k_row, t.keys(), dims, b.k_copy);
  ForEachQueries(head, t, [&](int64_t i, int64_t count, int64_t seen) HWY_ATTR {
    small_matmul::Multiply(count, dims, seen, {b.ds + i, 1, kT}, k, dims,
                           {g.dq + (t.begin + i) * g.dq_row, g.dq_row, add_dq});
  });
}

void Backward(const AttentionShape& shape, const AttentionHead& head, const AttentionGrads& g,
              int64_t first_key, int64_t last_key, float* scratch) {
  Block b = SplitScratch(shape, scratch);
  for (int64_t begin = 0; begin < shape.queries; begin += kT) {
    const int64_t end = std::min(begin + kT, shape.queries), rows = end - begin;
    const int64_t keys = std::min(shape.VisibleKeys(end), last_key);
    if (keys <= first_key) {
      ClearRows(rows, shape.head_dim, g.dq_row, g.dq + begin * g.dq_row);
      continue;
    }
    const float *q = head.q + begin * shape.q_row, *dy = g.dy + begin * shape.y_row;
    b.q = Contiguous(q, shape.q_row, rows, shape.head_dim, b.q_copy);
    b.dy = Contiguous(dy, shape.y_row, rows, shape.value_dim, b.dy_copy);
    Transpose(b.q, shape.head_dim, rows, shape.head_dim, shape.scale, b.qt);
    Transpose(b.dy, shape.value_dim, rows, shape.value_dim, 1, b.dyt);
    FillRows(shape, g, begin, end, b);
    for (int64_t first = first_key; first < keys; first += kTileKeys) {
      const Tile t = TileAt(shape, begin, end, first, std::min(first + kTileKeys, keys));
      BackwardTile(shape, head, g, t, first > first_key, b);
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Forward);
HWY_EXPORT(Backward);
HWY_EXPORT(Copy);

namespace {

// Runs of 16 keys in all tiles of a head; there are as many of queries.
int64_t Runs(const AttentionShape& shape) {
  constexpr int64_t kMostRun = 16;
  int64_t keys = 0;
  for (int64_t end = kTileQueries; end <= shape.queries; end += kTileQueries)
    keys += shape.VisibleKeys(end);
  return keys / kMostRun;
}

}  // namespace

int64_t AttentionShape::VisibleKeys(int64_t query_end) const {
  return causal ? std::clamp<int64_t>(query_end + causal_offset, 0, keys) : keys;
}

// Runs of 16 rows at most, in two products of a tile and in four.
int64_t AttentionShape::ForwardFetches() const { return 2 * Runs(*this); }
int64_t AttentionShape::BackwardFetches() const { return 4 * Runs(*this); }

int64_t AttentionShape::ForwardScratch() const {
  return (head_dim + kTileKeys + 3) * kTileQueries + kTileKeys * value_dim;
}

int64_t AttentionShape::BackwardScratch() const {
  return (2 * head_dim + 2 * value_dim + 3 * kTileKeys + 2) * kTileQueries + kTileKeys * head_dim;
}

void AttentionForward(const AttentionShape& shape, const AttentionHead& head, int64_t begin,
                      int64_t end, float* y, float* logsumexp, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Forward)(shape, head, begin, end, y, logsumexp, scratch);
}

void AttentionBackward(const AttentionShape& shape, const AttentionHead& head,
                       const AttentionGrads& grads, int64_t begin, int64_t end, float* scratch) {
  HWY_DYNAMIC_DISPATCH(Backward)(shape, head, grads, begin, end, scratch);
}

void CopyRows(const float* from, int64_t from_row, int64_t rows, int64_t width, float* to,
              int64_t to_row) {
  HWY_DYNAMIC_DISPATCH(Copy)(from, from_row, rows, width, to, to_row);
}

}  // namespace ridge::cpu
#endif
