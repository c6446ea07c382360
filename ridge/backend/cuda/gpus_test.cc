#include "ridge/backend/cuda/gpus.h"

#include <gtest/gtest.h>

namespace ridge::cuda {
namespace {

using Kind = VisibleDevices::Kind;

std::string Refusal(const std::string& text) {
  const Result<VisibleDevices> visible = ParseVisibleDevices(text);
  EXPECT_EQ(visible.status().code(), ErrorCode::kDevice) << text;
  return visible.status().message();
}

void ExpectList(const std::string& text, Kind kind, const std::vector<std::string>& names) {
  const Result<VisibleDevices> visible = ParseVisibleDevices(text);
  ASSERT_TRUE(visible.ok()) << visible.status().message();
  EXPECT_EQ(visible->kind, kind) << text;
  EXPECT_EQ(visible->names, names) << text;
}

TEST(VisibleDevices, AreOrdinalsUuidsOrOneMigInstance) {
  const Result<VisibleDevices> unset = ParseVisibleDevices(std::nullopt);
  ASSERT_TRUE(unset.ok());
  EXPECT_EQ(unset->kind, Kind::kAll);
  ExpectList("", Kind::kNone, {});
  ExpectList("-1", Kind::kNone, {});
  ExpectList("2", Kind::kOrdinals, {"2"});
  ExpectList("1, 0", Kind::kOrdinals, {"1", "0"});
  ExpectList("GPU-6b2f,GPU-a0", Kind::kUuids, {"GPU-6b2f", "GPU-a0"});
  ExpectList("MIG-c7d1", Kind::kMig, {"MIG-c7d1"});
}

TEST(VisibleDevices, WhatTheDriverWouldCutShortIsRefused) {
  EXPECT_EQ(Refusal("0,x"),
            "CUDA_VISIBLE_DEVICES is '0,x': 'x' is no number, GPU-... or MIG-.... hint: nvidia-smi "
            "-L lists the names");
  EXPECT_EQ(Refusal("0,,1"),
            "CUDA_VISIBLE_DEVICES is '0,,1': '' is no number, GPU-... or MIG-.... hint: nvidia-smi "
            "-L lists the names");
  EXPECT_EQ(Refusal("0,GPU-6b2f"),
            "CUDA_VISIBLE_DEVICES is '0,GPU-6b2f': '0' and 'GPU-6b2f' are of two kinds; a list has "
            "one. hint: nvidia-smi -L lists the names");
  EXPECT_EQ(Refusal("1,0,1"),
            "CUDA_VISIBLE_DEVICES is '1,0,1': it has '1' twice. hint: name each once");
  EXPECT_EQ(Refusal("MIG-a,MIG-b"),
            "CUDA_VISIBLE_DEVICES is 'MIG-a,MIG-b': it has 2 MIG instances; a process uses one. "
            "hint: export CUDA_VISIBLE_DEVICES=MIG-a");
}

TEST(VisibleDevices, NamesOfNoGpuAreRefused) {
  const Result<VisibleDevices> visible = ParseVisibleDevices("0,7,1");
  ASSERT_TRUE(visible.ok());
  EXPECT_TRUE(CheckShown(*visible, 3).ok());
  EXPECT_EQ(CheckShown(*visible, 1).message(),
            "CUDA_VISIBLE_DEVICES is '0,7,1': the driver shows 1 of the 3 that it names, and ends "
            "before '7'. hint: nvidia-smi -L lists the names");
}

}  // namespace
}  // namespace ridge::cuda
