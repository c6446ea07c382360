// Asks cuDNN which engine it takes for a convolution on a GPU that is not here, and how many bytes
// of workspace that engine wants.  Needs neither a GPU nor a driver.
//
//   cudnn_ask LIBRARY DEVICE < questions > answers
//
// LIBRARY is libcudnn.so.9, opened at run time.  DEVICE is a file of the device's properties in
// JSON, as cuDNN's device property descriptor takes them.  A question is a line as ConvQuestion
// (ridge/plan/hardware/conv_workspaces.h) writes it:
//   conv bf16 bf16 256x3x224x224 64x3x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1
// the types of the operands and of the result, then x and w of y = conv(x, w); conv may end with
// "with bias", "with relu" or "with bias,relu".
// Its answer is a line of three numbers and a name, separated by spaces: bytes of cuDNN's first
// choice, bytes of its first deterministic choice, 1 if both are the same engine, the first's name.
// "refused REASON" answers what cuDNN has no engine for.  The first line is cuDNN's version.
// Exits with 2 where LIBRARY or DEVICE can't be used or a question can't be read.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace {

namespace fe = cudnn_frontend;
using fe::DataType_t;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Extents = std::vector<int64_t>;

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "cudnn_ask: %s\n", message.c_str());
  std::exit(2);
}

struct Question {
  std::string op;  // conv, conv_grad_input, conv_grad_weight
  DataType_t type = DataType_t::FLOAT, out = DataType_t::FLOAT;
  bool tf32 = false, bias = false, relu = false;
  Extents x, w, stride, padding, dilation;  // padding: before each dimension, then after each
};

DataType_t ReadType(const std::string& name, const std::string& line) {
  static const std::map<std::string, DataType_t> types = {{"bf16", DataType_t::BFLOAT16},
                                                          {"f16", DataType_t::HALF},
                                                          {"tf32", DataType_t::FLOAT},
                                                          {"f32", DataType_t::FLOAT}};
  if (!types.contains(name)) Fail("'" + name + "' is no type: " + line);
  return types.at(name);
}

Extents ReadExtents(const std::string& text, const std::string& line) {
  Extents extents;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, 'x');) {
    char* end = nullptr;
    extents.push_back(std::strtoll(part.c_str(), &end, 10));
    if (part.empty() || *end != '\0') Fail("'" + text + "' is no list of extents: " + line);
  }
  return extents;
}

void ReadSteps(const std::string& text, const std::string& line, Question& q) {
  q.bias = text.starts_with("bias");
  q.relu = text.ends_with("relu");
  if (text != "bias" && text != "relu" && text != "bias,relu")
    Fail("'" + text + "' is no list of steps: " + line);
}

Question ReadQuestion(const std::string& line) {
  std::istringstream in(line);
  Question q;
  std::string type, out, x, w, key, value;
  in >> q.op >> type >> out >> x >> w;
  q.type = ReadType(type, line);
  q.out = ReadType(out, line);
  q.tf32 = type == "tf32";
  q.x = ReadExtents(x, line);
  q.w = ReadExtents(w, line);
  const std::map<std::string, Extents*> fields = {
      {"stride", &q.stride}, {"padding", &q.padding}, {"dilation", &q.dilation}};
  while (in >> key >> value) {
    if (key == "with") {
      ReadSteps(value, line, q);
      continue;
    }
    if (!fields.contains(key)) Fail("'" + key + "' is no attribute: " + line);
    *fields.at(key) = ReadExtents(value, line);
  }
  const size_t axes = q.stride.size();
  if (axes == 0 || q.x.size() != axes + 2 || q.w.size() != axes + 2 || q.dilation.size() != axes ||
      q.padding.size() != 2 * axes)
    Fail("extents disagree: " + line);
  return q;
}

Extents OutputExtents(const Question& q) {
  Extents y = {q.x[0], q.w[0]};
  const size_t axes = q.stride.size();
  for (size_t i = 0; i < axes; ++i) {
    const int64_t covered = q.dilation[i] * (q.w[i + 2] - 1) + 1;
    y.push_back((q.x[i + 2] + q.padding[i] + q.padding[axes + i] - covered) / q.stride[i] + 1);
  }
  return y;
}

// Channels last.
Extents Strides(const Extents& dims) {
  Extents strides(dims.size());
  strides[1] = 1;
  int64_t next = dims[1];
  for (size_t i = dims.size(); i-- > 2; next *= dims[i]) strides[i] = next;
  strides[0] = next;
  return strides;
}

std::shared_ptr<Tensor_attributes> Input(Graph& graph, const char* name, const Extents& dims) {
  return graph.tensor(Tensor_attributes().set_name(name).set_dim(dims).set_stride(Strides(dims)));
}

template <typename Attributes>
Attributes AttributesOf(const Question& q) {
  const auto middle = q.padding.begin() + static_cast<std::ptrdiff_t>(q.stride.size());
  return Attributes()
      .set_pre_padding(Extents(q.padding.begin(), middle))
      .set_post_padding(Extents(middle, q.padding.end()))
      .set_stride(q.stride)
      .set_dilation(q.dilation);
}

