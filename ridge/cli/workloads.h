// The default workloads for timing training steps.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace ridge::cli {

struct Workload {
  const char* model;
  int64_t batch, steps;
  std::string name() const { return fmt::format("{}:{}", model, batch); }
};

inline constexpr Workload kWorkloads[] = {{"mlp", 128, 200},
                                          {"mlp", 1024, 60},
                                          {"cnn", 64, 300},
                                          {"cnn", 1024, 60},
                                          {"resnet50", 16, 5},
                                          {"unet", 4, 12},
                                          {"gpt", 8, 8},
                                          {"bert", 16, 20},
                                          {"vit_ti", 8, 20},
                                          {"lstm", 16, 30},
                                          {"efficientnet_v2_s", 8, 3},
                                          {"mobilenet_v3_small", 16, 30}};

}  // namespace ridge::cli
