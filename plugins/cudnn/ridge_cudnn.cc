// Graphs of cuDNN: the functions of ridge/backend/cuda/cudnn/cudnn_abi.h.
//
// A question becomes a graph of cuDNN's frontend.  Its plan is the engine that the question names,
// or the first of cuDNN's own choices that obeys the question.  The numbers of tensors in a graph
// are their slots + 1.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ridge/backend/cuda/cudnn/cudnn_abi.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;
}

namespace {

namespace fe = cudnn_frontend;
using fe::DataType_t;
using fe::graph::Graph;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;
using Extents = std::vector<int64_t>;

void WriteText(const std::string& text, char* to, int64_t bytes) {
  if (bytes <= 0) return;
  const size_t size = std::min(text.find('\n'), static_cast<size_t>(bytes) - 1);
  std::snprintf(to, static_cast<size_t>(bytes), "%s", text.substr(0, size).c_str());
}

// What is caught at the edge.
[[noreturn]] void Refuse(const std::string& why) { throw std::runtime_error(why); }
void Must(fe::error_t error) {
  if (error.is_bad()) Refuse(error.get_message());
}
void Must(cudnnStatus_t status, const char* function) {
  if (status != CUDNN_STATUS_SUCCESS)
    Refuse(std::string(function) + " failed: " + fe::detail::get_error_string(status));
}

struct Session {
  cudnnHandle_t handle = nullptr;  // none for a device that is not here
  void* stream = nullptr;          // the handle's
  std::shared_ptr<fe::DeviceProperties> device;
  int32_t architecture = 0;

  ~Session() {
    if (handle != nullptr) (void)fe::detail::destroy_handle(handle);
  }
};

struct Plan {
  Session& session;
  Graph graph;
  std::vector<int> slots;  // those of the graph, ascending
};

DataType_t TypeOf(int32_t type) {
  switch (type) {
    case RIDGE_CUDNN_F16:
      return DataType_t::HALF;
    case RIDGE_CUDNN_BF16:
      return DataType_t::BFLOAT16;
    default:
      return DataType_t::FLOAT;
  }
}

// The tensors of a question as those of a graph.
class Operands {
 public:
  Operands(const RidgeCudnnQuestion& question, Plan& plan) : question_(question), plan_(plan) {}

  Tensor Input(int slot) {
    plan_.slots.push_back(slot);
    Tensor_attributes attributes;
    Describe(slot, attributes);
    return plan_.graph.tensor(attributes);
  }
  void Output(int slot, const Tensor& tensor) {
    plan_.slots.push_back(slot);
    Describe(slot, *tensor);
    tensor->set_output(true);
  }
  bool Has(int slot) const { return question_.tensors[slot].rank > 0; }

 private:
  void Describe(int slot, Tensor_attributes& attributes) const {
    const RidgeCudnnTensor& tensor = question_.tensors[slot];
    if (tensor.rank < 1 || tensor.rank > RIDGE_CUDNN_MOST_DIMS)
      Refuse("tensor " + std::to_string(slot) + " is missing");
    attributes.set_uid(slot + 1)
        .set_dim(Extents(tensor.dims, tensor.dims + tensor.rank))
        .set_stride(Extents(tensor.strides, tensor.strides + tensor.rank))
        .set_data_type(TypeOf(tensor.type))
        .set_alignment(tensor.alignment);
  }

  const RidgeCudnnQuestion& question_;
  Plan& plan_;
};

template <typename Attributes>
Attributes AttentionAttributes(const RidgeCudnnQuestion& question) {
  Attributes attributes;
  attributes.set_attn_scale(static_cast<float>(question.scale));
  if (question.causal == 0) return attributes;
  attributes.set_diagonal_alignment(question.causal == 1 ? fe::DiagonalAlignment_t::TOP_LEFT
                                                         : fe::DiagonalAlignment_t::BOTTOM_RIGHT);
  attributes.set_diagonal_band_right_bound(0);
  return attributes;
}

void AddAttention(const RidgeCudnnQuestion& question, Operands& operands, Graph& graph) {
  auto attributes = AttentionAttributes<fe::graph::SDPA_attributes>(question);
  attributes.set_generate_stats(true);
  const Tensor q = operands.Input(RIDGE_CUDNN_Q), k = operands.Input(RIDGE_CUDNN_K),
               v = operands.Input(RIDGE_CUDNN_V);
  const auto [y, log_sum] = graph.sdpa(q, k, v, attributes);
  operands.Output(RIDGE_CUDNN_O, y);
  operands.Output(RIDGE_CUDNN_LOG_SUM, log_sum);
}

void AddAttentionGrad(const RidgeCudnnQuestion& question, Operands& operands, Graph& graph) {
  auto attributes = AttentionAttributes<fe::graph::SDPA_backward_attributes>(question);
  attributes.set_deterministic_algorithm(question.same_bits != 0);
  const Tensor q = operands.Input(RIDGE_CUDNN_Q), k = operands.Input(RIDGE_CUDNN_K),
               v = operands.Input(RIDGE_CUDNN_V);
  const Tensor y = operands.Input(RIDGE_CUDNN_O), log_sum = operands.Input(RIDGE_CUDNN_LOG_SUM),
               dy = operands.Input(RIDGE_CUDNN_DO);
  const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, y, dy, log_sum, attributes);
  operands.Output(RIDGE_CUDNN_DQ, dq);
  operands.Output(RIDGE_CUDNN_DK, dk);
  operands.Output(RIDGE_CUDNN_DV, dv);
}

