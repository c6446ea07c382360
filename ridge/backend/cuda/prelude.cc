// The text in front of every kernel.
#include "ridge/backend/cuda/kernel_text.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kPrelude = R"cuda(
#ifndef RIDGE_KERNEL
#define RIDGE_KERNEL extern "C" __global__
#endif
#define RIDGE_FUNCTION __device__ __forceinline__

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct BF16 { u16 bits; };
struct F16 { u16 bits; };
struct Bool { u8 bits; };

// Elements of a thread's first iteration, and its distance to the next.
RIDGE_FUNCTION i64 Thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
RIDGE_FUNCTION i64 Threads() { return (i64)gridDim.x * blockDim.x; }

template <class R> RIDGE_FUNCTION bool IsNan(R x) { return x != x; }
template <class R> RIDGE_FUNCTION R Infinity() { return (R)__uint_as_float(0x7f800000u); }
template <class R> RIDGE_FUNCTION R NotANumber() { return (R)__uint_as_float(0x7fc00000u); }
// NaN if either is.
template <class R> RIDGE_FUNCTION R Larger(R a, R b) { return IsNan(a) || a > b ? a : b; }
template <class R> RIDGE_FUNCTION R Smaller(R a, R b) { return IsNan(a) || a < b ? a : b; }
template <class R> RIDGE_FUNCTION R Limited(R x, R low, R high) {
  return x < low ? low : x > high ? high : x;
}

// Whole where the exact result is: a GPU's pow(3, 1) may be the number below 3.
template <class R> RIDGE_FUNCTION R Power(R a, R b) {
  const R y = pow(a, b);
  return b >= R(0) && b == rint(b) && a == rint(a) ? rint(y) : y;
}

