// A plan for a GPU that is not here rewrites graphs as the backend does on one that is, and its
// kernels take the bytes of those that run.
#include "ridge/backend/cuda/absent_gpu.h"
#include "ridge/backend/cuda/cuda_backend.h"
#include "ridge/backend/cuda/layouts.h"
#include "ridge/backend/cuda/libraries.h"
#include "ridge/core/test_folder.h"
#include "ridge/plan/hardware/planned_device.h"
#include "tests/fake_cuda/test_driver.h"
#include "tests/ops/case_file.h"

namespace ridge::fake_cuda {
namespace {

const Settings kQuick = {{"RIDGE_FAKE_CUDA_DELAY_US", "0"}};
const cuda::LibrarySearch kFakes = {{RIDGE_FAKE_CUDA_FOLDER}, {}};

// With cuBLASLt and cuDNN.
std::unique_ptr<Backend> OpenBackend(const FakeGpu& gpu, const std::string& cache) {
  Result<cuda::KernelCompiler> compiler =
      cuda::KernelCompiler::Open(gpu.device->gpu(), cache, kFakes);
  EXPECT_TRUE(compiler.ok()) << compiler.status().message();
  Result<cuda::KernelLibraries> libraries =
      cuda::OpenLibraries(*gpu.device, kFakes, [](const std::string&) {});
  EXPECT_TRUE(libraries.ok()) << libraries.status().message();
  EXPECT_EQ(libraries->size(), 2u);
  return cuda::MakeCudaBackend(*gpu.device, *std::move(compiler), std::move(*libraries));
}

// "x0 x2.. y0; x1 y1": inputs and outputs of each group.
std::string TextOf(const std::vector<DTypeGroup>& groups) {
  std::string text;
  for (const DTypeGroup& group : groups) {
    for (const size_t i : group.inputs) text += " x" + std::to_string(i);
    if (group.rest) text += "..";
    for (const size_t i : group.outputs) text += " y" + std::to_string(i);
    text += ";";
  }
  return text;
}

OpCall SgdUpdate(int64_t elements) {
  const TensorType parameter{DType::kF32, {elements}}, rate{DType::kF32, {}};
  return {"sgd_update 'p'", {parameter, parameter, rate}, {parameter}, {}};
}

PlannedDevice PlannedH200() {
  const Result<Hardware> h200 = FindHardware("h200-sxm");
  EXPECT_TRUE(h200.ok()) << h200.status().message();
  return PlannedDevice(*h200, {.operands = DType::kBF16, .kernels = &cuda::KernelsOfAbsentGpus()});
}

TEST(CudaRules, AreThoseOfAPlanForAGpuThatIsNotHere) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> backend = OpenBackend(gpu, folder.File("cubin"));
  const PlannedDevice device = PlannedH200();
  const RewriteRules &here = backend->rules(), &planned = device.rules();

  for (const OpDef& op : AllOps()) {
    EXPECT_EQ(TextOf(here.ReducedGroups(op)), TextOf(planned.ReducedGroups(op))) << op.name;
    if (op.name.starts_with("conv_pool")) continue;  // no kernel of a GPU joins them
    EXPECT_EQ(here.GivesF32Sums(op), planned.GivesF32Sums(op)) << op.name;
  }
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16})
    EXPECT_EQ(here.GivesBiasGradient(dtype), planned.GivesBiasGradient(dtype));
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(here.GroupsPointwise(dtype), planned.GroupsPointwise(dtype)) << DTypeName(dtype);
  }
  EXPECT_EQ(here.MultipleOfProducts().needed, planned.MultipleOfProducts().needed);
  EXPECT_EQ(here.MultipleOfProducts().padded, planned.MultipleOfProducts().padded);
  for (const int64_t elements : {768, 1 << 24})
    EXPECT_EQ(here.GroupsUpdate(SgdUpdate(elements)), planned.GroupsUpdate(SgdUpdate(elements)));
}

struct WorkspaceRange {
  int64_t least = 0, most = 0;
};

// Of the kernels of ours that the backend offers, whatever layouts its operands have; none where a
// library has one.
std::optional<WorkspaceRange> WorkspacesHere(Backend& backend, const OpDef& op,
                                             const OpCall& call) {
  std::vector<LayoutId> channels_last;
  for (const TensorType& type : call.inputs) channels_last.push_back(cuda::ChannelsLastOf(type));
  std::optional<WorkspaceRange> range;
  for (const KernelChoice& choice : backend.Candidates(op, call, channels_last).choices) {
    if (!choice.kernel.starts_with("cuda.")) return std::nullopt;
    const int64_t bytes = choice.workspace_bytes;
    if (!range) range = {bytes, bytes};
    range = {std::min(range->least, bytes), std::max(range->most, bytes)};
  }
  return range;
}

