#include "ridge/cli/exit_codes.h"

#include <gtest/gtest.h>

namespace ridge::cli {
namespace {

TEST(ExitCodes, AreThoseThatScriptsRelyOn) {
  EXPECT_EQ(ExitCodeFor(ErrorCode::kOk), 0);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kFailed), 1);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kUnavailable), 1);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kInternal), 1);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kInvalidArgument), 2);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kOutOfMemory), 3);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kInvalidData), 4);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kInvalidModel), 5);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kUnsupported), 5);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kDevice), 6);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kDeviceMemory), 6);
  EXPECT_EQ(ExitCodeFor(ErrorCode::kQualityGate), 7);
}

}  // namespace
}  // namespace ridge::cli
