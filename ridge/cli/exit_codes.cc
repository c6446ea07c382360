#include "ridge/cli/exit_codes.h"

namespace ridge::cli {

int ExitCodeFor(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return kExitOk;
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kOutOfMemory:
      return kExitDoesNotFit;
    case ErrorCode::kInvalidData:
      return kExitData;
    case ErrorCode::kInvalidModel:
    case ErrorCode::kUnsupported:
      return kExitModel;
    case ErrorCode::kDevice:
    case ErrorCode::kDeviceMemory:
      return kExitDevice;
    case ErrorCode::kQualityGate:
      return kExitQualityGate;
    case ErrorCode::kUnavailable:
    case ErrorCode::kFailed:
    case ErrorCode::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace ridge::cli
