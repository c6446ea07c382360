#include "ridge/train/load/onnx_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "ridge/core/test_folder.h"
#include "ridge/train/load/onnx_external_names.h"
#include "ridge/train/load/onnx_test_model.h"

namespace ridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void MakeExternal(onnx::TensorProto& tensor, const std::string& file) {
  tensor.clear_raw_data();
  tensor.clear_float_data();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  onnx::StringStringEntryProto& entry = *tensor.add_external_data();
  entry.set_key("location");
  entry.set_value(file);
}

// y = x w, x [N,2], w [2,3].
class OnnxSourceTest : public ::testing::Test {
 protected:
  OnnxSourceTest() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    AddOnnxInfo(*graph.add_input(), "x", onnx::TensorProto::FLOAT, {"N", "2"});
    AddOnnxInfo(*graph.add_output(), "y", onnx::TensorProto::FLOAT, {"N", "3"});
    AddOnnxNode(graph, "MatMul", {"x", "w"}, "y");
    StoreTensor(Tensor::FromFloats({2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}), "w",
                *graph.add_initializer());
  }
  onnx::TensorProto& Weight() { return *model_.mutable_graph()->mutable_initializer(0); }
  void WriteFloats(const std::string& name, const std::vector<float>& values) {
    std::ofstream file(folder_.File(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(float)));
  }
  Result<Graph> Load(const std::string& path, ModelNotes* notes = nullptr) {
    return LoadOnnx(path, {.model = path, .batch = 4}, notes);
  }

  TempFolder folder_;
  const std::string path_ = folder_.File("net.onnx");
  onnx::ModelProto model_ = EmptyOnnxModel();
};

TEST_F(OnnxSourceTest, TheBatchIsBound) {
  SaveOnnx(model_, path_);
  const Result<Graph> graph = Load(path_);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->type(graph->FindOutput("y")), (TensorType{DType::kF32, {4, 3}}));
  EXPECT_EQ(graph->value(graph->FindValue("w")).kind, ValueKind::kParameter);
}

TEST_F(OnnxSourceTest, ARunKeepsTheFileAndItsExternalData) {
  MakeExternal(Weight(), "parts/w.bin");
  std::filesystem::create_directory(folder_.File("parts"));
  WriteFloats("parts/w.bin", {6, 5, 4, 3, 2, 1});
  SaveOnnx(model_, path_);
  ModelNotes notes;
  ASSERT_TRUE(Load(path_, &notes).ok());
  EXPECT_THAT(notes.external_files, ElementsAre("parts/w.bin"));
  const std::string run = folder_.File("run");
  std::filesystem::create_directory(run);
  const Status kept = KeepOnnx(path_, notes, run);
  ASSERT_TRUE(kept.ok()) << kept.message();
  std::filesystem::remove(path_);
  std::filesystem::remove_all(folder_.File("parts"));
  const Result<Graph> graph = Load(run + "/model.onnx");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(graph->value(graph->FindValue("w")).init.tensor.at(0), 6);
}

TEST_F(OnnxSourceTest, ExternalDataMayNotBeNamedAsARunsFiles) {
  MakeExternal(Weight(), "options.json");
  WriteFloats("options.json", {6, 5, 4, 3, 2, 1});
  SaveOnnx(model_, path_);
  ModelNotes notes;
  ASSERT_TRUE(Load(path_, &notes).ok());
  const Status kept = KeepOnnx(path_, notes, folder_.path());
  ASSERT_FALSE(kept.ok());
  EXPECT_THAT(kept.message(), HasSubstr("a name that a run folder uses"));
}

TEST_F(OnnxSourceTest, ExternalFilesAreFoundWhereverTensorsLie) {
  MakeExternal(Weight(), "b.bin");
  onnx::GraphProto& graph = *model_.mutable_graph();
  onnx::NodeProto& branch = AddOnnxNode(graph, "If", {"c"}, "z");
  onnx::AttributeProto& then = *branch.add_attribute();
  MakeExternal(*then.mutable_g()->add_initializer(), "a.bin");
  onnx::NodeProto& constant = AddOnnxNode(*then.mutable_g(), "Constant", {}, "k");
  MakeExternal(*constant.add_attribute()->mutable_t(), "c.bin");
  MakeExternal(*graph.add_sparse_initializer()->mutable_values(), "d.bin");
  onnx::FunctionProto& function = *model_.add_functions();
  MakeExternal(*function.add_node()->add_attribute()->add_tensors(), "e.bin");
  MakeExternal(*model_.add_training_info()->mutable_algorithm()->add_initializer(), "f.bin");
  MakeExternal(*graph.add_initializer(), "b.bin");  // a second tensor in the same file
  EXPECT_THAT(OnnxExternalNames(model_),
              ElementsAre("a.bin", "b.bin", "c.bin", "d.bin", "e.bin", "f.bin"));
}

// r = reshape(x, shape): the shape must be known, and is among the arrays that are given.
TEST_F(OnnxSourceTest, InputsThatDecideShapesAreTakenFromTheArrays) {
  onnx::GraphProto& graph = *model_.mutable_graph();
  AddOnnxInfo(*graph.add_input(), "shape", onnx::TensorProto::INT64, {"2"});
  AddOnnxNode(graph, "Reshape", {"x", "shape"}, "r");
  AddOnnxInfo(*graph.add_output(), "r", onnx::TensorProto::FLOAT, {"a", "b"});
  SaveOnnx(model_, path_);
  ModelRequest request = {.model = path_};
  request.training = false;
  request.arrays = {{"x", Tensor(TensorType{DType::kF32, {6, 2}})}};
  EXPECT_THAT(LoadOnnx(path_, request, nullptr).status().message(), HasSubstr("depends on data"));
  request.arrays.emplace_back("shape", Tensor::FromInts({2}, std::vector<int64_t>{-1, 4}));
  ModelNotes notes;
  const Result<Graph> loaded = LoadOnnx(path_, request, &notes);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->type(loaded->FindOutput("r")).dims, (Dims{3, 4}));
  EXPECT_THAT(notes.known, ElementsAre("shape"));
}

}  // namespace
}  // namespace ridge
