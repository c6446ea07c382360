// Our declarations of NCCL against NVIDIA's.  Compiled where nccl.h is found.
#include "ridge/backend/cuda/nccl/nccl_abi.h"

#include <gtest/gtest.h>
#include <nccl.h>

#include "tests/fake_cuda/header/same_shape.h"

namespace ridge::cuda {
namespace {

// The id goes by value: its class has the same size, and neither is in a register.
template <typename A, typename B>
struct NcclSameKind {
  static constexpr bool value = SameKind<A, B>::value;
};
template <>
struct NcclSameKind<NcclId, ncclUniqueId> {
  static constexpr bool value = sizeof(NcclId) == sizeof(ncclUniqueId) &&
                                sizeof(NcclId) > 2 * sizeof(void*);
};

#define RIDGE_TEST_NCCL_SHAPE(name, parameters) \
  static_assert(kAlike<NcclSameKind, decltype(NcclTable::name), decltype(&::nccl##name)>, #name);
RIDGE_NCCL_FUNCTIONS(RIDGE_TEST_NCCL_SHAPE)
RIDGE_TEST_NCCL_SHAPE(GetErrorString, )

TEST(NcclAbi, ValuesAreThoseOfTheHeader) {
  EXPECT_EQ(static_cast<int>(NcclCode::kSuccess), ncclSuccess);
  EXPECT_EQ(static_cast<int>(NcclCode::kUnhandledCuda), ncclUnhandledCudaError);
  EXPECT_EQ(static_cast<int>(NcclCode::kSystem), ncclSystemError);
  EXPECT_EQ(static_cast<int>(NcclCode::kInvalidArgument), ncclInvalidArgument);
  EXPECT_EQ(static_cast<int>(NcclCode::kInvalidUsage), ncclInvalidUsage);
  EXPECT_EQ(kNcclBytes, ncclUint8);
}

}  // namespace
}  // namespace ridge::cuda
