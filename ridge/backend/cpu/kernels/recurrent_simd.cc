// Rows of recurrent steps; the formulas are those of ops/shared/recurrent_cells.cc.
#include <cstring>

#include "ridge/backend/cpu/kernels/recurrent_rows.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/recurrent_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "ridge/backend/cpu/kernels/simd_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {

// `count` lanes of a row; the others are 0 and are not written.
struct PartLanes {
  size_t count;

  HWY_INLINE V Load(const float* x) const {
    const D d;
    if (count == hn::Lanes(d)) return hn::LoadU(d, x);
    alignas(64) float lanes[16] = {};
    std::memcpy(lanes, x, count * sizeof(float));
    return hn::Load(d, lanes);
  }
  HWY_INLINE V LoadOrZero(const float* x, int64_t k) const {
    return x == nullptr ? hn::Zero(D()) : Load(x + k);
  }
  HWY_INLINE void Store(V v, float* x) const {
    const D d;
    if (count == hn::Lanes(d)) return hn::StoreU(v, d, x);
    alignas(64) float lanes[16];
    hn::Store(v, d, lanes);
    std::memcpy(x, lanes, count * sizeof(float));
  }
};

// Calls f(k, lanes) for whole vectors, then once for the rest.
template <class F>
HWY_INLINE void ForEachVector(int64_t width, const F& f) {
  const auto step = static_cast<int64_t>(hn::Lanes(D()));
  int64_t k = 0;
  for (; k + step <= width; k += step) f(k, PartLanes{static_cast<size_t>(step)});
  if (k < width) f(k, PartLanes{static_cast<size_t>(width - k)});
}

HWY_INLINE V OneMinus(V x) { return hn::Sub(K(1.0F), x); }

void Lstm(const LstmBlocks& at, const float* projected, const float* inner, const float* c,
          float* activated, float* cell, float* y) {
  ForEachVector(at.hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const auto sum = [&](int64_t block) HWY_ATTR {
      return hn::Add(l.Load(projected + block), l.Load(inner + block));
    };
    const V i = Sigmoid(sum(at.i + k)), f = Sigmoid(sum(at.f + k)), o = Sigmoid(sum(at.o + k));
    const V g = SafeTanh(sum(at.g + k));
    const V now = hn::MulAdd(f, l.Load(c + k), hn::Mul(i, g));
    l.Store(i, activated + at.i + k);
    l.Store(f, activated + at.f + k);
    l.Store(g, activated + at.g + k);
    l.Store(o, activated + at.o + k);
    l.Store(now, cell + k);
    l.Store(hn::Mul(o, SafeTanh(now)), y + k);
  });
}

void LstmGrad(const LstmBlocks& at, const LstmGradRowArgs& row) {
  ForEachVector(at.hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const float* a = row.activated + k;
    const V i = l.Load(a + at.i), f = l.Load(a + at.f), g = l.Load(a + at.g), o = l.Load(a + at.o);
    const V t = SafeTanh(l.Load(row.cell + k));
    const V dh = hn::Add(l.Load(row.dy + k), l.LoadOrZero(row.handed, k));
    V dc = hn::Add(l.Load(row.dc + k), l.LoadOrZero(row.dcell, k));
    dc = hn::MulAdd(hn::Mul(dh, o), hn::NegMulAdd(t, t, K(1.0F)), dc);
    float* d = row.d + k;
    l.Store(hn::Mul(hn::Mul(dh, t), hn::Mul(o, OneMinus(o))), d + at.o);
    l.Store(hn::Mul(hn::Mul(dc, g), hn::Mul(i, OneMinus(i))), d + at.i);
    l.Store(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, K(1.0F))), d + at.g);
    l.Store(hn::Mul(hn::Mul(dc, l.Load(row.before + k)), hn::Mul(f, OneMinus(f))), d + at.f);
    l.Store(hn::Mul(dc, f), row.dc + k);
  });
}

