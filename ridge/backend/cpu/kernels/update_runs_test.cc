#include "ridge/backend/cpu/kernels/update_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace ridge::cpu {
namespace {

constexpr int64_t kCount = 103;

std::vector<float> Draw(std::mt19937& random, float least) {
  std::uniform_real_distribution<float> value(least, 1);
  std::vector<float> drawn(kCount);
  for (float& x : drawn) x = value(random);
  return drawn;
}

// An element's bits may not depend on whether it falls into full vectors or into the last lanes.
TEST(UpdateRuns, AdamHasTheSameBitsWhereverARunIsCut) {
  std::mt19937 random(11);
  for (const float decay_grad : {0.0f, 0.01f}) {
    for (const float decay_param : {1.0f, 0.99999f}) {
      const AdamNumbers numbers{0.9f,  0.1f,  0.999f,     0.001f,     0.003f,
                                0.05f, 1e-8f, decay_grad, decay_param};
      const auto param = Draw(random, -1), grad = Draw(random, -1), m = Draw(random, -1),
                 v = Draw(random, 0);
      const auto run = [&](int64_t length) {
        std::vector<std::vector<float>> out(3, std::vector<float>(kCount));
        const AdamArrays arrays{param.data(),  grad.data(),   m.data(),     v.data(),
                                out[0].data(), out[1].data(), out[2].data()};
        for (int64_t i = 0; i < kCount; i += length)
          AdamRun(numbers, arrays, i, std::min(i + length, kCount));
        return out;
      };
      for (const int64_t length : {1, 3, 16, 50}) EXPECT_EQ(run(length), run(kCount)) << length;
    }
  }
}

TEST(UpdateRuns, SgdHasTheSameBitsWhereverARunIsCut) {
  std::mt19937 random(12);
  for (const bool nesterov : {false, true}) {
    const SgdNumbers numbers{0.01f, 0.9f, 0.0003f, nesterov};
    const auto param = Draw(random, -1), grad = Draw(random, -1), buffer = Draw(random, -1);
    const auto run = [&](int64_t length) {
      std::vector<std::vector<float>> out(2, std::vector<float>(kCount));
      const SgdArrays arrays{param.data(), grad.data(), buffer.data(), out[0].data(),
                             out[1].data()};
      for (int64_t i = 0; i < kCount; i += length)
        SgdRun(numbers, arrays, i, std::min(i + length, kCount));
      return out;
    };
    for (const int64_t length : {1, 3, 16, 50}) EXPECT_EQ(run(length), run(kCount)) << length;
  }
}

}  // namespace
}  // namespace ridge::cpu