template <typename Attributes>
Attributes ConvAttributes(const RidgeCudnnQuestion& q) {
  const auto list = [&](const int64_t* values) { return Extents(values, values + q.axes); };
  return Attributes()
      .set_pre_padding(list(q.before))
      .set_post_padding(list(q.after))
      .set_stride(list(q.stride))
      .set_dilation(list(q.dilation));
}

// What stands between two nodes is f32.
Tensor AddSteps(const RidgeCudnnQuestion& question, Operands& operands, Graph& graph, Tensor y) {
  const auto pointwise = [](fe::PointwiseMode_t mode) {
    return fe::graph::Pointwise_attributes().set_mode(mode);
  };
  if (operands.Has(RIDGE_CUDNN_BIAS)) {
    y->set_data_type(DataType_t::FLOAT);
    y = graph.pointwise(y, operands.Input(RIDGE_CUDNN_BIAS), pointwise(fe::PointwiseMode_t::ADD));
  }
  if (question.relu != 0) {
    y->set_data_type(DataType_t::FLOAT);
    y = graph.pointwise(y, pointwise(fe::PointwiseMode_t::RELU_FWD));
  }
  return y;
}

void AddConv(const RidgeCudnnQuestion& question, Operands& operands, Graph& graph) {
  if (question.op == RIDGE_CUDNN_CONV) {
    const Tensor x = operands.Input(RIDGE_CUDNN_X), w = operands.Input(RIDGE_CUDNN_W);
    const Tensor sums =
        graph.conv_fprop(x, w, ConvAttributes<fe::graph::Conv_fprop_attributes>(question));
    operands.Output(RIDGE_CUDNN_Y, AddSteps(question, operands, graph, sums));
  } else if (question.op == RIDGE_CUDNN_CONV_GRAD_INPUT) {
    const Tensor dy = operands.Input(RIDGE_CUDNN_Y), w = operands.Input(RIDGE_CUDNN_W);
    operands.Output(
        RIDGE_CUDNN_X,
        graph.conv_dgrad(dy, w, ConvAttributes<fe::graph::Conv_dgrad_attributes>(question)));
  } else {
    const Tensor dy = operands.Input(RIDGE_CUDNN_Y), x = operands.Input(RIDGE_CUDNN_X);
    operands.Output(
        RIDGE_CUDNN_W,
        graph.conv_wgrad(dy, x, ConvAttributes<fe::graph::Conv_wgrad_attributes>(question)));
  }
}

void AddNodes(const RidgeCudnnQuestion& question, Plan& plan) {
  Operands operands(question, plan);
  switch (question.op) {
    case RIDGE_CUDNN_ATTENTION:
      AddAttention(question, operands, plan.graph);
      break;
    case RIDGE_CUDNN_ATTENTION_GRAD:
      AddAttentionGrad(question, operands, plan.graph);
      break;
    case RIDGE_CUDNN_CONV:
    case RIDGE_CUDNN_CONV_GRAD_INPUT:
    case RIDGE_CUDNN_CONV_GRAD_WEIGHT:
      AddConv(question, operands, plan.graph);
      break;
    default:
      Refuse("the plug-in does not know this operator");
  }
  std::sort(plan.slots.begin(), plan.slots.end());
}

bool IsF32(const RidgeCudnnQuestion& question) {
  return std::all_of(question.tensors, question.tensors + RIDGE_CUDNN_SLOTS,
                     [](const RidgeCudnnTensor& tensor) {
                       return tensor.rank == 0 || tensor.type == RIDGE_CUDNN_F32;
                     });
}

// Sums are of f32 products; an f32 operand is not rounded.
void Deselect(const RidgeCudnnQuestion& question, Graph& graph) {
  std::vector<fe::NumericalNote_t> notes = {fe::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
  if (question.same_bits != 0) notes.push_back(fe::NumericalNote_t::NONDETERMINISTIC);
  // The units for products would round f32 operands to 10 bits; Winograd's sums are less exact.
  if (IsF32(question) && question.tf32 == 0) {
    notes.push_back(fe::NumericalNote_t::TENSOR_CORE);
    notes.push_back(fe::NumericalNote_t::DOWN_CONVERT_INPUTS);
    notes.push_back(fe::NumericalNote_t::WINOGRAD);
  }
  graph.deselect_numeric_notes(notes);
  graph.deselect_workspace_greater_than(question.most_workspace);
}

void Configure(Session& session, Graph& graph) {
  graph.set_sm_version(session.architecture)
      .set_intermediate_data_type(DataType_t::FLOAT)
      .set_compute_data_type(DataType_t::FLOAT);
  if (session.device) graph.set_device_properties(session.device);
}

void BuildEngine(Session& session, Graph& graph, int32_t engine) {
  if (engine == 0) {
    Must(graph.check_support());
    Must(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));
  } else if (session.handle != nullptr) {
    Must(graph.build_plan_at_index(session.handle, engine - 1));
  } else {
    Must(graph.build_plan_at_index(engine - 1));
  }
}

