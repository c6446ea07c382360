// libridge_cudnn.so that runs on the fake driver's streams: the functions of cudnn_abi.h by loops
// over what a question's strides say.  It refuses what cuDNN refuses of them.
//
//   RIDGE_FAKE_CUDNN_ABI=2            of another version
//   RIDGE_FAKE_CUDNN_VERSION=91300    cuDNN 9.13.0
//   RIDGE_FAKE_CUDNN_FAIL=1           its work fails
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "tests/fake_cuda/cudnn/host_graphs.h"
#include "tests/fake_cuda/fake_hooks.h"

namespace ridge::fake_cuda {
namespace {

constexpr int64_t kWorkspace = 1000;  // bytes of every plan, all of which it overwrites
// Of every graph; the first of the list does not run it.
constexpr uintptr_t kAlignment = 16;
constexpr int32_t kEngines = 3, kBrokenEngine = 1, kFirstEngine = 2;

int64_t Setting(const char* name, int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}

struct Plan {
  RidgeCudnnQuestion question;
};

// Work of a stream, with addresses of the host.
struct Work {
  RidgeCudnnQuestion question;
  HostTensors tensors;
  void* workspace;
};

cuda::DriverCode RunWork(void* argument) {
  const Work& work = *static_cast<Work*>(argument);
  std::memset(work.workspace, 0xff, kWorkspace);
  RunGraph(work.question, work.tensors);
  return cuda::DriverCode::kSuccess;
}
void FreeWork(void* argument) { delete static_cast<Work*>(argument); }

template <typename Function>
Function OfDriver(const char* name) {
  static void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(::dlsym(driver, name));
}

int32_t Fail(const char* text, char* error, int64_t bytes) {
  std::snprintf(error, static_cast<size_t>(bytes), "%s", text);
  return 1;
}

void* Open(const char*, const char*, const char* device, int32_t, char* error, int64_t bytes) {
  if (device == nullptr) return new int(0);
  (void)Fail("the fake has no absent devices", error, bytes);
  return nullptr;
}
void Close(void* session) { delete static_cast<int*>(session); }
int64_t Version(void*) { return Setting("RIDGE_FAKE_CUDNN_VERSION", 91900); }

void* Make(void*, const RidgeCudnnQuestion* question, RidgeCudnnAnswer* answer) {
  *answer = {};
  const char* reason = RefusalOf(*question);
  if (kWorkspace > question->most_workspace) reason = "workspace";
  answer->engines = kEngines;
  if (question->engine == kBrokenEngine) reason = "the engine does not run this graph";
  if (reason != nullptr) {
    (void)Fail(reason, answer->text, sizeof answer->text);
    return nullptr;
  }
  answer->workspace_bytes = kWorkspace;
  const bool first = question->engine == 0 || question->engine == kFirstEngine;
  std::snprintf(answer->name, sizeof answer->name, first ? "fake%d" : "fake%d_k%d", question->op,
                question->engine);
  return new Plan{*question};
}
void Drop(void* plan) { delete static_cast<Plan*>(plan); }

int32_t Enqueue(void* made, void* stream, void* const* tensors, void* workspace, char* error,
                int64_t bytes) {
  if (Setting("RIDGE_FAKE_CUDNN_FAIL", 0) != 0) return Fail("asked to fail", error, bytes);
  const auto inside = OfDriver<InsideFunction>("ridge_fake_cuda_inside");
  const auto host = [&](const void* at) { return inside(reinterpret_cast<cuda::DevicePtr>(at)); };
  const Plan& plan = *static_cast<Plan*>(made);
  for (int slot = 0; slot < RIDGE_CUDNN_SLOTS; ++slot) {
    const RidgeCudnnTensor& tensor = plan.question.tensors[slot];
    if (tensor.rank > 0 && reinterpret_cast<uintptr_t>(tensors[slot]) % kAlignment != 0)
      return Fail("a tensor's address is not aligned", error, bytes);
  }
  auto work = std::make_unique<Work>(Work{plan.question, {}, host(workspace)});
  for (int slot = 0; slot < RIDGE_CUDNN_SLOTS; ++slot) {
    if (plan.question.tensors[slot].rank > 0)
      work->tensors[static_cast<size_t>(slot)] = host(tensors[slot]);
  }
  const auto handle = static_cast<cuda::StreamHandle>(stream);
  const auto launch = OfDriver<LaunchFunction>("ridge_fake_cuda_launch");
  const bool ok = launch(handle, RunWork, work.release(), FreeWork) == cuda::DriverCode::kSuccess;
  return ok ? 0 : Fail("the launch failed", error, bytes);
}

}  // namespace
}  // namespace ridge::fake_cuda

extern "C" const RidgeCudnnApi* ridge_cudnn_api() {
  namespace fake = ridge::fake_cuda;
  static RidgeCudnnApi api;
  api = {static_cast<int32_t>(fake::Setting("RIDGE_FAKE_CUDNN_ABI", RIDGE_CUDNN_ABI)),
         fake::Open,
         fake::Close,
         fake::Version,
         fake::Make,
         fake::Drop,
         fake::Enqueue};
  return &api;
}