void Gru(const GruBlocks& at, const float* projected, const float* inner, const float* bias,
         const float* before, float* activated, float* y) {
  const int64_t hidden = at.hidden;
  ForEachVector(hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const V r = Sigmoid(hn::Add(l.Load(projected + at.r + k), l.Load(inner + at.r + k)));
    const V z = Sigmoid(hn::Add(l.Load(projected + at.z + k), l.Load(inner + at.z + k)));
    const V q = hn::Add(l.Load(inner + at.n + k), l.LoadOrZero(bias, k));
    const V n = SafeTanh(hn::MulAdd(r, q, l.Load(projected + at.n + k)));
    l.Store(r, activated + k);
    l.Store(z, activated + hidden + k);
    l.Store(n, activated + 2 * hidden + k);
    l.Store(q, activated + 3 * hidden + k);
    l.Store(hn::MulAdd(z, hn::Sub(l.Load(before + k), n), n), y + k);
  });
}

void GruGrad(const GruBlocks& at, const GruGradRowArgs& row) {
  const int64_t hidden = at.hidden;
  ForEachVector(hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const float* a = row.activated + k;
    const V r = l.Load(a), z = l.Load(a + hidden), n = l.Load(a + 2 * hidden),
            q = l.Load(a + 3 * hidden);
    const V handed = hn::Add(l.Load(row.handed + k), l.Load(row.direct + k));
    const V dh = hn::Add(l.Load(row.dy + k), handed);
    const V dn = hn::Mul(hn::Mul(dh, OneMinus(z)), hn::NegMulAdd(n, n, K(1.0F)));
    const V dz = hn::Mul(hn::Mul(dh, hn::Sub(l.Load(row.before + k), n)), hn::Mul(z, OneMinus(z)));
    const V dr = hn::Mul(hn::Mul(dn, q), hn::Mul(r, OneMinus(r)));
    l.Store(dr, row.dprojected + at.r + k);
    l.Store(dz, row.dprojected + at.z + k);
    l.Store(dn, row.dprojected + at.n + k);
    l.Store(dr, row.dinner + at.r + k);
    l.Store(dz, row.dinner + at.z + k);
    l.Store(hn::Mul(dn, r), row.dinner + at.n + k);
    l.Store(hn::Mul(dh, z), row.direct + k);
  });
}

void Rnn(int64_t hidden, bool relu, const float* projected, const float* inner, float* y) {
  ForEachVector(hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const V sum = hn::Add(l.Load(projected + k), l.Load(inner + k));
    l.Store(relu ? hn::Max(hn::Zero(D()), sum) : SafeTanh(sum), y + k);
  });
}

void RnnGrad(int64_t hidden, bool relu, const float* y, const float* dy, const float* handed,
             float* d) {
  ForEachVector(hidden, [&](int64_t k, PartLanes l) HWY_ATTR {
    const V out = l.Load(y + k), dh = hn::Add(l.Load(dy + k), l.LoadOrZero(handed, k));
    const V slope = hn::Mul(dh, hn::NegMulAdd(out, out, K(1.0F)));
    l.Store(relu ? hn::IfThenElseZero(hn::Gt(out, hn::Zero(D())), dh) : slope, d + k);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(Lstm);
HWY_EXPORT(LstmGrad);
HWY_EXPORT(Gru);
HWY_EXPORT(GruGrad);
HWY_EXPORT(Rnn);
HWY_EXPORT(RnnGrad);

void LstmRow(const LstmBlocks& at, const float* projected, const float* inner, const float* c,
             float* activated, float* cell, float* y) {
  HWY_DYNAMIC_DISPATCH(Lstm)(at, projected, inner, c, activated, cell, y);
}
void LstmGradRow(const LstmBlocks& at, const LstmGradRowArgs& row) {
  HWY_DYNAMIC_DISPATCH(LstmGrad)(at, row);
}
void GruRow(const GruBlocks& at, const float* projected, const float* inner, const float* bias,
            const float* before, float* activated, float* y) {
  HWY_DYNAMIC_DISPATCH(Gru)(at, projected, inner, bias, before, activated, y);
}
void GruGradRow(const GruBlocks& at, const GruGradRowArgs& row) {
  HWY_DYNAMIC_DISPATCH(GruGrad)(at, row);
}
void RnnRow(int64_t hidden, bool relu, const float* projected, const float* inner, float* y) {
  HWY_DYNAMIC_DISPATCH(Rnn)(hidden, relu, projected, inner, y);
}
void RnnGradRow(int64_t hidden, bool relu, const float* y, const float* dy, const float* handed,
                float* d) {
  HWY_DYNAMIC_DISPATCH(RnnGrad)(hidden, relu, y, dy, handed, d);
}

}  // namespace ridge::cpu
#endif
