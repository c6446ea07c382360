#include "ridge/backend/cuda/kernels/best_text.h"

namespace ridge::cuda {
namespace {

constexpr std::string_view kBestText = R"cuda(
struct Best {
  double value;
  i64 place;
};
RIDGE_FUNCTION Best Better(Best a, Best b) {
  if (a.value == b.value) return a.place < b.place ? a : b;
  return a.value > b.value ? a : b;
}
RIDGE_FUNCTION Best BlockBestOfWarp(Best own) {
  for (int distance = 16; distance > 0; distance >>= 1) {
    Best other;
    other.value = __shfl_xor_sync(0xffffffffu, own.value, distance);
    other.place = __shfl_xor_sync(0xffffffffu, own.place, distance);
    own = Better(own, other);
  }
  return own;
}
RIDGE_FUNCTION Best BlockBest(Best own, double* values, i64* places) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  own = BlockBestOfWarp(own);
  if (lane == 0) {
    values[warp] = own.value;
    places[warp] = own.place;
  }
  __syncthreads();
  own = {-1, 0x7fffffffffffffffll};
  if (lane < warps) own = {values[lane], places[lane]};
  own = BlockBestOfWarp(own);
  __syncthreads();
  return own;
}
)cuda";

}  // namespace

std::string_view BestText() { return kBestText; }

}  // namespace ridge::cuda
