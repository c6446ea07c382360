#include "ridge/models/detection.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "ridge/graph/autodiff.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

constexpr int64_t kBatch = 3, kClasses = 3, kBoxes = 4;

// tests/golden/detection.txt: "name number number ...", a line each.
std::map<std::string, std::vector<double>> ReadGolden() {
  const char* root = std::getenv("RIDGE_SOURCE_DIR");
  std::ifstream file(std::string(root == nullptr ? "." : root) + "/tests/golden/detection.txt");
  std::map<std::string, std::vector<double>> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double number = 0; words >> number;) rows[name].push_back(number);
  }
  EXPECT_FALSE(rows.empty());
  return rows;
}

Tensor FromDoubles(const TensorType& type, const std::vector<double>& values) {
  Tensor tensor(type);
  EXPECT_EQ(tensor.elements(), static_cast<int64_t>(values.size()));
  if (type.dtype == DType::kF64)
    std::copy(values.begin(), values.end(), tensor.as_mutable<double>());
  else
    std::copy(values.begin(), values.end(), tensor.as_mutable<int64_t>());
  return tensor;
}

void ExpectNear(const Tensor& got, const std::vector<double>& golden, const std::string& name) {
  double largest = 0;
  for (const double value : golden) largest = std::max(largest, std::abs(value));
  ASSERT_EQ(got.elements(), static_cast<int64_t>(golden.size())) << name;
  for (int64_t i = 0; i < got.elements(); ++i)
    ASSERT_NEAR(got.at(i), golden[static_cast<size_t>(i)], 1e-9 * largest) << name << " " << i;
}

// The maps of make_detection.py as inputs: strides 8 and 16 of 32x32 pixels.
struct Fixture {
  GraphBuilder b{"maps"};
  std::vector<DetectionMap> maps;
  std::vector<Value> inputs;

  Fixture() {
    for (int64_t i = 0; i < 2; ++i) {
      const int64_t side = 4 >> i;
      const auto input = [&](const char* name, int64_t channels) {
        inputs.push_back(b.Input(name + std::string(".") + std::to_string(i),
                                 {DType::kF64, {kBatch, channels, side, side}}));
        return inputs.back();
      };
      const Value distances = input("distances", 4 * kDistanceBins);
      maps.push_back({distances, input("logits", kClasses), int64_t{8} << i});
    }
    DetectionEnd(b, {.batch = kBatch, .dtype = DType::kF64}, maps, kBoxes);
  }
};

std::vector<Tensor> Evaluate(const GraphBuilder& b,
                             const std::map<std::string, std::vector<double>>& golden) {
  std::map<std::string, Tensor> given;
  for (ValueId id : b.graph().ValuesOfKind(ValueKind::kInput)) {
    const ValueInfo& info = b.graph().value(id);
    given[info.name] = FromDoubles(info.type, golden.at(info.name));
  }
  Result<std::vector<Tensor>> values = EvaluateGraph(b.graph(), given);
  EXPECT_TRUE(values.ok()) << values.status().message();
  return std::move(*values);
}

TEST(DetectionTest, LossBoxesAndGradientsArePyTorchs) {
  const auto golden = ReadGolden();
  Fixture f;
  ASSERT_TRUE(f.b.ok()) << f.b.status().message();
  const ValueId loss = f.b.graph().FindOutput("loss");
  const auto grads = AppendGradients(f.b, f.b.At(loss), f.inputs);
  ASSERT_TRUE(grads.ok()) << grads.status().message();
  const std::vector<Tensor> values = Evaluate(f.b, golden);
  const auto at = [&](ValueId id) { return values[static_cast<size_t>(id)]; };
  ExpectNear(at(loss), golden.at("loss"), "loss");
  for (size_t i = 0; i < f.inputs.size(); ++i) {
    const std::string name = f.b.graph().value(f.inputs[i].id).name + ".grad";
    ExpectNear(at((*grads)[i].id), golden.at(name), name);
  }
  const Tensor detections = at(f.b.graph().FindOutput("detections"));
  for (size_t place = 0; place < golden.at("detected").size() / 4; ++place) {
    for (size_t side = 0; side < 4; ++side) {
      EXPECT_NEAR(detections.at(static_cast<int64_t>(place * (4 + kClasses) + side)),
                  golden.at("detected")[place * 4 + side], 1e-9);
    }
  }
}

TEST(DetectionTest, WithoutAnyBoxTheLossIsThatOfTheClasses) {
  auto golden = ReadGolden();
  std::fill(golden["classes"].begin(), golden["classes"].end(), -1);
  Fixture f;
  double expected = 0;
  for (const char* map : {"logits.0", "logits.1"}) {
    for (const double x : golden.at(map)) expected += 0.5 * std::log1p(std::exp(x));
  }
  const std::vector<Tensor> values = Evaluate(f.b, golden);
  const ValueId loss = f.b.graph().FindOutput("loss");
  EXPECT_NEAR(values[static_cast<size_t>(loss)].at(0), expected, 1e-9 * expected);
}

}  // namespace
}  // namespace ridge
