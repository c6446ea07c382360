// Asks cuDNN which engine it takes for an operator on a GPU that is not here, and how many bytes of
// workspace that engine wants.  Needs neither a GPU nor a driver, and answers alike where there are
// some: it opens planning_driver/libcuda.so.1 beside itself.  Attention and norms need NVRTC.
//
//   cudnn_ask LIBRARY DEVICE < questions > answers
//
// LIBRARY is libcudnn.so.9, opened at run time.  DEVICE is a file of the device's properties in
// JSON, as cuDNN's device property descriptor takes them.  A question is a line, as the headers of
// questions beside this file describe it, such as
//   conv bf16 bf16 256x3x224x224 64x3x7x7 stride 2x2 padding 3x3x3x3 dilation 1x1
// Its answer is a line of three numbers and a name, separated by spaces: bytes of cuDNN's first
// choice, bytes of its first deterministic choice, 1 if both are the same engine, the first's name.
// "refused REASON" answers what cuDNN has no engine for.  The first line is cuDNN's version.
// Exits with 2 where a library or DEVICE can't be used or a question can't be read.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "attention_question.h"
#include "conv_question.h"
#include "norm_question.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace cudnn_ask {
namespace {

using QuestionReader = Question (*)(const std::string& line);

Question ReadQuestion(const std::string& line) {
  static const std::map<std::string, QuestionReader> readers = {
      {"attention", ReadAttention},
      {"attention_grad", ReadAttention},
      {"batch_norm", ReadNorm},
      {"conv", ReadConvolution},
      {"conv_grad_input", ReadConvolution},
      {"conv_grad_weight", ReadConvolution},
      {"layer_norm_grad", ReadNorm}};
  const std::string op = line.substr(0, line.find(' '));
  if (!readers.contains(op)) Fail("'" + op + "' is no operator that is asked about");
  return readers.at(op)(line);
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
  q.add_nodes(graph, deterministic);
  Choice choice;
  const auto good = [&](fe::error_t error) {
    if (error.is_bad()) choice.refusal = error.get_message();
    return error.is_good();
  };
  if (!good(graph.validate()) || !good(graph.build_operation_graph()) ||
      !good(graph.create_execution_plans({fe::HeurMode_t::A})))
    return choice;
  if (deterministic) graph.deselect_numeric_notes({fe::NumericalNote_t::NONDETERMINISTIC});
  if (q.exact) graph.deselect_numeric_notes({fe::NumericalNote_t::TENSOR_CORE});
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

void* Open(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) Fail(dlerror());
  return handle;
}

// cuDNN takes the libcuda.so.1 that is open.
void OpenPlanningDriver() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  Open(program.parent_path() / "planning_driver/libcuda.so.1");
}

int Run(const char* library, const char* device_path) {
  OpenPlanningDriver();
  fe::cudnn_dlhandle = Open(library);
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
}  // namespace cudnn_ask

int main(int argc, char** argv) {
  using namespace cudnn_ask;
  if (argc != 3) Fail("usage: cudnn_ask LIBRARY DEVICE < questions > answers");
  try {
    return Run(argv[1], argv[2]);
  } catch (const std::exception& error) {  // a symbol that the library lacks
    Fail(error.what());
  }
}
