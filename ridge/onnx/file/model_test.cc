#include "ridge/onnx/file/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/process.h"
#include "ridge/core/test_folder.h"
#include "ridge/onnx/file/model_check.h"

namespace ridge {
namespace {

using ::testing::HasSubstr;

void AddValue(google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& values,
              const std::string& name) {
  onnx::ValueInfoProto& value = *values.Add();
  value.set_name(name);
  value.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
}

// y = Relu(x), with x f32[batch, 3].
onnx::ModelProto Relu() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  AddValue(*graph.mutable_input(), "x");
  auto& shape = *graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape.add_dim()->set_dim_param("batch");
  shape.add_dim()->set_dim_value(3);
  AddValue(*graph.mutable_output(), "y");
  onnx::NodeProto& node = *graph.add_node();
  node.set_op_type("Relu");
  node.add_input("x");
  node.add_output("y");
  return model;
}

void AddInitializer(onnx::ModelProto& model, const std::string& name) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_float_data(2);
  tensor.add_dims(1);
}

onnx::FunctionProto& AddFunction(onnx::ModelProto& model, const std::string& name,
                                 const std::string& calls) {
  onnx::FunctionProto& function = *model.add_functions();
  function.set_domain("local");
  function.set_name(name);
  onnx::NodeProto& node = *function.add_node();
  node.set_domain("local");
  node.set_op_type(calls);
  return function;
}

Result<OnnxModel> Read(const onnx::ModelProto& model) {
  return OnnxModel::Parse(model.SerializeAsString(), "m.onnx");
}

std::string Message(const onnx::ModelProto& model) {
  const Result<OnnxModel> read = Read(model);
  return read.ok() ? "" : read.status().message();
}

TEST(OnnxModel, DescribesItsInputs) {
  const Result<OnnxModel> model = Read(Relu());
  ASSERT_TRUE(model.ok()) << model.status().message();
  ASSERT_EQ(model->inputs().size(), 1u);
  const OnnxValueInfo& x = model->inputs()[0];
  EXPECT_EQ(x.dims[0].extent, -1);
  EXPECT_EQ(x.dims[0].name, "batch");
  EXPECT_EQ(x.dims[1].extent, 3);
  EXPECT_EQ(model->opset(""), 17);
  EXPECT_EQ(model->opset("ai.onnx"), 17);
  EXPECT_EQ(model->opset("other"), 0);
  EXPECT_FALSE(model->outputs()[0].has_shape);
}

TEST(OnnxModel, NamesOpenDimensionsByInputAndAxis) {
  onnx::ModelProto proto = Relu();
  auto& shape = *proto.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.mutable_dim(0)->Clear();
  shape.mutable_dim(1)->set_dim_value(-1);
  const Result<OnnxModel> model = Read(proto);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->inputs()[0].dims[0].name, "x_0");
  EXPECT_EQ(model->inputs()[0].dims[1].name, "x_1");
}

TEST(OnnxModel, AQuestionMarkIsNoName) {
  onnx::ModelProto proto = Relu();
  auto& shape = *proto.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.mutable_dim(0)->set_dim_param("?");
  shape.mutable_dim(1)->set_dim_param("?");
  const Result<OnnxModel> model = Read(proto);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->inputs()[0].dims[0].name, "x_0");
  EXPECT_EQ(model->inputs()[0].dims[1].name, "x_1");
}

TEST(OnnxModel, LeavesOutInputsThatAreInitializers) {
  onnx::ModelProto proto = Relu();
  AddInitializer(proto, "w");
  AddValue(*proto.mutable_graph()->mutable_input(), "w");
  const Result<OnnxModel> model = Read(proto);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->inputs().size(), 1u);
  EXPECT_EQ(model->initializers().at("w").at(0), 2);
}

TEST(OnnxModel, FindsLocalFunctions) {
  onnx::ModelProto proto = Relu();
  AddFunction(proto, "f", "g");
  proto.mutable_functions(0)->set_overload("fast");
  onnx::NodeProto node;
  node.set_domain("local");
  node.set_op_type("f");
  Result<OnnxModel> model = Read(proto);
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->FindFunction(node), nullptr);
  node.set_overload("fast");
  const OnnxModel moved = std::move(*model);
  ASSERT_NE(moved.FindFunction(node), nullptr);
  EXPECT_EQ(moved.FindFunction(node)->name(), "f");
}

