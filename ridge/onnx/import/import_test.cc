// What a small file may ask for: each limit is reached soon, and says which one it was.
#include "ridge/onnx/import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/test_folder.h"
#include "ridge/graph/interpret.h"

namespace ridge {
namespace {

using ::testing::HasSubstr;

// x f32[2] -> nodes -> y.
class ImportLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    model_.set_ir_version(9);
    model_.add_opset_import()->set_version(18);
    onnx::OperatorSetIdProto& local = *model_.add_opset_import();
    local.set_domain("local");
    local.set_version(1);
    onnx::ValueInfoProto& x = *graph().add_input();
    x.set_name("x");
    auto& type = *x.mutable_type()->mutable_tensor_type();
    type.set_elem_type(onnx::TensorProto::FLOAT);
    type.mutable_shape()->add_dim()->set_dim_value(2);
    graph().add_output()->set_name("y");
  }

  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  template <typename Nodes>
  static onnx::NodeProto& Add(Nodes& nodes, const char* op, const std::string& input,
                              const std::string& output) {
    onnx::NodeProto& node = *nodes.Add();
    node.set_op_type(op);
    if (!input.empty()) node.add_input(input);
    node.add_output(output);
    return node;
  }

  void AddInts(const std::string& name, std::vector<int64_t> numbers, bool scalar = false) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    if (!scalar) tensor.add_dims(static_cast<int64_t>(numbers.size()));
    for (const int64_t number : numbers) tensor.add_int64_data(number);
  }

  // A loop of `trips` whose body is the returned graph; y is what it scans from 'r'.
  onnx::GraphProto& AddLoop(int64_t trips) {
    AddInts("trips", {trips}, /*scalar=*/true);
    onnx::NodeProto& loop = Add(*graph().mutable_node(), "Loop", "trips", "y");
    onnx::AttributeProto& attr = *loop.add_attribute();
    attr.set_name("body");
    attr.set_type(onnx::AttributeProto::GRAPH);
    onnx::GraphProto& body = *attr.mutable_g();
    for (const char* name : {"i", "go"}) body.add_input()->set_name(name);
    for (const char* name : {"go", "r"}) body.add_output()->set_name(name);
    return body;
  }

  std::string Refusal(int64_t max_unrolled_nodes = OnnxImportOptions().max_unrolled_nodes) {
    OnnxImportOptions options;
    options.max_unrolled_nodes = max_unrolled_nodes;
    const Result<OnnxModel> model = OnnxModel::Parse(model_.SerializeAsString(), "m.onnx");
    if (!model.ok()) return model.status().message();
    return ImportOnnx(*model, options).status().message();
  }

  onnx::ModelProto model_;
};

TEST_F(ImportLimits, OfTripsAreThoseOfNodes) {
  Add(*AddLoop(int64_t{1} << 60).mutable_node(), "Relu", "x", "r");
  EXPECT_THAT(Refusal(), HasSubstr("loops and functions unroll to more than 100000 nodes"));
}

TEST_F(ImportLimits, AreOptions) {
  Add(*AddLoop(20).mutable_node(), "Relu", "x", "r");
  EXPECT_EQ(Refusal(), "");
  EXPECT_THAT(Refusal(30), HasSubstr("unroll to more than 30 nodes"));
}

// Two copies of half a megabyte are fine, 2^60 are not.
TEST_F(ImportLimits, CountWhatEachTripCopies) {
  onnx::GraphProto& body = AddLoop(2);
  onnx::AttributeProto& attr = *Add(*body.mutable_node(), "Constant", "", "r").add_attribute();
  attr.set_name("value");
  attr.set_type(onnx::AttributeProto::TENSOR);
  attr.mutable_t()->set_data_type(onnx::TensorProto::UINT8);
  attr.mutable_t()->add_dims(1 << 19);
  attr.mutable_t()->set_raw_data(std::string(1 << 19, 'x'));
  EXPECT_EQ(Refusal(), "");
  graph().mutable_initializer(0)->set_int64_data(0, int64_t{1} << 60);
  EXPECT_THAT(Refusal(2000), HasSubstr("more than 2000 nodes"));
}

TEST_F(ImportLimits, HoldForFunctionsThatCallFunctions) {
  for (int level = 0; level < 30; ++level) {
    onnx::FunctionProto& function = *model_.add_functions();
    function.set_name("f" + std::to_string(level));
    function.set_domain("local");
    function.add_input("a");
    function.add_output("c");
    const std::string next = level + 1 < 30 ? "f" + std::to_string(level + 1) : "Relu";
    for (const auto& [from, to] : {std::pair("a", "b"), std::pair("b", "c")})
      Add(*function.mutable_node(), next.c_str(), from, to)
          .set_domain(level + 1 < 30 ? "local" : "");
  }
  Add(*graph().mutable_node(), "f0", "x", "y").set_domain("local");
  EXPECT_THAT(Refusal(), HasSubstr("unroll to more than 100000 nodes"));
}

