// CUDA's language for the host's compiler: what kernels' texts may use, and how one is called.
//
// A thread of a block is a fiber of host_threads.h; __shared__ is memory that all of them see.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "host_block.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
#define RIDGE_KERNEL

using std::acos, std::acosh, std::asin, std::asinh, std::atan, std::atanh, std::ceil, std::copysign,
    std::cos, std::cosh, std::erf, std::exp, std::expm1, std::fabs, std::floor, std::fma, std::fmod,
    std::ldexp, std::lgamma, std::log, std::log1p, std::pow, std::rint, std::sin, std::sinh,
    std::sqrt, std::tan, std::tanh, std::trunc;

extern "C" const RidgeHostBlock* ridge_block;
#define threadIdx ridge_block->thread_index
#define blockIdx ridge_block->block_index
#define blockDim ridge_block->block_extent
#define gridDim ridge_block->grid_extent

inline void __syncthreads() { ridge_block->synchronize(); }

template <class T>
T ExchangeWithLane(unsigned mask, T value, int lane) {
  static_assert(sizeof(T) <= 8);
  unsigned long long word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = ridge_block->exchange(mask, word, lane);
  std::memcpy(&value, &word, sizeof value);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return ExchangeWithLane(mask, value, static_cast<int>(ridge_block->thread_index.x % 32) ^ lanes);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int lanes) {
  const int lane = static_cast<int>(ridge_block->thread_index.x % 32);
  return ExchangeWithLane(mask, value, lane + lanes < 32 ? lane + lanes : lane);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int lanes) {
  const int lane = static_cast<int>(ridge_block->thread_index.x % 32);
  return ExchangeWithLane(mask, value, lane >= lanes ? lane - lanes : lane);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return ExchangeWithLane(mask, value, lane);
}

inline unsigned __umulhi(unsigned a, unsigned b) {
  return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

// Arguments of kernels are addresses.
template <class... P, size_t... I>
void CallWith(void (*kernel)(P...), void* const* arguments, std::index_sequence<I...>) {
  kernel(static_cast<P>(arguments[I])...);
}
template <class... P>
void CallKernel(void (*kernel)(P...), void* const* arguments) {
  CallWith(kernel, arguments, std::index_sequence_for<P...>());
}
template <class... P>
constexpr int ParametersOf(void (*)(P...)) {
  return sizeof...(P);
}
