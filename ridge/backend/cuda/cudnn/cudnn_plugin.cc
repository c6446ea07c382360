#include "ridge/backend/cuda/cudnn/cudnn_plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "ridge/backend/cuda/cudnn/cudnn_parts.h"

namespace ridge::cuda {
namespace {

constexpr const char* kPlugin = "libridge_cudnn.so";
constexpr const char* kBuildHint =
    "hint: a wheel or tarball of ridge, or in its source tree scripts/build_cudnn_plugin.sh";
using Text = std::array<char, 512>;

Status NotHere(const std::string& text) { return Status(ErrorCode::kUnsupported, text); }

Result<const RidgeCudnnApi*> LoadPlugin(const LibrarySearch& search) {
  const Result<OpenLibrary> library = FindLibrary(search, kPlugin);
  if (!library.ok()) return NotHere(fmt::format("{}. {}", library.status().message(), kBuildHint));
  const auto entry = reinterpret_cast<RidgeCudnnEntry>(::dlsym(library->handle, "ridge_cudnn_api"));
  const int32_t abi = entry == nullptr ? 0 : entry()->abi;
  if (abi == RIDGE_CUDNN_ABI) return entry();
  return NotHere(fmt::format("{} has interface {}; this program has {}. {}", library->path, abi,
                             RIDGE_CUDNN_ABI, kBuildHint));
}

std::string VersionText(int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

Result<std::shared_ptr<CudnnSession>> CudnnSession::Open(const LibrarySearch& search,
                                                         int architecture, const char* device) {
  RIDGE_ASSIGN_OR_RETURN(const RidgeCudnnApi* const api, LoadPlugin(search));
  const std::set<std::string> parts_before = OpenCudnnParts();
  RIDGE_ASSIGN_OR_RETURN(
      const OpenLibrary cudnn,
      OpenOptionalLibrary(search, "cuDNN", "libcudnn.so.9", "nvidia-cudnn-cu13"));
  RIDGE_ASSIGN_OR_RETURN(
      const OpenLibrary runtime,
      OpenOptionalLibrary(search, "CUDA runtime", "libcudart.so.13", "nvidia-cuda-runtime"));
  Text error{};
  void* const opened = api->open(cudnn.path.c_str(), runtime.path.c_str(), device, architecture,
                                 error.data(), static_cast<int64_t>(error.size()));
  const Status parts = CheckCudnnParts(cudnn, parts_before);  // the reason, if it has failed
  std::shared_ptr<CudnnSession> session;
  if (opened != nullptr) session.reset(new CudnnSession(*api, opened, cudnn.path));
  RIDGE_RETURN_IF_ERROR(parts);
  if (session == nullptr) return NotHere(fmt::format("{}: {}", cudnn.path, error.data()));
  RIDGE_RETURN_IF_ERROR(session->CheckVersion());
  return session;
}

Status CudnnSession::CheckVersion() {
  const int64_t version = api_.version(session_);
  version_ = "cuDNN " + VersionText(version);
  if (version >= kLeastCudnn) return Status();
  return NotHere(
      fmt::format("{} is {}; {} is the least. hint: pip install nvidia-cudnn-cu13, or set {} to "
                  "its folder",
                  path_, version_, VersionText(kLeastCudnn), "RIDGE_CUDA_PATH"));
}

CudnnSession::~CudnnSession() { api_.close(session_); }

Result<std::shared_ptr<CudnnPlan>> CudnnSession::Make(const RidgeCudnnQuestion& question) {
  RidgeCudnnAnswer answer{};
  void* const plan = api_.make(session_, &question, &answer);
  if (plan == nullptr) return Status(ErrorCode::kUnsupported, answer.text);
  return std::make_shared<CudnnPlan>(shared_from_this(), plan, answer);
}

Result<std::vector<std::shared_ptr<CudnnPlan>>> CudnnSession::MakeSeveral(
    RidgeCudnnQuestion question, size_t most) {
  question.engine = 0;
  RIDGE_ASSIGN_OR_RETURN(std::shared_ptr<CudnnPlan> first, Make(question));
  std::vector<std::shared_ptr<CudnnPlan>> plans = {std::move(first)};
  const int32_t engines = plans.front()->engines();
  for (question.engine = 1; question.engine <= engines && plans.size() < most; ++question.engine) {
    Result<std::shared_ptr<CudnnPlan>> other = Make(question);
    if (!other.ok()) continue;  // it is in the list, and does not run this graph
    const auto same = [&](const auto& plan) { return plan->name() == (*other)->name(); };
    if (std::none_of(plans.begin(), plans.end(), same)) plans.push_back(*std::move(other));
  }
  return plans;
}

CudnnPlan::CudnnPlan(std::shared_ptr<CudnnSession> session, void* plan,
                     const RidgeCudnnAnswer& answer)
    : session_(std::move(session)),
      plan_(plan),
      engines_(answer.engines),
      workspace_bytes_(answer.workspace_bytes),
      name_(answer.name) {}

CudnnPlan::~CudnnPlan() { session_->api_.drop(plan_); }

Status CudnnPlan::Enqueue(void* stream, std::span<void* const, RIDGE_CUDNN_SLOTS> tensors,
                          void* workspace) {
  Text error{};
  const int32_t failed = session_->api_.enqueue(plan_, stream, tensors.data(), workspace,
                                                error.data(), static_cast<int64_t>(error.size()));
  return failed == 0 ? Status()
                     : Status(ErrorCode::kDevice, fmt::format("cuDNN {}: {}", name_, error.data()));
}

}  // namespace ridge::cuda