TEST_F(ImportLimits, HoldForLongListsOfInputs) {
  onnx::NodeProto& sum = Add(*graph().mutable_node(), "Sum", "x", "y");
  for (int i = 1; i < 120'000; ++i) sum.add_input("x");
  EXPECT_THAT(Refusal(), HasSubstr("unroll to more than 100000 nodes"));
}

TEST_F(ImportLimits, HoldForConstantsThatNodesMake) {
  AddInts("start", {0}, /*scalar=*/true);
  AddInts("limit", {1 << 22}, /*scalar=*/true);
  AddInts("step", {1}, /*scalar=*/true);
  for (int i = 0; i < 5; ++i) {  // 32 MiB each
    onnx::NodeProto& range =
        Add(*graph().mutable_node(), "Range", "start", i < 4 ? "r" + std::to_string(i) : "y");
    range.add_input("limit");
    range.add_input("step");
  }
  EXPECT_THAT(Refusal(), HasSubstr("constants that nodes make need more than 128 MiB"));
}

TEST_F(ImportLimits, LeaveLargeFoldedResultsToTheRun) {
  AddInts("dims", {1 << 30});
  Add(*graph().mutable_node(), "ConstantOfShape", "dims", "y");
  EXPECT_EQ(Refusal(), "");
}

TEST_F(ImportLimits, HoldForSequencesThatAreUnrolled) {
  for (const char* name : {"w", "r"}) {
    onnx::TensorProto& weight = *graph().add_initializer();
    weight.set_name(name);
    weight.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t extent : {1, 1, 1}) weight.add_dims(extent);
    weight.add_float_data(1);
  }
  AddInts("dims", {int64_t{1} << 40, 1, 1});
  Add(*graph().mutable_node(), "ConstantOfShape", "dims", "seq");
  onnx::NodeProto& rnn = Add(*graph().mutable_node(), "RNN", "seq", "y");
  for (const char* name : {"w", "r"}) rnn.add_input(name);
  onnx::AttributeProto& clip = *rnn.add_attribute();  // no single operator has it
  clip.set_name("clip");
  clip.set_type(onnx::AttributeProto::FLOAT);
  clip.set_f(1);
  EXPECT_THAT(Refusal(), HasSubstr("unroll to more than 100000 nodes"));
}

// y = x + "val_mask" + "val_weight", both f32[10000,2] in a file; x is f32[2].
class ImportFromFile : public ImportLimits {
 protected:
  static constexpr int64_t kRows = 10'000;

  void AddFloats(const std::string& name, const std::vector<float>& numbers) {
    onnx::TensorProto& tensor = *graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(kRows);
    tensor.add_dims(2);
    tensor.set_raw_data(std::string(reinterpret_cast<const char*>(numbers.data()), 8 * kRows));
  }

  void SetUp() override {
    ImportLimits::SetUp();
    std::vector<float> numbers(2 * kRows, -1e4F);
    AddFloats("val_mask", numbers);
    numbers.back() = 1;  // so that it is no mask
    AddFloats("val_weight", numbers);
  }

  void AddSum() {
    Add(*graph().mutable_node(), "Add", "x", "h").add_input("val_mask");
    Add(*graph().mutable_node(), "Add", "h", "y").add_input("val_weight");
  }

  Result<OnnxModel> Open() {
    return OnnxModel::Open(folder_.Write("m.onnx", model_.SerializeAsString()));
  }

  TempFolder folder_;
};

TEST_F(ImportFromFile, ParametersStayThereAndConstantsAreRead) {
  AddSum();
  const Result<OnnxModel> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Result<OnnxImport> import = ImportOnnx(*model, {});
  ASSERT_TRUE(import.ok()) << import.status().message();
  const ValueInfo& mask = import->graph.value(import->graph.FindValue("val_mask"));
  const ValueInfo& weight = import->graph.value(import->graph.FindValue("val_weight"));
  ASSERT_EQ(mask.kind, ValueKind::kConstant);
  EXPECT_EQ(mask.constant.at(2 * kRows - 1), -1e4F);
  ASSERT_EQ(weight.kind, ValueKind::kParameter);
  EXPECT_FALSE(weight.init.tensor.in_memory());
  EXPECT_EQ(InitialValue(weight, 0)->at(2 * kRows - 1), 1);
}

TEST_F(ImportFromFile, AChangedFileIsTheErrorWhateverMissesItsNumbers) {
  AddInts("shape", std::vector<int64_t>(5000, 1));
  graph().mutable_initializer(2)->set_raw_data(std::string(40'000, '\1'));
  graph().mutable_initializer(2)->clear_int64_data();
  Add(*graph().mutable_node(), "Reshape", "x", "y").add_input("shape");
  const Result<OnnxModel> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::filesystem::resize_file(folder_.File("m.onnx"), 100);
  const Status status = ImportOnnx(*model, {}).status();
  EXPECT_EQ(status.code(), ErrorCode::kInvalidModel);
  EXPECT_THAT(status.message(),
              ::testing::StartsWith(folder_.File("m.onnx") + ": has changed: it has 100 bytes"));
}

}  // namespace
}  // namespace ridge
