// A library of CUDA 13.0 that has lost all but two functions.
#include "ridge/backend/cuda/driver_abi.h"

using ridge::cuda::DriverCode;

extern "C" {
DriverCode cuInit(unsigned int) { return DriverCode::kSuccess; }
DriverCode cuDriverGetVersion(int* version) {
  *version = 13000;
  return DriverCode::kSuccess;
}
}