TEST(OnnxModel, RefusesWhatIsNoModel) {
  const auto parse = [](const std::string& bytes) {
    return OnnxModel::Parse(bytes, "m.onnx").status().message();
  };
  EXPECT_THAT(parse("hello"), HasSubstr("m.onnx: is no ONNX model: its bytes are no protobuf"));
  EXPECT_EQ(parse(""), "m.onnx: is no ONNX model: it has no ir_version");
}

TEST(OnnxModel, RefusesDeepNesting) {
  onnx::GraphProto graph;
  for (int i = 0; i < 60; ++i) {
    onnx::GraphProto outer;
    outer.add_node()->add_attribute()->mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
  onnx::ModelProto model = Relu();
  *model.mutable_graph() = graph;
  EXPECT_THAT(Message(model), HasSubstr("nests more than 100 deep"));
}

TEST(OnnxModel, ReadsIrVersions3To14) {
  onnx::ModelProto model = Relu();
  for (const int version : {3, 14}) {
    model.set_ir_version(version);
    EXPECT_EQ(Message(model), "");
  }
  for (const int version : {2, 15}) {
    model.set_ir_version(version);
    EXPECT_THAT(Message(model), HasSubstr("; we read 3 to 14"));
    EXPECT_EQ(Read(model).status().code(), ErrorCode::kUnsupported);
  }
}

TEST(OnnxModel, ReadsOperatorSets6To28) {
  onnx::ModelProto model = Relu();
  for (const int version : {6, 28}) {
    model.mutable_opset_import(0)->set_version(version);
    EXPECT_EQ(Message(model), "");
  }
  for (const int version : {5, 29}) {
    model.mutable_opset_import(0)->set_version(version);
    EXPECT_THAT(Message(model), HasSubstr("; we read 6 to 28. hint: onnx.version_converter"));
    EXPECT_EQ(Read(model).status().code(), ErrorCode::kUnsupported);
  }
}

TEST(OnnxModel, NeedsOperatorSets) {
  onnx::ModelProto model = Relu();
  model.add_opset_import()->set_domain("ai.onnx");
  model.mutable_opset_import(1)->set_version(17);  // some exporters say it again
  EXPECT_TRUE(Read(model).ok());
  model.mutable_opset_import(1)->set_version(18);
  EXPECT_THAT(Message(model),
              HasSubstr("imports the operator set 'ai.onnx' twice, as version 17 and 18"));
  model.clear_opset_import();
  EXPECT_THAT(Message(model), HasSubstr("imports no operator set"));
  model.add_opset_import()->set_domain("other");
  EXPECT_EQ(Message(model), "m.onnx: imports no ai.onnx operator set, but Relu '' belongs to it");
}

TEST(OnnxModel, NeedsAGraphWithOutputs) {
  onnx::ModelProto model = Relu();
  model.mutable_graph()->clear_output();
  EXPECT_EQ(Message(model), "m.onnx: the graph has no outputs");
  model.clear_graph();
  EXPECT_EQ(Message(model), "m.onnx: has no graph");
}

TEST(OnnxModel, RefusesNamesThatAreMadeTwice) {
  onnx::ModelProto two_inputs = Relu();
  AddValue(*two_inputs.mutable_graph()->mutable_input(), "x");
  EXPECT_EQ(Message(two_inputs), "m.onnx: the graph has two inputs 'x'");
  onnx::ModelProto two_outputs = Relu();
  AddValue(*two_outputs.mutable_graph()->mutable_output(), "y");
  EXPECT_EQ(Message(two_outputs), "m.onnx: the graph has two outputs 'y'");
  onnx::ModelProto two_nodes = Relu();
  *two_nodes.mutable_graph()->add_node() = two_nodes.graph().node(0);
  EXPECT_THAT(Message(two_nodes), HasSubstr("'y' is made twice, the second time by Relu ''"));
  onnx::ModelProto two_tensors = Relu();
  AddInitializer(two_tensors, "w");
  AddInitializer(two_tensors, "w");
  EXPECT_EQ(Message(two_tensors), "m.onnx: the graph has two initializers 'w'");
  onnx::ModelProto both = Relu();
  AddInitializer(both, "y");
  EXPECT_EQ(Message(both), "m.onnx: 'y' is an initializer and made by Relu '' too");
}

TEST(OnnxModel, RefusesMissingNames) {
  onnx::ModelProto input = Relu();
  AddValue(*input.mutable_graph()->mutable_input(), "");
  EXPECT_EQ(Message(input), "m.onnx: an input of the graph has no name");
  onnx::ModelProto output = Relu();
  AddValue(*output.mutable_graph()->mutable_output(), "");
  EXPECT_EQ(Message(output), "m.onnx: an output of the graph has no name");
  onnx::ModelProto tensor = Relu();
  AddInitializer(tensor, "");
  EXPECT_EQ(Message(tensor), "m.onnx: an initializer has no name");
  onnx::ModelProto node = Relu();
  node.mutable_graph()->mutable_node(0)->clear_op_type();
  EXPECT_EQ(Message(node), "m.onnx: node '' has no op_type");
}

TEST(OnnxModel, RefusesHugeInputs) {
  onnx::ModelProto model = Relu();
  auto& shape = *model.mutable_graph()
                     ->mutable_input(0)
                     ->mutable_type()
                     ->mutable_tensor_type()
                     ->mutable_shape();
  shape.mutable_dim(1)->set_dim_value(int64_t{1} << 50);
  EXPECT_THAT(Message(model), HasSubstr("m.onnx: input 'x': shape [1,1125899906842624] has more"));
}

TEST(OnnxModel, MarksInputsThatAreNoTensorsOfNumbers) {
  onnx::ModelProto model = Relu();
  model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(
      onnx::TensorProto::STRING);
  const Result<OnnxModel> read = Read(model);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->inputs()[0].supported);
}

