// CudnnSession: graphs of cuDNN, by the plug-in libridge_cudnn.so.
#pragma once
#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ridge/backend/cuda/cudnn/cudnn_abi.h"
#include "ridge/backend/cuda/library_search.h"

namespace ridge::cuda {

inline constexpr int64_t kLeastCudnn = 91400;

class CudnnSession;

// A graph that is ready to run.
class CudnnPlan {
 public:
  CudnnPlan(std::shared_ptr<CudnnSession> session, void* plan, const RidgeCudnnAnswer& answer);
  ~CudnnPlan();
  CudnnPlan(const CudnnPlan&) = delete;
  CudnnPlan& operator=(const CudnnPlan&) = delete;

  int32_t engines() const { return engines_; }  // in cuDNN's list for the graph
  int64_t workspace_bytes() const { return workspace_bytes_; }
  const std::string& name() const { return name_; }  // "eng62_k2=5_k13=1"
  // Device addresses by RidgeCudnnSlot.  Fails with kDevice.
  Status Enqueue(void* stream, std::span<void* const, RIDGE_CUDNN_SLOTS> tensors, void* workspace);

 private:
  const std::shared_ptr<CudnnSession> session_;
  void* const plan_;
  const int32_t engines_;
  const int64_t workspace_bytes_;
  const std::string name_;
};

class CudnnSession : public std::enable_shared_from_this<CudnnSession> {
 public:
  // Finds the plug-in, cuDNN and CUDA's runtime.  Of the GPU whose context the calling thread has,
  // of compute capability `architecture` / 10; or of one that is not here, which `device` describes
  // (plugins/cudnn/devices).  Fails with kUnsupported: something is not found, or not of this
  // version; with kDevice where two installations of cuDNN are mixed.
  static Result<std::shared_ptr<CudnnSession>> Open(const LibrarySearch& search, int architecture,
                                                    const char* device = nullptr);
  ~CudnnSession();
  CudnnSession(const CudnnSession&) = delete;
  CudnnSession& operator=(const CudnnSession&) = delete;

  const std::string& version() const { return version_; }  // "cuDNN 9.14.0"
  const std::string& path() const { return path_; }  // "/usr/lib/x86_64-linux-gnu/libcudnn.so.9"
  // Fails with kUnsupported and cuDNN's reason.
  Result<std::shared_ptr<CudnnPlan>> Make(const RidgeCudnnQuestion& question);
  // At most `most` plans of different names, cuDNN's best first; what Make() gives is the first.
  // Fails as Make() does.
  Result<std::vector<std::shared_ptr<CudnnPlan>>> MakeSeveral(RidgeCudnnQuestion question,
                                                              size_t most);

 private:
  friend class CudnnPlan;
  CudnnSession(const RidgeCudnnApi& api, void* session, std::string path)
      : api_(api), session_(session), path_(std::move(path)) {}
  Status CheckVersion();

  const RidgeCudnnApi& api_;
  void* const session_;
  const std::string path_;
  std::string version_;
};

}  // namespace ridge::cuda