// Conversions of 16 bits: to nearest even; NaN stays NaN.
RIDGE_FUNCTION float FromBF16(u16 bits) { return __uint_as_float((u32)bits << 16); }
#ifdef __CUDA_ARCH__
RIDGE_FUNCTION u16 ToBF16(float x) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
RIDGE_FUNCTION float FromF16(u16 bits) {
  float x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
  return x;
}
RIDGE_FUNCTION u16 ToF16(float x) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return bits;
}
#else
RIDGE_FUNCTION u16 ToBF16(float x) {
  const u32 u = __float_as_uint(x);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (u16)((u >> 16) | 0x40u);
  return (u16)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
RIDGE_FUNCTION float FromF16(u16 bits) {
  const u32 sign = (u32)(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  const float scaled = __uint_as_float(magnitude << 13) * __uint_as_float(0x77800000u);  // 2^112
  return __uint_as_float(sign | __float_as_uint(scaled));
}
RIDGE_FUNCTION u16 ToF16(float x) {
  const u32 u = __float_as_uint(x), sign = (u >> 16) & 0x8000u, magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (u16)(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return (u16)(sign | 0x7c00u);  // rounds to 2^16 or more
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    const float steps = __uint_as_float(magnitude) + __uint_as_float(0x3f000000u);  // + 1/2
    return (u16)(sign | (__float_as_uint(steps) - 0x3f000000u));
  }
  return (u16)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
}
#endif

// Numbers of each type of storage, exact but for 64-bit integers beyond 2^53.
RIDGE_FUNCTION double Load(const double* p, i64 i) { return p[i]; }
RIDGE_FUNCTION float Load(const float* p, i64 i) { return p[i]; }
RIDGE_FUNCTION float Load(const BF16* p, i64 i) { return FromBF16(p[i].bits); }
RIDGE_FUNCTION float Load(const F16* p, i64 i) { return FromF16(p[i].bits); }
RIDGE_FUNCTION float Load(const Bool* p, i64 i) { return (float)(p[i].bits != 0); }
RIDGE_FUNCTION float Load(const u8* p, i64 i) { return (float)p[i]; }
RIDGE_FUNCTION float Load(const i8* p, i64 i) { return (float)p[i]; }
RIDGE_FUNCTION double Load(const i16* p, i64 i) { return (double)p[i]; }
RIDGE_FUNCTION double Load(const u16* p, i64 i) { return (double)p[i]; }
RIDGE_FUNCTION double Load(const int* p, i64 i) { return (double)p[i]; }
RIDGE_FUNCTION double Load(const u32* p, i64 i) { return (double)p[i]; }
RIDGE_FUNCTION double Load(const i64* p, i64 i) { return (double)p[i]; }
RIDGE_FUNCTION double Load(const u64* p, i64 i) { return (double)p[i]; }

// Floats round to nearest even; integers truncate toward zero and saturate, NaN becomes 0.
RIDGE_FUNCTION double Whole(double x, double low, double high) {
  return IsNan(x) ? 0.0 : Limited(trunc(x), low, high);
}
template <class R> RIDGE_FUNCTION void Store(double* p, i64 i, R x) { p[i] = (double)x; }
template <class R> RIDGE_FUNCTION void Store(float* p, i64 i, R x) { p[i] = (float)x; }
template <class R> RIDGE_FUNCTION void Store(BF16* p, i64 i, R x) { p[i].bits = ToBF16((float)x); }
template <class R> RIDGE_FUNCTION void Store(F16* p, i64 i, R x) { p[i].bits = ToF16((float)x); }
template <class R> RIDGE_FUNCTION void Store(Bool* p, i64 i, R x) { p[i].bits = x != R(0); }
template <class R> RIDGE_FUNCTION void Store(u8* p, i64 i, R x) { p[i] = (u8)Whole(x, 0, 255); }
template <class R> RIDGE_FUNCTION void Store(i8* p, i64 i, R x) { p[i] = (i8)Whole(x, -128, 127); }
template <class R> RIDGE_FUNCTION void Store(i16* p, i64 i, R x) {
  p[i] = (i16)Whole(x, -32768, 32767);
}
template <class R> RIDGE_FUNCTION void Store(u16* p, i64 i, R x) { p[i] = (u16)Whole(x, 0, 65535); }
template <class R> RIDGE_FUNCTION void Store(int* p, i64 i, R x) {
  p[i] = (int)Whole(x, -2147483648.0, 2147483647.0);
}
template <class R> RIDGE_FUNCTION void Store(u32* p, i64 i, R x) {
  p[i] = (u32)Whole(x, 0, 4294967295.0);
}
template <class R> RIDGE_FUNCTION void Store(i64* p, i64 i, R x) {
  p[i] = (double)x >= 9223372036854775808.0 ? 0x7fffffffffffffffll
                                            : (i64)Whole(x, -9223372036854775808.0, 9.3e18);
}
template <class R> RIDGE_FUNCTION void Store(u64* p, i64 i, R x) {
  p[i] = (double)x >= 18446744073709551616.0 ? 0xffffffffffffffffull : (u64)Whole(x, 0, 1.9e19);
}

// x as a T holds it.
template <class T, class R> RIDGE_FUNCTION R As(R x) {
  T stored;
  Store(&stored, 0, x);
  return (R)Load(&stored, 0);
}

// N neighbours, moved at once.
template <class T, int N> struct alignas(sizeof(T) * N) Pack {
  T at[N];
};
template <int N, class T> RIDGE_FUNCTION Pack<T, N> LoadPack(const T* p, i64 group) {
  return ((const Pack<T, N>*)p)[group];
}
template <int N, class T> RIDGE_FUNCTION void StorePack(T* p, i64 group, Pack<T, N> pack) {
  ((Pack<T, N>*)p)[group] = pack;
}

// The numbers of ridge/core/random.h.
RIDGE_FUNCTION void Philox(u32 key0, u32 key1, u32 (&words)[4]) {
  for (int round = 0; round < 10; ++round) {
    const u32 high0 = __umulhi(0xD2511F53u, words[0]), low0 = 0xD2511F53u * words[0];
    const u32 high1 = __umulhi(0xCD9E8D57u, words[2]), low1 = 0xCD9E8D57u * words[2];
    words[0] = high1 ^ words[1] ^ key0;
    words[1] = low1;
    words[2] = high0 ^ words[3] ^ key1;
    words[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

// Over all threads of a block, in one order; every thread gets the result.  All threads call it.
// `scratch` holds 32 numbers of shared memory, and is free again when it returns.
template <class R, class F> RIDGE_FUNCTION R BlockFold(R x, R empty, R* scratch, F fold) {
  for (int distance = 16; distance > 0; distance >>= 1)
    x = fold(x, __shfl_xor_sync(0xffffffffu, x, distance));
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
  if (warps == 1) return x;
  if (lane == 0) scratch[warp] = x;
  __syncthreads();
  x = lane < warps ? scratch[lane] : empty;
  for (int distance = 16; distance > 0; distance >>= 1)
    x = fold(x, __shfl_xor_sync(0xffffffffu, x, distance));
  __syncthreads();
  return x;
}
struct Sum {
  template <class R> RIDGE_FUNCTION R operator()(R a, R b) const { return a + b; }
};
struct Largest {
  template <class R> RIDGE_FUNCTION R operator()(R a, R b) const { return Larger(a, b); }
};
// Over a warp.
template <class R> RIDGE_FUNCTION R WarpSum(R x) {
  for (int distance = 16; distance > 0; distance >>= 1)
    x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}
template <class R> RIDGE_FUNCTION R BlockSum(R x, R* scratch) {
  return BlockFold(x, R(0), scratch, Sum());
}
template <class R> RIDGE_FUNCTION R BlockMax(R x, R* scratch) {
  return BlockFold(x, -Infinity<R>(), scratch, Largest());
}
)cuda";

}  // namespace

std::string_view Prelude() { return kPrelude; }

}  // namespace ridge::cuda
