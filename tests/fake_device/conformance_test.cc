// Every case of every operator, on memory that the host cannot reach.
#include <gtest/gtest.h>

#include "ridge/backend/reference/reference_backend.h"
#include "tests/fake_device/fake_device.h"
#include "tests/ops/case_file.h"
#include "tests/ops/check_backend.h"

namespace ridge::fake {
namespace {

TEST(FakeConformance, EveryCaseAgreesWithTheReference) {
  const std::unique_ptr<Backend> reference = MakeReferenceBackend();
  FakeDevice device({.most_delay_us = 0, .space = {256, 4096}});
  const std::unique_ptr<Backend> backend = MakeFakeBackend(*reference, device);
  for (const std::string& path : AllCaseFiles()) {
    const Result<CaseFile> file = ReadCaseFile(path);
    ASSERT_TRUE(file.ok()) << file.status().message();
    const OpDef* op = FindOp(file->op);
    ASSERT_NE(op, nullptr) << file->op;
    for (const OpCase& op_case : file->cases) {
      if (op_case.kind == OpCase::Kind::kError) continue;
      int fast = 0;
      EXPECT_EQ(CheckBackend(*backend, *op, op_case, kRowMajor, /*tolerance=*/0, fast), "")
          << path << ":" << op_case.line;
    }
  }
}

}  // namespace
}  // namespace ridge::fake