void Build(const RidgeCudnnQuestion& question, Plan& plan, RidgeCudnnAnswer& answer) {
  Graph& graph = plan.graph;
  Configure(plan.session, graph);
  AddNodes(question, plan);
  Must(graph.validate());
  if (plan.session.handle != nullptr) {
    Must(graph.build_operation_graph(plan.session.handle));
  } else {
    Must(graph.build_operation_graph());
  }
  Must(graph.create_execution_plans({fe::HeurMode_t::A}));
  Deselect(question, graph);
  answer.engines = static_cast<int32_t>(graph.get_execution_plan_count());
  BuildEngine(plan.session, graph, question.engine);
}

void Describe(const Plan& plan, int64_t most_workspace, RidgeCudnnAnswer& answer) {
  std::string name;
  Must(plan.graph.get_workspace_size(answer.workspace_bytes));
  Must(plan.graph.get_plan_name(name));
  WriteText(name, answer.name, sizeof answer.name);
  if (answer.workspace_bytes > most_workspace)
    Refuse("needs " + std::to_string(answer.workspace_bytes) + " bytes of workspace");
}

void OpenCudnn(const char* library, const char* runtime) {
  if (fe::cudnn_dlhandle != nullptr) return;
  if (runtime != nullptr) {
    (void)dlopen(runtime, RTLD_NOW | RTLD_GLOBAL);
    // The frontend would prefer a libcudart of CUDA 12.
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", runtime, /*overwrite=*/0);
  }
  fe::cudnn_dlhandle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
  if (fe::cudnn_dlhandle == nullptr) Refuse(dlerror());
}

// ---- the functions; what they throw becomes text

void* Open(const char* library, const char* runtime, const char* device, int32_t architecture,
           char* error, int64_t error_bytes) {
  try {
    OpenCudnn(library, runtime);
    auto session = std::make_unique<Session>();
    session->architecture = architecture;
    if (device == nullptr) {
      Must(fe::detail::create_handle(&session->handle), "cudnnCreate");
    } else {
      session->device = std::make_shared<fe::DeviceProperties>();
      Must(session->device->deserialize({device, device + std::strlen(device)}));
    }
    return session.release();
  } catch (const std::exception& exception) {
    WriteText(exception.what(), error, error_bytes);
    return nullptr;
  }
}

void Close(void* session) { delete static_cast<Session*>(session); }

int64_t Version(void* /*session*/) {
  return static_cast<int64_t>(fe::detail::get_backend_version());
}

void* Make(void* session, const RidgeCudnnQuestion* question, RidgeCudnnAnswer* answer) {
  *answer = {};
  try {
    auto plan = std::unique_ptr<Plan>(new Plan{*static_cast<Session*>(session), {}, {}});
    Build(*question, *plan, *answer);
    Describe(*plan, question->most_workspace, *answer);
    return plan.release();
  } catch (const std::exception& exception) {
    WriteText(exception.what(), answer->text, sizeof answer->text);
    if (answer->text[0] == '\0') WriteText("refused", answer->text, sizeof answer->text);
    return nullptr;
  }
}

void Drop(void* plan) { delete static_cast<Plan*>(plan); }

int32_t Enqueue(void* made, void* stream, void* const* tensors, void* workspace, char* error,
                int64_t error_bytes) {
  try {
    Plan& plan = *static_cast<Plan*>(made);
    Session& session = plan.session;
    if (session.handle == nullptr) Refuse("its GPU is not here");
    if (stream != session.stream) {
      Must(fe::detail::set_stream(session.handle, static_cast<cudaStream_t>(stream)),
           "cudnnSetStream");
      session.stream = stream;
    }
    std::array<void*, RIDGE_CUDNN_SLOTS> at{};
    for (size_t i = 0; i < plan.slots.size(); ++i) at[i] = tensors[plan.slots[i]];
    Must(plan.graph.execute(session.handle, at.data(), static_cast<int>(plan.slots.size()),
                            workspace));
    return 0;
  } catch (const std::exception& exception) {
    WriteText(exception.what(), error, error_bytes);
    return 1;
  }
}

constexpr RidgeCudnnApi kApi = {RIDGE_CUDNN_ABI, Open, Close, Version, Make, Drop, Enqueue};

}  // namespace

extern "C" __attribute__((visibility("default"))) const RidgeCudnnApi* ridge_cudnn_api() {
  return &kApi;
}