TEST(OnnxModel, RefusesFunctionsThatCallThemselves) {
  onnx::ModelProto itself = Relu();
  AddFunction(itself, "f", "f");
  EXPECT_EQ(Message(itself), "m.onnx: function 'f' calls itself, directly or over others");
  onnx::ModelProto over_another = Relu();
  AddFunction(over_another, "f", "g");
  AddFunction(over_another, "g", "f");
  EXPECT_THAT(Message(over_another), HasSubstr("calls itself"));
  onnx::ModelProto in_a_branch = Relu();
  onnx::NodeProto& node = *AddFunction(in_a_branch, "f", "g").mutable_node(0);
  onnx::NodeProto inner = node;
  inner.set_op_type("f");
  *node.add_attribute()->mutable_g()->add_node() = inner;
  EXPECT_THAT(Message(in_a_branch), HasSubstr("calls itself"));
}

TEST(OnnxModel, RefusesLongChainsOfFunctions) {
  onnx::ModelProto model = Relu();
  for (int i = 0; i < 100; ++i) {
    AddFunction(model, "f" + std::to_string(i), "f" + std::to_string(i + 1));
  }
  EXPECT_THAT(Message(model), HasSubstr("calls others more than 64 deep"));
}

TEST(OnnxModel, RefusesFunctionsOfOneName) {
  onnx::ModelProto model = Relu();
  AddFunction(model, "f", "g");
  AddFunction(model, "f", "h");
  EXPECT_EQ(Message(model), "m.onnx: has two functions 'local::f'");
}

TEST(OnnxModel, BoundsSparseInitializersTogether) {
  onnx::ModelProto model = Relu();
  for (const char* name : {"a", "b", "c"}) {
    onnx::SparseTensorProto& sparse = *model.mutable_graph()->add_sparse_initializer();
    sparse.add_dims(15 << 20);
    sparse.mutable_values()->set_name(name);
    sparse.mutable_values()->set_data_type(onnx::TensorProto::FLOAT);
    sparse.mutable_values()->add_dims(0);
    sparse.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
    sparse.mutable_indices()->add_dims(0);
  }
  EXPECT_THAT(Message(model), HasSubstr("sparse tensor 'c': f32[15728640] has 62914560 bytes"));
}

TEST(OnnxModel, PrintsTheNamesOfAFileSafely) {
  onnx::ModelProto model = Relu();
  model.mutable_graph()->mutable_node(0)->set_name(
      "a\x1b[31m\x07"
      "b\x7f");
  model.mutable_graph()->mutable_node(0)->clear_op_type();
  EXPECT_EQ(Message(model), "m.onnx: node 'a?[31m?b?' has no op_type");
}