// Of a file, or as large as networks have them.
std::vector<CaseFile> AllCases() {
  std::vector<CaseFile> files;
  for (const std::string& path : AllCaseFiles()) files.push_back(*ReadCaseFile(path));
  const char* const large[][2] = {
      {"layer_norm", "bf16[8,1024,768], f32[768], f32[768]"},
      {"layer_norm_grad", "bf16[8192,768], f32[8192], f32[8192], bf16[8192,768], f32[768]"},
      {"layer_norm_grad", "f32[2048,8192], f32[2048], f32[2048], f32[2048,8192], f32[8192]"},
      {"rms_norm_grad", "bf16[4096,4096], f32[4096], bf16[4096,4096], f32[4096]"},
      {"batch_norm", "bf16[256,64,112,112], f32[64], f32[64]"},
      {"batch_norm", "bf16[256,2048,7,7], f32[2048], f32[2048]"},
      {"batch_norm_grad", "bf16[256,256,56,56], f32[256], f32[256], f32[256], bf16[256,256,56,56]"},
      {"reduce_sum", "bf16[8192,3072] axes=[0]"},
      {"scatter", "f32[50257,768], i64[8192], f32[8192,768] reduction=\"add\""},
      {"attention", "f32[8,12,1024,64], f32[8,12,1024,64], f32[8,12,1024,64] scale=0.125 causal=1"},
      {"matmul", "f32[2,1,64,256], f32[1,5,256,832]"},  // of batches without one stride
      {"attention",
       "bf16[8,12,512,64], bf16[8,12,512,64], bf16[8,12,512,64], bool[512,512] scale=0.125"}};
  for (const auto& [op, words] : large)
    files.push_back(*ParseCaseFile("case " + std::string(words) + "\n", std::string(op) + ".case"));
  return files;
}

// Calls visit(op, call, text) for each valid case.
template <typename Visit>
void ForEachCase(const Visit& visit) {
  for (const CaseFile& file : AllCases()) {
    const OpDef& op = *FindOp(file.op);
    for (const OpCase& op_case : file.cases) {
      if (op_case.kind == OpCase::Kind::kError) continue;
      const Result<OpCall> call = InferCase(op, op_case);
      ASSERT_TRUE(call.ok()) << file.op << ": " << op_case.text;
      visit(op, *call, file.op + ": " + op_case.text);
    }
  }
}

TEST(CudaRules, KernelsOfOursTakeWhatAPlanForAGpuThatIsNotHereSays) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> backend = OpenBackend(gpu, folder.File("cubin"));
  PlannedDevice device = PlannedH200();
  int compared = 0, of_a_layout = 0;
  int64_t most = 0;
  ForEachCase([&](const OpDef& op, const OpCall& call, const std::string& text) {
    const std::optional<WorkspaceRange> here = WorkspacesHere(*backend, op, call);
    if (!here) return;
    const KernelChoice planned = device.Candidates(op, call, {}).choices.back();
    EXPECT_EQ(planned.workspace_bytes, here->most) << text;
    EXPECT_EQ(planned.is_bound, here->least != here->most) << text;
    most = std::max(most, here->most);
    of_a_layout += planned.is_bound ? 1 : 0;
    ++compared;
  });
  EXPECT_GT(compared, 1500);
  EXPECT_GT(of_a_layout, 0);
  EXPECT_GT(most, int64_t{1} << 20);
}

TEST(CudaRules, KernelsJoinWhatAPlanForAGpuThatIsNotHereJoins) {
  const TempFolder folder;
  const FakeGpu gpu(kQuick);
  const std::unique_ptr<Backend> backend = OpenBackend(gpu, folder.File("cubin"));
  const PlannedDevice device = PlannedH200();
  std::map<bool, int> count;
  ForEachCase([&](const OpDef& op, const OpCall& call, const std::string& text) {
    const bool joins = backend->rules().Fuses(op, call);
    EXPECT_EQ(device.rules().Fuses(op, call), joins) << text;
    ++count[joins];
  });
  EXPECT_GT(count[true], 50);
  EXPECT_GT(count[false], 1000);
}

}  // namespace
}  // namespace ridge::fake_cuda
