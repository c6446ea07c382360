// Each sum adds its entries in the order of the table, whatever the vector length.
#include <algorithm>

#include "ridge/backend/cpu/kernels/interpolate_rows.h"
#include "ridge/core/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ridge/backend/cpu/kernels/interpolate_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ridge::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
HWY_INLINE void WideRow(const RowTable<T>& table, int64_t o, int64_t width, const T* x, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t begin = table.starts[static_cast<size_t>(o)],
                end = table.starts[static_cast<size_t>(o) + 1];
  const int32_t* places = table.places.data();
  const T* weights = table.weights.data();
  int64_t i = 0;
  for (; i + lanes <= width; i += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = begin; k < end; ++k)
      sum = hn::MulAdd(hn::Set(d, weights[k]), hn::LoadU(d, x + places[k] * width + i), sum);
    hn::StoreU(sum, d, y + i);
  }
  for (; i < width; ++i) {
    T sum = 0;
    for (int64_t k = begin; k < end; ++k) sum += weights[k] * x[places[k] * width + i];
    y[i] = sum;
  }
}

// kRun rows whose entries are interleaved.
template <typename T>
HWY_INLINE void NarrowRun(const RowTable<T>& table, const typename RowTable<T>::Run& run,
                          const T* x, T* y) {
  const hn::CappedTag<T, RowTable<T>::kRun> d;
  const hn::Rebind<int32_t, decltype(d)> d32;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t lane = 0; lane < RowTable<T>::kRun; lane += lanes) {
    auto sum = hn::Zero(d);
    for (int64_t k = 0; k < run.entries; ++k) {
      const int64_t at = run.first + k * RowTable<T>::kRun + lane;
      const auto narrow = hn::LoadU(d32, table.run_places.data() + at);
      if constexpr (sizeof(T) == 8) {
        const auto index = hn::PromoteTo(di, narrow);
        sum = hn::MulAdd(hn::LoadU(d, table.run_weights.data() + at), hn::GatherIndex(d, x, index),
                         sum);
      } else {
        sum = hn::MulAdd(hn::LoadU(d, table.run_weights.data() + at), hn::GatherIndex(d, x, narrow),
                         sum);
      }
    }
    hn::StoreU(sum, d, y + lane);
  }
}

template <typename T>
HWY_INLINE void NarrowRows(const RowTable<T>& table, const T* x, T* y) {
  for (size_t r = 0; r < table.runs.size(); ++r) {
    const int64_t first = static_cast<int64_t>(r) * RowTable<T>::kRun;
    if (table.runs[r].entries >= 0) {
      NarrowRun(table, table.runs[r], x, y + first);
      continue;
    }
    const int64_t last = std::min(first + RowTable<T>::kRun, table.rows());
    for (int64_t o = first; o < last; ++o) WideRow(table, o, 1, x, y + o);
  }
}

void WideF32(const RowTable<float>& t, int64_t o, int64_t width, const float* x, float* y) {
  WideRow(t, o, width, x, y);
}
void WideF64(const RowTable<double>& t, int64_t o, int64_t width, const double* x, double* y) {
  WideRow(t, o, width, x, y);
}
void NarrowF32(const RowTable<float>& t, const float* x, float* y) { NarrowRows(t, x, y); }
void NarrowF64(const RowTable<double>& t, const double* x, double* y) { NarrowRows(t, x, y); }

}  // namespace HWY_NAMESPACE
}  // namespace ridge::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridge::cpu {

HWY_EXPORT(WideF32);
HWY_EXPORT(WideF64);
HWY_EXPORT(NarrowF32);
HWY_EXPORT(NarrowF64);

void SumWideRow(const RowTable<float>& table, int64_t o, int64_t width, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(WideF32)(table, o, width, x, y);
}
void SumWideRow(const RowTable<double>& table, int64_t o, int64_t width, const double* x,
                double* y) {
  HWY_DYNAMIC_DISPATCH(WideF64)(table, o, width, x, y);
}
void SumNarrowRows(const RowTable<float>& table, const float* x, float* y) {
  HWY_DYNAMIC_DISPATCH(NarrowF32)(table, x, y);
}
void SumNarrowRows(const RowTable<double>& table, const double* x, double* y) {
  HWY_DYNAMIC_DISPATCH(NarrowF64)(table, x, y);
}

template <typename T>
void RowTable<T>::MakeRuns() {
  for (int64_t first = 0; first < rows(); first += kRun) {
    Run run{.first = static_cast<int64_t>(run_places.size()), .entries = -1};
    const int64_t length =
        starts[static_cast<size_t>(first) + 1] - starts[static_cast<size_t>(first)];
    bool even = first + kRun <= rows();
    for (int64_t o = first; even && o < first + kRun; ++o)
      even = starts[static_cast<size_t>(o) + 1] - starts[static_cast<size_t>(o)] == length;
    if (even) {
      run.entries = length;
      for (int64_t k = 0; k < length; ++k) {
        for (int64_t o = first; o < first + kRun; ++o) {
          const auto at = static_cast<size_t>(starts[static_cast<size_t>(o)] + k);
          run_places.push_back(places[at]);
          run_weights.push_back(weights[at]);
        }
      }
    }
    runs.push_back(run);
  }
}

template struct RowTable<float>;
template struct RowTable<double>;

}  // namespace ridge::cpu
#endif
