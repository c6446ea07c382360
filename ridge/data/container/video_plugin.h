// VideoIndex, VideoDecoder: the frames of a video's file, by the plug-in libridge_video.so.
//
// The plug-in is looked for when the first file is opened: $RIDGE_VIDEO (its path), then
// ../lib/ridge and the folder of the program, then where the system looks for libraries.
#pragma once
#include <memory>
#include <span>
#include <string>

#include "ridge/core/owned_fd.h"
#include "ridge/core/status.h"
#include "ridge/data/container/video_abi.h"
#include "ridge/data/file_stamp.h"

namespace ridge {

constexpr int64_t kMostVideoPixels = int64_t{1} << 25;  // of a frame
constexpr int64_t kMostVideoFrames = int64_t{1} << 24;  // of a file

struct OpenVideo {
  OwnedFd fd;
  FileStamp stamp;
};

// Fails with kInvalidData: "FILE: reason".
Result<OpenVideo> OpenVideoFile(const std::string& path);

// What a file's packets tell.  Thread-safe.
class VideoIndex {
 public:
  // Fails with kUnsupported where there is no plug-in, or one of another version; with kInvalidData
  // for the file: "FILE: reason".
  static Result<VideoIndex> Read(const std::string& path, const OpenVideo& file);

  const RidgeVideoInfo& info() const { return info_; }
  double Seconds(int64_t frame) const { return api_->seconds(index_.get(), frame); }

 private:
  friend class VideoDecoder;
  VideoIndex() = default;

  const RidgeVideoApi* api_ = nullptr;
  std::shared_ptr<void> index_;
  RidgeVideoInfo info_{};
};

// Decodes one file, for one thread at a time.
class VideoDecoder {
 public:
  // Fails with kInvalidData; the message is the bare reason.
  static Result<VideoDecoder> Open(const VideoIndex& index, OwnedFd fd);

  // Writes [height, width, 3] to the front of `rgb`: the same bytes whatever was read before.
  // Fails with kInvalidData; the message is the bare reason.  REQUIRES: such a frame, and its
  // bytes.
  Status Read(int64_t frame, std::span<uint8_t> rgb);

 private:
  VideoDecoder() = default;

  const RidgeVideoApi* api_ = nullptr;
  std::shared_ptr<void> index_;  // outlives decoder_
  OwnedFd fd_;
  std::unique_ptr<void, void (*)(void*)> decoder_{nullptr, nullptr};
};

}  // namespace ridge