TEST(OnnxModel, LeavesOutTheMiddleOfLongTexts) {
  const Status status(ErrorCode::kInvalidModel, "begin " + std::string(3000, 'x') + " end");
  const std::string text = PrintableOnnxStatus(status).message();
  EXPECT_LT(text.size(), 2000u);
  EXPECT_THAT(text, ::testing::StartsWith("begin xxx"));
  EXPECT_THAT(text, HasSubstr("xxx [1110 bytes left out] xxx"));
  EXPECT_THAT(text, ::testing::EndsWith("xxx end"));
  // No letter is cut in two.
  std::string letters;
  for (int i = 0; i < 2000; ++i) letters += "\u00e9";
  const std::string cut =
      PrintableOnnxStatus(Status(ErrorCode::kInvalidModel, "-" + letters)).message();
  EXPECT_EQ(cut.find(" [") % 2, 1u);
}

class OnnxFile : public ::testing::Test {
 protected:
  std::string Write(const std::string& bytes) {
    std::ofstream(path_) << bytes;
    return path_;
  }
  static std::string Refusal(const std::string& path) {
    return OnnxModel::Open(path).status().message();
  }
  const std::string path_ = TestFolder() + "/m.onnx";
};

TEST_F(OnnxFile, IsReadWithItsTensors) {
  onnx::ModelProto proto = Relu();
  onnx::TensorProto& big = *proto.mutable_graph()->add_initializer();
  big.set_name("big");
  big.set_data_type(onnx::TensorProto::UINT8);
  big.add_dims(3 << 20);
  big.set_raw_data(std::string(3 << 20, '\7'));
  const Result<OnnxModel> model = OnnxModel::Open(Write(proto.SerializeAsString()));
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_EQ(model->initializers().at("big").Load()->at((3 << 20) - 1), 7);
  EXPECT_EQ(model->folder(), TestFolder() + "/");
}

// Over 50 MB, from where on protobuf would double the string again and again.
TEST_F(OnnxFile, ALargeTensorTakesNoMemoryUntilItIsLoaded) {
#ifdef RIDGE_SANITIZED_MEMORY
  GTEST_SKIP() << "a sanitizer's shadow of the file is resident too";
#endif
  constexpr int kBytes = 60 << 20;
  onnx::ModelProto proto = Relu();
  onnx::TensorProto& big = *proto.mutable_graph()->add_initializer();
  big.set_name("big");
  big.set_data_type(onnx::TensorProto::UINT8);
  big.add_dims(kBytes);
  big.set_raw_data(std::string(kBytes, '\7'));
  const std::string path = Write(proto.SerializeAsString());
  proto.Clear();
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins anew
  const int64_t before = ReadProcessMemory().resident_bytes;
  const Result<OnnxModel> model = OnnxModel::Open(path);
  ASSERT_TRUE(model.ok()) << model.status().message();
  EXPECT_LT(ReadProcessMemory().peak_resident_bytes - before, kBytes / 4);
  EXPECT_EQ(model->initializers().at("big").Load()->at(kBytes - 1), 7);
  EXPECT_LT(ReadProcessMemory().peak_resident_bytes - before, kBytes + kBytes / 4);
}

