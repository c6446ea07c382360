// Measures this machine for the planner, through the kernels of the CPU backend.
//
// Every buffer holds random numbers: lines of zeros are written faster than memory allows.
// Rates are the best of several rounds: other tenants of a shared machine only ever make us slower.
// Where they were seen at work (Steadiness), rates are taken anew by one thread and its processor
// seconds, times the number of threads.
#pragma once
#include <string>

#include "ridge/backend/backend.h"

namespace ridge {

// "cpu-AuthenticAMD-25-17-2": vendor, family, model, threads; "...-2-avx2" where ONEDNN_MAX_CPU_ISA
// keeps kernels from what the CPU can do.
std::string CpuProfileId(int threads);

// Full: a few seconds.  Quick: under 0.2 s, fewer sizes and rounds.
// REQUIRES: `backend` is a CPU backend.  Runs nothing else at the same time.
Result<DeviceProfile> MeasureCpu(Backend& backend, bool quick);

// Best of 20 matmuls 2048^3 of f32, bf16, or i8 (u8 times i8) by the vendor library; 0 when it has
// no kernel for the dtype.
double BestMatmulFlops(int threads, DType dtype = DType::kF32);

// Best triad a = b + s * c over three arrays that together are four times the last cache.
double BestTriadBytesPerS(int threads);

}  // namespace ridge
