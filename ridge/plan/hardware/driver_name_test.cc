#include "ridge/plan/hardware/driver_name.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

std::string IdOf(const std::string& name, double gib) {
  const auto found = HardwareOfDriver(name, static_cast<int64_t>(gib * (1 << 30)));
  return found ? found->id : "";
}

TEST(HardwareOfDriver, FindsModelFormAndMemory) {
  EXPECT_EQ(IdOf("NVIDIA H200", 139.8), "h200-sxm");
  EXPECT_EQ(IdOf("NVIDIA H200 NVL", 139.8), "h200-nvl");
  EXPECT_EQ(IdOf("NVIDIA H100 80GB HBM3", 79.2), "h100-sxm");
  EXPECT_EQ(IdOf("NVIDIA H100 PCIe", 79.2), "h100-pcie");
  EXPECT_EQ(IdOf("NVIDIA A100-SXM4-80GB", 79.2), "a100-sxm4-80g");
  EXPECT_EQ(IdOf("NVIDIA A100-SXM4-40GB", 39.4), "a100-sxm4-40g");
  EXPECT_EQ(IdOf("NVIDIA A100 80GB PCIe", 79.2), "a100-pcie-80g");
  EXPECT_EQ(IdOf("Tesla V100-SXM2-16GB", 15.8), "v100-sxm2-16g");
  EXPECT_EQ(IdOf("Tesla T4", 14.6), "t4");
  EXPECT_EQ(IdOf("NVIDIA GeForce RTX 4090", 23.6), "rtx4090");
  EXPECT_EQ(IdOf("NVIDIA GeForce RTX 3080", 9.8), "rtx3080-10g");
  EXPECT_EQ(IdOf("NVIDIA GeForce RTX 3080 Ti", 11.8), "rtx3080ti");
  EXPECT_EQ(IdOf("NVIDIA RTX 6000 Ada Generation", 47.5), "rtx6000-ada");
  EXPECT_EQ(IdOf("NVIDIA RTX A6000", 47.5), "rtx-a6000");
  EXPECT_EQ(IdOf("NVIDIA L40S", 44.5), "l40s");
  EXPECT_EQ(IdOf("NVIDIA L40", 44.5), "l40");
}

TEST(HardwareOfDriver, FindsNothingForAPartOrAnotherDevice) {
  EXPECT_EQ(IdOf("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 4.8), "");
  EXPECT_EQ(IdOf("NVIDIA GeForce RTX 3080", 11.8), "");
  EXPECT_EQ(IdOf("NVIDIA GeForce RTX 4060 Ti", 7.7), "");
  EXPECT_EQ(IdOf("AMD Instinct MI300X", 191.5), "");
  EXPECT_EQ(IdOf("Test GPU 0", 16), "");
  EXPECT_EQ(IdOf("", 16), "");
}

}  // namespace
}  // namespace ridge