// With an odd number of bytes before them, so that none is aligned.
TEST_F(OnnxFile, TensorsHaveTheSameBitsFromTheFileAndFromMemory) {
  onnx::ModelProto proto = Relu();
  std::string bytes(80'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 % 251);
  const std::pair<onnx::TensorProto::DataType, int64_t> types[] = {
      {onnx::TensorProto::FLOAT, 20'000},
      {onnx::TensorProto::INT64, 10'000},
      {onnx::TensorProto::BOOL, 80'000},
      {onnx::TensorProto::INT4, 160'000},
      {onnx::TensorProto::FLOAT16, 40'000}};
  for (const auto& [type, elements] : types) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(onnx::TensorProto::DataType_Name(type));
    tensor.set_data_type(type);
    tensor.add_dims(elements);
    tensor.set_raw_data(bytes);
  }
  const Result<OnnxModel> file = OnnxModel::Open(Write(proto.SerializeAsString()));
  const Result<OnnxModel> memory = Read(proto);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(memory.ok()) << memory.status().message();
  for (const auto& [name, tensor] : file->initializers()) {
    EXPECT_EQ(tensor.in_memory(), name == "BOOL" || name == "INT4") << name;
    const Result<Tensor> loaded = tensor.Load();
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    EXPECT_TRUE(loaded->same_bits(memory->initializers().at(name))) << name;
  }
}

TEST_F(OnnxFile, ThatChangesBeforeItsTensorsAreWantedIsRefused) {
  onnx::ModelProto proto = Relu();
  onnx::TensorProto& big = *proto.mutable_graph()->add_initializer();
  big.set_name("big");
  big.set_data_type(onnx::TensorProto::UINT8);
  big.add_dims(100'000);
  big.set_raw_data(std::string(100'000, '\7'));
  const Result<OnnxModel> model = OnnxModel::Open(Write(proto.SerializeAsString()));
  ASSERT_TRUE(model.ok()) << model.status().message();
  std::filesystem::resize_file(path_, 50'000);
  const Result<Tensor> loaded = model->initializers().at("big").Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.status().code(), ErrorCode::kInvalidModel);
  EXPECT_EQ(loaded.status().message(),
            path_ + ": has changed: it has 50000 bytes, and had " +
                std::to_string(proto.ByteSizeLong()) +
                " when it was opened. hint: start again, and leave the file as it is until the "
                "first step has run");
}

class ExternalTensors : public ::testing::Test {
 protected:
  void Add(const std::string& name, const std::string& file, int64_t floats, int64_t offset = 0) {
    onnx::TensorProto& tensor = *proto_.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    tensor.add_dims(floats);
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair{"location", file}, std::pair{"offset", std::to_string(offset)}}) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
  }
  Result<OnnxModel> Open() {
    return OnnxModel::Open(folder_.Write("m.onnx", proto_.SerializeAsString()));
  }

  TempFolder folder_;
  onnx::ModelProto proto_ = Relu();
};

TEST_F(ExternalTensors, LargeOnesStayInTheirFileAndSmallOnesAreRead) {
  const std::vector<float> numbers(20'000, 2.5F);
  folder_.Write("data", std::string(reinterpret_cast<const char*>(numbers.data()), 80'000));
  Add("large", "data", 19'000, 4'000);
  Add("small", "data", 10, 4);
  const Result<OnnxModel> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  const Tensor &large = model->initializers().at("large"),
               &small = model->initializers().at("small");
  EXPECT_FALSE(large.in_memory());
  EXPECT_EQ(large.Load()->at(18'999), 2.5);
  std::filesystem::resize_file(folder_.File("data"), 0);  // would be SIGBUS for a mapping
  EXPECT_EQ(small.at(9), 2.5);
  EXPECT_THAT(large.Load().status().message(),
              HasSubstr("external data 'data': has changed: it has 0 bytes, and had 80000"));
}

TEST_F(ExternalTensors, MayLieInMoreFilesThanAProcessMayOpen) {
  constexpr int kFiles = 1500;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = "t" + std::to_string(i);
    folder_.Write(name, std::string(1 << 15, '\0'));
    Add(name, name, 1 << 13);
  }
  const Result<OnnxModel> model = Open();
  ASSERT_TRUE(model.ok()) << model.status().message();
  int in_file = 0;
  for (const auto& [name, tensor] : model->initializers()) {
    if (!tensor.in_memory()) ++in_file;
    EXPECT_TRUE(tensor.Load().ok());
  }
  EXPECT_EQ(in_file, static_cast<int>(ExternalFiles::kMostOpen));
}

TEST_F(ExternalTensors, ThatOverlapCannotFillTheMemory) {
  folder_.Write("data", std::string(1000, '\0'));
  for (int i = 0; i < 9; ++i) Add("t" + std::to_string(i), "data", 225, 4 * i);
  const Result<OnnxModel> model = Open();
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(),
              HasSubstr("tensor 't8': the tensors in 'data' need more than eight times its 1000 "
                        "bytes in memory, because they overlap"));
}

TEST_F(OnnxFile, ThatIsCutOffIsRefused) {
  const std::string bytes = Relu().SerializeAsString();
  EXPECT_THAT(Refusal(Write(bytes.substr(0, bytes.size() - 1))), HasSubstr("is no ONNX model"));
}

TEST_F(OnnxFile, MustBeARegularFile) {
  EXPECT_THAT(Refusal(TestFolder() + "/missing.onnx"),
              HasSubstr("missing.onnx: can't be opened: No such file"));
  EXPECT_THAT(Refusal(TestFolder()), HasSubstr("is no regular file"));
  const std::string pipe = TestFolder() + "/pipe.onnx";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0644), 0);
  EXPECT_THAT(Refusal(pipe), HasSubstr("is no regular file"));
}

}  // namespace
}  // namespace ridge
