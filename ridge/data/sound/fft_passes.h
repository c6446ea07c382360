// The passes of RealFft, in the widest vectors that the machine has.
#pragma once
#include "ridge/data/sound/fft.h"

namespace ridge {

// Numbers are pairs of rows of kFftLanes: real parts, then imaginary ones.
struct FftCall {
  const std::vector<FftStage>* stages;
  const double* twiddles;
  int64_t complex;  // numbers
  int64_t length;   // of the signal
  const double* split;
};

void RunFft(const FftCall& call, const double* signals, double* scratch, double* power);

}  // namespace ridge
