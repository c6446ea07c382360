// Files come from anywhere: every conformance case of ONNX is changed in one to four places (an
// extent, a type, a number, an attribute, an input, the operator set) and imported.  Each is
// answered or refused with a message; what is answered is evaluated.  Meant for the sanitizers,
// too.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <random>

#include "onnx/onnx-ml.pb.h"
#include "ridge/core/files.h"
#include "ridge/graph/interpret.h"
#include "ridge/onnx/file/tensor.h"
#include "ridge/onnx/import/import.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

fs::path DataFolder() {
  const char* source = std::getenv("RIDGE_SOURCE_DIR");
  return fs::path(source != nullptr ? source : ".") /
         "build/deps/onnx-tests/onnx/backend/test/data/node";
}

std::vector<fs::path> Cases() {
  std::vector<fs::path> cases;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(DataFolder(), error)) {
    if (fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

class Damage {
 public:
  explicit Damage(uint32_t seed) : random_(seed) {}

  size_t Pick(size_t n) { return random_() % n; }

  void Apply(onnx::ModelProto& model) {
    for (size_t i = 1 + Pick(4); i > 0; --i) ChangeOne(model);
  }

 private:
  int64_t Integer() {
    static constexpr int64_t kEdges[] = {std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max(),
                                         int64_t{1} << 62,
                                         int64_t{1} << 40,
                                         -(int64_t{1} << 33),
                                         1000};
    return Pick(3) == 0 ? kEdges[Pick(6)] : static_cast<int64_t>(Pick(8)) - 3;
  }

  void ChangeOne(onnx::ModelProto& model) {
    onnx::GraphProto& graph = *model.mutable_graph();
    switch (Pick(8)) {
      case 0:
        model.mutable_opset_import(0)->set_version(static_cast<int64_t>(7 + Pick(20)));
        return;
      case 1:
      case 2:
        if (graph.input_size() > 0) ChangeType(*graph.mutable_input(Any(graph.input_size())));
        return;
      case 3:
        if (graph.initializer_size() > 0)
          ChangeNumbers(*graph.mutable_initializer(Any(graph.initializer_size())));
        return;
      case 4:
        ChangeInputs(graph);
        return;
      default:
        ChangeAttribute(*graph.mutable_node(Any(graph.node_size())));
    }
  }

  int Any(int count) { return static_cast<int>(Pick(static_cast<size_t>(count))); }

  void ChangeType(onnx::ValueInfoProto& info) {
    auto& type = *info.mutable_type()->mutable_tensor_type();
    if (Pick(5) == 0) {
      type.set_elem_type(1 + Any(16));
      return;
    }
    auto& dims = *type.mutable_shape()->mutable_dim();
    if (dims.empty() || Pick(4) == 0) {
      dims.Add()->set_dim_value(static_cast<int64_t>(Pick(4)));
    } else if (Pick(4) == 0) {
      dims.RemoveLast();
    } else {
      dims[Any(dims.size())].set_dim_value(Pick(8) == 0 ? int64_t{1} << 30
                                                        : static_cast<int64_t>(Pick(6)));
    }
  }

  void ChangeNumbers(onnx::TensorProto& proto) {
    Result<Tensor> read = CopyTensor(proto, "");
    if (!read.ok()) return;
    Tensor tensor(read->type());
    std::copy_n(static_cast<const char*>(read->data()), read->bytes(),
                static_cast<char*>(tensor.mutable_data()));
    if (tensor.elements() > 0) {
      const auto at = static_cast<int64_t>(Pick(static_cast<size_t>(tensor.elements())));
      StoreFromDouble(tensor.type().dtype, tensor.mutable_data(), at,
                      static_cast<double>(Integer()));
    }
    const std::string name = proto.name();
    proto.Clear();
    StoreTensor(tensor, name, proto);
    if (Pick(4) == 0 && tensor.type().rank() == 1) proto.clear_dims();
  }

  void ChangeInputs(onnx::GraphProto& graph) {
    onnx::NodeProto& node = *graph.mutable_node(Any(graph.node_size()));
    if (node.input_size() == 0) return;
    const int i = Any(node.input_size());
    switch (Pick(3)) {
      case 0:
        node.set_input(i, "");
        return;
      case 1:
        node.mutable_input()->RemoveLast();
        return;
      default:
        node.set_input(i, node.input(Any(node.input_size())));
    }
  }

  void ChangeAttribute(onnx::NodeProto& node) {
    if (node.attribute_size() == 0) return;
    onnx::AttributeProto& attr = *node.mutable_attribute(Any(node.attribute_size()));
    if (Pick(8) == 0) {
      node.mutable_attribute()->RemoveLast();
    } else if (attr.type() == onnx::AttributeProto::INT) {
      attr.set_i(Integer());
    } else if (attr.type() == onnx::AttributeProto::FLOAT) {
      attr.set_f(Pick(2) == 0 ? NAN : static_cast<float>(Integer()));
    } else if (attr.type() == onnx::AttributeProto::STRING) {
      attr.set_s(Pick(2) == 0 ? "" : "a,b->...");
    } else if (attr.type() == onnx::AttributeProto::INTS) {
      if (attr.ints_size() == 0 || Pick(4) == 0) attr.add_ints(Integer());
      attr.set_ints(Any(attr.ints_size()), Integer());
      if (Pick(4) == 0) attr.mutable_ints()->RemoveLast();
    }
  }

  std::mt19937 random_;
};

// Inputs of integers become initializers, so that axes and shapes are known.
void AddKnownInputs(const fs::path& folder, Damage& damage, onnx::ModelProto& model) {
  for (int i = 0; i < model.graph().input_size(); ++i) {
    const fs::path file = folder / ("test_data_set_0/input_" + std::to_string(i) + ".pb");
    const Result<std::string> bytes = ReadFile(file.string());
    onnx::TensorProto proto;
    if (!bytes.ok() || !proto.ParseFromString(*bytes)) continue;
    if (proto.data_type() != onnx::TensorProto::INT64 && damage.Pick(4) != 0) continue;
    proto.set_name(model.graph().input(i).name());
    *model.mutable_graph()->add_initializer() = proto;
  }
}

// Kernels and pads of a million cost the references time that no flop counts.
bool HasLargeAttribute(const Graph& graph) {
  constexpr int64_t kMost = 64;
  const auto large = [](int64_t v) { return v > kMost || v < -kMost; };
  for (const Node& node : graph.nodes()) {
    for (const auto& [name, attr] : node.attrs) {
      const auto* list = std::get_if<std::vector<int64_t>>(&attr);
      if (list != nullptr && std::any_of(list->begin(), list->end(), large)) return true;
    }
  }
  return false;
}

// What evaluating costs: elements of all values, and flops.
int64_t WorkOf(const Graph& graph) {
  int64_t work = 0;
  constexpr int64_t kMost = int64_t{1} << 40;
  for (const ValueInfo& info : graph.values()) work += std::min(info.type.elements(), kMost);
  for (const Node& node : graph.nodes())
    work += std::min(CallCost(*node.op, graph.Call(node)).flops, kMost);
  return work;
}

void ImportDamaged(const fs::path& folder, const std::string& bytes, uint32_t seed) {
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  Damage damage(seed);
  AddKnownInputs(folder, damage, model);
  damage.Apply(model);
  SCOPED_TRACE(folder.filename().string() + " " + std::to_string(seed));
  const Result<OnnxModel> read = OnnxModel::Parse(model.SerializeAsString(), "damaged");
  if (!read.ok()) {
    EXPECT_FALSE(read.status().message().empty());
    return;
  }
  const Result<OnnxImport> import = ImportOnnx(*read, {});
  if (!import.ok()) {
    EXPECT_FALSE(import.status().message().empty());
    EXPECT_NE(import.status().code(), ErrorCode::kInternal) << import.status().message();
    return;
  }
  if (HasLargeAttribute(import->graph) || WorkOf(import->graph) > (int64_t{1} << 20)) return;
  std::map<std::string, Tensor> given;
  for (const ValueInfo& info : import->graph.values()) {
    if (info.kind == ValueKind::kInput) given[info.name] = Tensor(info.type);
  }
  const Result<std::vector<Tensor>> values = EvaluateGraph(import->graph, given);
  EXPECT_TRUE(values.ok()) << values.status().message();
}

TEST(DamagedNodes, AreImportedOrRefused) {
  const std::vector<fs::path> cases = Cases();
  if (cases.empty()) GTEST_SKIP() << "no conformance cases; scripts/setup.sh brings them";
  constexpr uint32_t kTries = 4;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Result<std::string> bytes = ReadFile((cases[i] / "model.onnx").string());
    ASSERT_TRUE(bytes.ok()) << bytes.status().message();
    for (uint32_t t = 0; t < kTries; ++t)
      ImportDamaged(cases[i], *bytes, static_cast<uint32_t>(i) * kTries + t);
  }
}

}  // namespace
}  // namespace ridge
