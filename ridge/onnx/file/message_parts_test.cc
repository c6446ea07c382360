#include "ridge/onnx/file/message_parts.h"

#include <gtest/gtest.h>

#include <string>

#include "onnx/onnx-ml.pb.h"

namespace ridge {
namespace {

std::string Numbers(size_t bytes, char salt) {
  std::string text(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i)
    text[i] = static_cast<char>(i * 31 + static_cast<size_t>(salt));
  return text;
}

onnx::TensorProto& AddTensor(onnx::ModelProto& model, const std::string& name, int type) {
  onnx::TensorProto& tensor = *model.mutable_graph()->add_initializer();
  tensor.set_name(name);
  tensor.set_data_type(type);
  tensor.add_dims(7);
  return tensor;
}

// Tensors of all kinds, between other fields.
onnx::ModelProto Mixed() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.mutable_graph()->set_name("g");
  model.mutable_graph()->add_node()->set_op_type("Relu");
  AddTensor(model, "small", onnx::TensorProto::FLOAT).set_raw_data(Numbers(100, 1));
  AddTensor(model, "large", onnx::TensorProto::FLOAT).set_raw_data(Numbers(40'000, 2));
  AddTensor(model, "just", onnx::TensorProto::INT8).set_raw_data(Numbers(kLeftOutFrom, 3));
  onnx::TensorProto& floats = AddTensor(model, "floats", onnx::TensorProto::FLOAT);
  for (int i = 0; i < 10'000; ++i) floats.add_float_data(static_cast<float>(i));
  onnx::TensorProto& complex = AddTensor(model, "complex", onnx::TensorProto::COMPLEX64);
  for (int i = 0; i < 10'000; ++i) complex.add_float_data(static_cast<float>(i));
  onnx::TensorProto& doubles = AddTensor(model, "doubles", onnx::TensorProto::DOUBLE);
  for (int i = 0; i < 10'000; ++i) doubles.add_double_data(i);
  onnx::TensorProto& ints = AddTensor(model, "ints", onnx::TensorProto::INT64);
  for (int i = 0; i < 40'000; ++i) ints.add_int64_data(i);
  model.mutable_graph()->add_output()->set_name("y");
  model.add_opset_import()->set_version(17);
  return model;
}

// What was left out is put back.
onnx::ModelProto PutBack(onnx::ModelProto model, const std::map<int, SkippedTensor>& left_out,
                         const std::string& bytes) {
  for (const auto& [index, where] : left_out) {
    onnx::TensorProto& tensor = *model.mutable_graph()->mutable_initializer(index);
    const std::string numbers =
        bytes.substr(static_cast<size_t>(where.offset), static_cast<size_t>(where.bytes));
    if (tensor.name() == "floats") {
      const auto* at = reinterpret_cast<const float*>(numbers.data());
      for (size_t i = 0; i < numbers.size() / sizeof(float); ++i) tensor.add_float_data(at[i]);
    } else if (tensor.name() == "doubles") {
      const auto* at = reinterpret_cast<const double*>(numbers.data());
      for (size_t i = 0; i < numbers.size() / sizeof(double); ++i) tensor.add_double_data(at[i]);
    } else {
      tensor.set_raw_data(numbers);
    }
  }
  return model;
}

TEST(MessageParts, LeaveOutLargeNumbersAndNothingElse) {
  const std::string bytes = Mixed().SerializeAsString();
  onnx::ModelProto model;
  std::map<int, SkippedTensor> left_out;
  ASSERT_TRUE(ParseModelMessage(bytes, model, left_out));
  std::string names;
  for (const auto& [index, where] : left_out)
    names += model.graph().initializer(index).name() + " ";
  EXPECT_EQ(names, "large just floats doubles ");
  EXPECT_LT(model.ByteSizeLong(), bytes.size() - 190'000);
  EXPECT_EQ(PutBack(model, left_out, bytes).SerializeAsString(), bytes);
}

TEST(MessageParts, MergeGraphsAsProtobufDoes) {
  onnx::ModelProto second;
  AddTensor(second, "more", onnx::TensorProto::FLOAT).set_raw_data(Numbers(50'000, 4));
  const std::string bytes = Mixed().SerializeAsString() + second.SerializeAsString();
  onnx::ModelProto model, expected;
  std::map<int, SkippedTensor> left_out;
  ASSERT_TRUE(ParseModelMessage(bytes, model, left_out));
  ASSERT_TRUE(expected.ParseFromString(bytes));
  EXPECT_EQ(PutBack(model, left_out, bytes).SerializeAsString(), expected.SerializeAsString());
}

TEST(MessageParts, LeaveTheLastOfTwoNumbersToProtobuf) {
  onnx::TensorProto first, last;
  first.set_raw_data(Numbers(50'000, 5));
  last.set_raw_data(Numbers(60'000, 6));
  const std::string tensor = first.SerializeAsString() + last.SerializeAsString();
  onnx::ModelProto model;
  ASSERT_TRUE(model.mutable_graph()->add_initializer()->ParseFromString(""));
  std::string graph = "\x2a";  // field 5, a message
  for (size_t size = tensor.size(); size > 0; size >>= 7)
    graph += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
  graph += tensor;
  std::string bytes = "\x3a";  // field 7, a message
  for (size_t size = graph.size(); size > 0; size >>= 7)
    bytes += static_cast<char>((size & 0x7F) | (size > 0x7F ? 0x80 : 0));
  bytes += graph;
  std::map<int, SkippedTensor> left_out;
  model.Clear();
  ASSERT_TRUE(ParseModelMessage(bytes, model, left_out));
  EXPECT_TRUE(left_out.empty());
  EXPECT_EQ(model.graph().initializer(0).raw_data(), last.raw_data());
}

TEST(MessageParts, RefuseWhatProtobufRefuses) {
  const std::string bytes = Mixed().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 997) {
    const std::string cut = bytes.substr(0, size);
    onnx::ModelProto model, expected;
    std::map<int, SkippedTensor> left_out;
    EXPECT_EQ(ParseModelMessage(cut, model, left_out), expected.ParseFromString(cut)) << size;
  }
}

TEST(MessageParts, NestAsDeepAsProtobufAllows) {
  onnx::GraphProto graph;
  for (int depth = 0; depth < 40; ++depth) {
    onnx::ModelProto model, expected;
    *model.mutable_graph() = graph;
    const std::string bytes = model.SerializeAsString();
    std::map<int, SkippedTensor> left_out;
    EXPECT_EQ(ParseModelMessage(bytes, model, left_out), expected.ParseFromString(bytes)) << depth;
    onnx::GraphProto outer;
    outer.add_node()->add_attribute()->mutable_g()->Swap(&graph);
    graph.Swap(&outer);
  }
}

}  // namespace
}  // namespace ridge
