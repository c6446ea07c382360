// Measures this machine for the planner with the kernels of the CPU backend.
//
// Every buffer holds random numbers: lines of zeros are written faster than memory allows.
// Rates are the best of several rounds, since other processes only slow a round down.  If they did
// (Steadiness), rates are remeasured by one thread and its CPU time, times the number of threads.
#pragma once
#include <string>

#include "ridge/backend/backend.h"

namespace ridge {

// "cpu-AuthenticAMD-25-17-2": vendor, family, model, threads; "...-2-avx2" where ONEDNN_MAX_CPU_ISA
// restricts the instruction set.
std::string CpuProfileId(int threads);

// Full: a few seconds.  Quick: under 0.2 s, fewer sizes and rounds.
// REQUIRES: `backend` is a CPU backend; no other work of this process runs meanwhile.
Result<DeviceProfile> MeasureCpu(Backend& backend, bool quick);

// Best of 20 matmuls 2048^3 of f32, bf16, or i8 (u8 times i8) by the vendor library; 0 when it has
// no kernel for the dtype.
double BestMatmulFlops(int threads, DType dtype = DType::kF32);

// Best triad a = b + s * c over three arrays of in total four times the last-level cache.
double BestTriadBytesPerS(int threads);

}  // namespace ridge
