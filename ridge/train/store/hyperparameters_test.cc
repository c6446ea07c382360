#include "ridge/train/store/hyperparameters.h"

#include <gtest/gtest.h>

namespace ridge {
namespace {

const Hyperparameter* Find(const std::vector<Hyperparameter>& all, const std::string& name) {
  for (const Hyperparameter& one : all) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

TEST(Hyperparameters, AreTheOptionsThatHaveAValue) {
  TrainOptions options;
  options.model = "mlp";
  options.batch = 8;
  options.lr = 0.25;
  const std::vector<Hyperparameter> shown = HyperparametersOf(options);
  for (const char* name : {"model", "batch", "lr", "optimizer", "seed"})
    ASSERT_NE(Find(shown, name), nullptr) << name;
  EXPECT_EQ(std::get<std::string>(Find(shown, "model")->value), "mlp");
  EXPECT_EQ(std::get<double>(Find(shown, "batch")->value), 8);
  EXPECT_EQ(std::get<double>(Find(shown, "lr")->value), 0.25);
  EXPECT_EQ(Find(shown, "steps"), nullptr);  // not given
  EXPECT_EQ(Find(shown, "out"), nullptr);    // changes nothing that is learned
}

}  // namespace
}  // namespace ridge