void SetOutput(const std::shared_ptr<Tensor_attributes>& tensor, DataType_t type,
               const Extents& dims) {
  tensor->set_dim(dims).set_stride(Strides(dims)).set_data_type(type).set_output(true);
}

// What stands between two nodes is f32.
std::shared_ptr<Tensor_attributes> AddSteps(Graph& graph, const Question& q,
                                            std::shared_ptr<Tensor_attributes> y) {
  const auto pointwise = [](fe::PointwiseMode_t mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode);
  };
  if (q.bias) {
    y->set_data_type(DataType_t::FLOAT);
    Extents dims(q.x.size(), 1);
    dims[1] = q.w[0];
    y = graph.pointwise(y, Input(graph, "bias", dims), pointwise(fe::PointwiseMode_t::ADD));
  }
  if (q.relu) {
    y->set_data_type(DataType_t::FLOAT);
    y = graph.pointwise(y, pointwise(fe::PointwiseMode_t::RELU_FWD));
  }
  return y;
}

void AddNode(Graph& graph, const Question& q) {
  const Extents y = OutputExtents(q);
  if (q.op == "conv") {
    const auto plain = graph.conv_fprop(Input(graph, "x", q.x), Input(graph, "w", q.w),
                                        AttributesOf<fe::graph::Conv_fprop_attributes>(q));
    SetOutput(AddSteps(graph, q, plain), q.out, y);
  } else if (q.op == "conv_grad_input") {
    SetOutput(graph.conv_dgrad(Input(graph, "dy", y), Input(graph, "w", q.w),
                               AttributesOf<fe::graph::Conv_dgrad_attributes>(q)),
              q.out, q.x);
  } else if (q.op == "conv_grad_weight") {
    SetOutput(graph.conv_wgrad(Input(graph, "dy", y), Input(graph, "x", q.x),
                               AttributesOf<fe::graph::Conv_wgrad_attributes>(q)),
              q.out, q.w);
  } else {
    Fail("'" + q.op + "' is no operator that is asked about");
  }
}

struct Choice {
  int64_t bytes = 0;
  std::string engine, refusal;
};

Choice Ask(const Question& q, const std::shared_ptr<fe::DeviceProperties>& device, int sm,
           bool deterministic) {
  Graph graph;
  graph.set_device_properties(device)
      .set_sm_version(sm)
      .set_io_data_type(q.type)
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
  AddNode(graph, q);
  Choice choice;
  const auto good = [&](fe::error_t error) {
    if (error.is_bad()) choice.refusal = error.get_message();
    return error.is_good();
  };
  if (!good(graph.validate()) || !good(graph.build_operation_graph()) ||
      !good(graph.create_execution_plans({fe::HeurMode_t::A})))
    return choice;
  if (deterministic) graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  // Without tf32 the units for products would round operands to 10 bits.
  if (q.type == DataType_t::FLOAT && !q.tf32)
    graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE});
  if (!good(graph.check_support()) ||
      !good(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE)) ||
      !good(graph.get_workspace_size(choice.bytes)) || !good(graph.get_plan_name(choice.engine)))
    return choice;
  return choice;
}

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

void Answer(const std::string& line, const std::shared_ptr<fe::DeviceProperties>& device, int sm) {
  const Question q = ReadQuestion(line);
  const Choice first = Ask(q, device, sm, /*deterministic=*/false);
  const Choice same_bits = Ask(q, device, sm, /*deterministic=*/true);
  const std::string& refusal = first.refusal.empty() ? same_bits.refusal : first.refusal;
  if (!refusal.empty()) {
    std::printf("refused %s\n", FirstLine(refusal).c_str());
  } else {
    std::printf("%lld %lld %d %s\n", static_cast<long long>(first.bytes),
                static_cast<long long>(same_bits.bytes), first.engine == same_bits.engine ? 1 : 0,
                first.engine.c_str());
  }
  std::fflush(stdout);
}

// Of "deviceVer": 900 for 9.0; cuDNN calls that architecture 90.
int ArchitectureOf(const std::string& properties, const std::string& path) {
  const nlohmann::json json = nlohmann::json::parse(properties, nullptr, /*exceptions=*/false);
  if (!json.is_object() || !json.contains("deviceVer") || !json["deviceVer"].is_number_integer())
    Fail(path + ": is no JSON of a device's properties with deviceVer");
  return json["deviceVer"].get<int>() / 10;
}

int Run(const char* library, const char* device_path) {
  fe::cudnn_dlhandle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (fe::cudnn_dlhandle == nullptr) Fail(dlerror());
  std::ifstream file(device_path);
  const std::string properties{std::istreambuf_iterator<char>(file), {}};
  const int sm = ArchitectureOf(properties, device_path);
  const auto device = std::make_shared<fe::DeviceProperties>();
  fe::error_t error = device->deserialize({properties.begin(), properties.end()});
  if (error.is_bad()) Fail(std::string(device_path) + ": " + error.get_message());
  std::printf("%zu\n", fe::detail::get_backend_version());
  for (std::string line; std::getline(std::cin, line);) Answer(line, device, sm);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: cudnn_ask LIBRARY DEVICE < questions > answers");
  try {
    return Run(argv[1], argv[2]);
  } catch (const std::exception& error) {  // a symbol that the library lacks
    Fail(error.what());
  }
}
