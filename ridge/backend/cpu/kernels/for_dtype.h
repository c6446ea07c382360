// One kernel template for several dtypes: the C++ types of elements, and the choice among them.
#pragma once
#include <cstdint>
#include <vector>

#include "ridge/backend/cpu/kernel_def.h"
#include "ridge/core/dtype.h"

namespace ridge::cpu {

// 16-bit floats, as they are stored.
struct BF16 {
  uint16_t bits;
};
struct F16 {
  uint16_t bits;
};

// The element as a number that C++ computes with.
template <typename T>
T Number(T x) {
  return x;
}
inline float Number(BF16 x) { return BF16ToFloat(x.bits); }
inline float Number(F16 x) { return F16ToFloat(x.bits); }

template <DType dtype>
struct Element {
  static constexpr DType kDType = dtype;
};
template <typename T>
struct ElementOf;
template <>
struct ElementOf<double> : Element<DType::kF64> {};
template <>
struct ElementOf<float> : Element<DType::kF32> {};
template <>
struct ElementOf<F16> : Element<DType::kF16> {};
template <>
struct ElementOf<BF16> : Element<DType::kBF16> {};
template <>
struct ElementOf<int64_t> : Element<DType::kI64> {};
template <>
struct ElementOf<int32_t> : Element<DType::kI32> {};
template <>
struct ElementOf<int8_t> : Element<DType::kI8> {};
template <>
struct ElementOf<uint8_t> : Element<DType::kU8> {};

// The elements that a kernel is compiled for.
template <typename... T>
struct Elements {
  // For KernelDef::dtypes.
  static std::vector<DType> dtypes() { return {ElementOf<T>::kDType...}; }

  // f.template operator()<T>() for the T of `dtype`.  REQUIRES: it is one of them.
  template <typename F>
  static auto Call(DType dtype, const F& f) {
    decltype((f.template operator()<T>(), ...)) result{};
    ((ElementOf<T>::kDType == dtype ? void(result = f.template operator()<T>()) : void()), ...);
    return result;
  }
};
using Numbers = Elements<double, float, BF16, F16, int64_t, int32_t, int8_t, uint8_t>;
using Reals = Elements<float, double>;

// KernelDef::make for K<T>, where T is the element of input 0.
template <template <typename> typename K, typename E>
Result<std::unique_ptr<Kernel>> MakeOfElement(const CandidateQuery& q, const KernelChoice&) {
  return E::Call(q.call.inputs[0].dtype, [&]<typename T>() {
    return std::unique_ptr<Kernel>(std::make_unique<K<T>>(q.call, q.threads()));
  });
}

}  // namespace ridge::cpu
