// RealFft: the power spectrum of several signals at once, in f64.
//
// Of any length: radixes 4, 2, 3, 5 and any prime, the last in quadratic time of the prime.  A lane
// of a vector is a signal, so the bits of one do not depend on its neighbours; the last bits of the
// doubles depend on the instruction set (fused multiply-add or not).
//
// Source: Stockham's autosort form, in Van Loan, "Computational frameworks for the fast Fourier
// transform", SIAM 1992, 1.7.
#pragma once
#include <cstdint>
#include <vector>

namespace ridge {

inline constexpr int64_t kFftLanes = 8;  // signals at once

struct FftStage {
  int64_t radix = 0, rest = 0, stride = 0;  // length = radix rest stride
  int64_t twiddles = 0;                     // [rest, radix] pairs of cos and sin, from here
  int64_t roots = 0;                        // [radix] pairs, for radixes without a formula
};

// Thread-safe.
class RealFft {
 public:
  explicit RealFft(int64_t length);  // REQUIRES: length >= 2

  int64_t length() const { return length_; }
  int64_t bins() const { return length_ / 2 + 1; }
  int64_t bytes() const { return static_cast<int64_t>(twiddles_.size() * sizeof(double)); }
  int64_t scratch_doubles() const { return 4 * complex_ * kFftLanes; }

  // `signals`: [length, kFftLanes]; `power`: [bins, kFftLanes], |X|^2.
  void Power(const double* signals, double* scratch, double* power) const;

 private:
  int64_t length_;
  int64_t complex_;  // of the complex transform: half of an even length
  std::vector<FftStage> stages_;
  std::vector<double> twiddles_;
  int64_t split_ = 0;  // of an even length: the roots that part even from odd samples
};

}  // namespace ridge
