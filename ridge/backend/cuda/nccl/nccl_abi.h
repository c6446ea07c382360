// NCCL's C interface, as far as it is used: types, values and functions.
//
// It stands here so that a build needs no CUDA.  tests/fake_cuda/header/nccl_abi_test.cc compares
// it with NVIDIA's nccl.h where that is installed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "ridge/backend/cuda/driver_abi.h"

namespace ridge::cuda {

// ncclResult_t.  Only those that the code or its tests tell apart.
enum class NcclCode : int {
  kSuccess = 0,
  kUnhandledCuda = 1,
  kSystem = 2,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
};

// ncclUniqueId: what the ranks of a group know each other by.
struct NcclId {
  char bytes[128];
};

inline constexpr int kNcclBytes = 1;  // ncclUint8

using NcclHandle = struct NcclOpaque*;  // ncclComm_t

// F(name, parameters), for each function that is used: nccl<name>.
#define RIDGE_NCCL_FUNCTIONS(F)                                                                  \
  F(GetVersion, (int* version))                                                                  \
  F(GetUniqueId, (NcclId * id))                                                                  \
  F(CommInitRank, (NcclHandle * group, int ranks, NcclId id, int rank))                          \
  F(CommDestroy, (NcclHandle group))                                                             \
  F(CommAbort, (NcclHandle group))                                                               \
  F(GroupStart, ())                                                                              \
  F(GroupEnd, ())                                                                                \
  F(Send,                                                                                        \
    (const void* from, size_t count, int type, int peer, NcclHandle group, StreamHandle stream)) \
  F(Recv, (void* to, size_t count, int type, int peer, NcclHandle group, StreamHandle stream))

// The functions of a library that was opened.
struct NcclTable {
#define RIDGE_NCCL_MEMBER(name, parameters) NcclCode(*name) parameters = nullptr;
  RIDGE_NCCL_FUNCTIONS(RIDGE_NCCL_MEMBER)
#undef RIDGE_NCCL_MEMBER
  const char* (*GetErrorString)(NcclCode code) = nullptr;
};

}  // namespace ridge::cuda
