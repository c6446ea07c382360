// Text graphs bring any types and attributes to any operator: each call is answered or refused, and
// an answered one has a cost of no less than nothing.  The calls are those of the case files with
// one to three things changed.  Meant for the sanitizers, too: overflow is what it looks for.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/ops/case_file.h"

namespace ridge {
namespace {

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  void Apply(OpCall& call) {
    for (size_t i = 1 + Pick(3); i > 0; --i) {
      if (Pick(2) == 0 && !call.attrs.empty()) {
        auto attr = call.attrs.begin();
        std::advance(attr, Pick(call.attrs.size()));
        ChangeAttr(attr->second);
      } else {
        ChangeInput(call);
      }
    }
  }

 private:
  size_t Pick(size_t n) { return random_() % n; }

  int64_t Integer() {
    static constexpr int64_t kEdges[] = {std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max(),
                                         int64_t{1} << 62,
                                         int64_t{1} << 31,
                                         -(int64_t{1} << 33),
                                         100};
    return Pick(2) == 0 ? kEdges[Pick(6)] : static_cast<int64_t>(Pick(6)) - 2;
  }

  void ChangeAttr(Attr& attr) {
    static constexpr double kNumbers[] = {-1, 0, 1e300, std::numeric_limits<double>::quiet_NaN()};
    static constexpr const char* kTexts[] = {"", "relu", "add,relu", "f32", "bool", ",,"};
    if (auto* integer = std::get_if<int64_t>(&attr)) *integer = Integer();
    if (auto* number = std::get_if<double>(&attr)) *number = kNumbers[Pick(4)];
    if (auto* text = std::get_if<std::string>(&attr)) *text = kTexts[Pick(6)];
    if (auto* list = std::get_if<std::vector<int64_t>>(&attr)) {
      if (list->empty() || Pick(6) == 0) list->push_back(Integer());
      (*list)[Pick(list->size())] = Integer();
      if (Pick(8) == 0) list->pop_back();
    }
  }

  void ChangeInput(OpCall& call) {
    if (call.inputs.empty() || Pick(10) == 0) {
      call.inputs.push_back({DType::kF32, {2}});
      return;
    }
    TensorType& type = call.inputs[Pick(call.inputs.size())];
    const size_t how = Pick(8);
    if (how == 0) type = OpCall::Absent();
    if (how == 1) call.inputs.pop_back();
    if ((how == 2 || how == 3) && type != OpCall::Absent())
      type.dtype = static_cast<DType>(Pick(kDTypeCount));
    if (how >= 4 && type != OpCall::Absent()) ChangeDims(type);
  }

  // What a text graph can hold: CheckDims() has passed.
  void ChangeDims(TensorType& type) {
    Dims dims = type.dims;
    if (dims.empty() || Pick(5) == 0) dims.insert(dims.begin(), 2);
    dims[Pick(dims.size())] = Pick(3) == 0 ? int64_t{1} << (16 + Pick(32)) : Pick(6);
    if (Pick(5) == 0) dims.pop_back();
    if (CheckDims(dims).ok()) type.dims = dims;
  }

  std::mt19937 random_;
};

void ExpectAnsweredOrRefused(const OpDef& op, OpCall call) {
  const Result<std::vector<TensorType>> types = InferCall(op, call);
  if (!types.ok()) {
    EXPECT_EQ(types.status().message().rfind(call.where, 0), 0u) << types.status().message();
    return;
  }
  EXPECT_FALSE(types->empty());
  call.outputs = *types;
  const Cost cost = CallCost(op, call);
  EXPECT_GE(cost.flops, 0) << call.where;
  EXPECT_GE(cost.bytes_read, 0) << call.where;
  EXPECT_GE(cost.bytes_written, 0) << call.where;
}

class DamagedCalls : public testing::TestWithParam<std::string> {};

TEST_P(DamagedCalls, AreAnsweredOrRefused) {
  const Result<CaseFile> file = ReadCaseFile(GetParam());
  ASSERT_TRUE(file.ok()) << file.status().message();
  const OpDef* op = FindOp(file->op);
  ASSERT_NE(op, nullptr);
  Damage damage(11);
  for (const OpCase& one : file->cases) {
    if (one.kind == OpCase::Kind::kError) continue;
    const Result<OpCall> valid = InferCase(*op, one);
    ASSERT_TRUE(valid.ok()) << valid.status().message();
    for (int round = 0; round < 200; ++round) {
      OpCall call = *valid;
      call.outputs.clear();
      damage.Apply(call);
      ExpectAnsweredOrRefused(*op, std::move(call));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, DamagedCalls, testing::ValuesIn(AllCaseFiles()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           const size_t at = info.param.rfind('/') + 1;
                           return info.param.substr(at, info.param.rfind('.') - at);
                         });

}  // namespace
}  // namespace ridge
