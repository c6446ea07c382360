// CudnnAsker: cuDNN's answers about convolutions on a device that is not here, which the table
// lacks (plan/hardware/conv_workspaces.h).
//
// RIDGE_CUDNN=FOLDER names what scripts/build_cudnn_ask.sh made: cudnn_ask, a program of its own,
// the library, and devices/ID.json for each device that was described to it.  It is started at the
// first question.  Its answers are kept in the cache folder by the library's version and the
// device's description.  Where it fails, a warning says why, once, and nothing more is asked.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "ridge/cli/line_child.h"
#include "ridge/plan/hardware/conv_workspaces.h"

namespace ridge::cli {

struct CudnnPlaces {
  std::string folder;        // of RIDGE_CUDNN; "": not set
  std::string cache_folder;  // where answers are kept
  double seconds = 20;       // that an answer may take
};
CudnnPlaces CudnnPlacesHere();

class CudnnAsker {
 public:
  using Say = std::function<void(const std::string&)>;

  // `say` is told what goes on, `warn` what failed.
  CudnnAsker(std::string device, CudnnPlaces places, Say say, Say warn);
  // Keeps the answers.
  ~CudnnAsker();

  std::optional<ConvReply> Ask(const std::string& question);

 private:
  Status Start();
  Result<std::string> AnswerTo(const std::string& question);
  void LoadKept();
  void Keep() const;
  std::optional<ConvReply> Fail(const std::string& what);

  const std::string device_;
  const CudnnPlaces places_;
  const Say say_, warn_;
  std::string description_;  // of the device, as a file
  bool is_started_ = false, has_failed_ = false;
  LineChild child_;
  std::string library_;                         // "cuDNN 9.19.0"
  std::map<std::string, std::string> answers_;  // by question, as cudnn_ask gives them
  int64_t asked_ = 0;
  double asked_s_ = 0;
};

// Asks by RIDGE_CUDNN; null where that is not set.
AskConv AskCudnn(const std::string& device, CudnnAsker::Say say);

}  // namespace ridge::cli
