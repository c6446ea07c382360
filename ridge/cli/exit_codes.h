// Exit codes of `ridge`, for scripts.
//
// The numbers are stable; docs/errors/ explains each.
#pragma once
#include "ridge/core/status.h"

namespace ridge::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // NaN loss, disk full, `compare` found a difference, our bug
inline constexpr int kExitUsage = 2;
inline constexpr int kExitDoesNotFit = 3;
inline constexpr int kExitData = 4;   // data or checkpoint bad or missing
inline constexpr int kExitModel = 5;  // model invalid, unsupported or missing
inline constexpr int kExitDevice = 6;
inline constexpr int kExitQualityGate = 7;
inline constexpr int kExitLateRank = 74;  // a rank stopped or does not come: --resume goes on
inline constexpr int kExitStopped = 75;   // by a signal, checkpoint written: continue with --resume
inline constexpr int kExitInterrupted = 130;  // a second SIGINT

int ExitCodeFor(ErrorCode code);

}  // namespace ridge::cli
