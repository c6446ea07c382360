#include "ridge/data/container/video_plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "libridge_video.so";
using Text = std::array<char, 1024>;

Status BadData(const std::string& what) { return Status(ErrorCode::kInvalidData, what); }

std::vector<std::string> Places() {
  if (const char* given = std::getenv("RIDGE_VIDEO")) return {given};
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  std::vector<std::string> places;
  if (!error) places = {program.parent_path() / "lib/ridge" / kName, program / kName};
  places.emplace_back(kName);
  return places;
}

Result<const RidgeVideoApi*> LoadPlugin() {
  std::string reasons;
  for (const std::string& place : Places()) {
    std::error_code ignored;
    if (place != kName && !fs::exists(place, ignored)) continue;
    // Stays open: its functions are used as long as the program runs.
    void* library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      if (place != kName) reasons += fmt::format(" ({})", ::dlerror());
      continue;
    }
    const auto entry = reinterpret_cast<RidgeVideoEntry>(::dlsym(library, "ridge_video_api"));
    if (entry != nullptr && entry()->abi == RIDGE_VIDEO_ABI) return entry();
    return Status(ErrorCode::kUnsupported,
                  fmt::format("{} has interface {}; this program has {}. hint: build it again with "
                              "scripts/build_video.sh",
                              place, entry == nullptr ? 0 : entry()->abi, RIDGE_VIDEO_ABI));
  }
  return Status(ErrorCode::kUnsupported,
                fmt::format("videos are read by a plug-in, {}, which is not there{}. hint: "
                            "apt-get install libavformat-dev libavcodec-dev libswscale-dev, then "
                            "scripts/build_video.sh",
                            kName, reasons));
}

const Result<const RidgeVideoApi*>& Plugin() {
  static const auto* plugin = new Result<const RidgeVideoApi*>(LoadPlugin());
  return *plugin;
}

}  // namespace

Result<OpenVideo> OpenVideoFile(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    return BadData(path + ": cannot be opened: " + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return BadData(path + ": is no regular file");
  return OpenVideo{std::move(fd), StampOf(info)};
}

Result<VideoIndex> VideoIndex::Read(const std::string& path, const OpenVideo& file) {
  const auto& plugin = Plugin();
  if (!plugin.ok()) return Status(plugin.status().code(), path + ": " + plugin.status().message());
  VideoIndex video;
  video.api_ = *plugin;
  Text error{};
  void* index = video.api_->index(file.fd.get(), kMostVideoPixels, kMostVideoFrames, error.data(),
                                  static_cast<int64_t>(error.size()));
  if (index == nullptr) return BadData(path + ": " + error.data());
  video.index_ = std::shared_ptr<void>(index, video.api_->drop_index);
  video.info_ = video.api_->info(index);
  return video;
}

Result<VideoDecoder> VideoDecoder::Open(const VideoIndex& index, OwnedFd fd) {
  Text error{};
  VideoDecoder decoder;
  decoder.api_ = index.api_;
  decoder.index_ = index.index_;
  decoder.fd_ = std::move(fd);
  decoder.decoder_ = {index.api_->open(index.index_.get(), decoder.fd_.get(), error.data(),
                                       static_cast<int64_t>(error.size())),
                      index.api_->close};
  if (decoder.decoder_ == nullptr) return BadData(error.data());
  return decoder;
}

Status VideoDecoder::Read(int64_t frame, std::span<uint8_t> rgb) {
  Text error{};
  const int32_t failed = api_->read(decoder_.get(), frame, rgb.data(), error.data(),
                                    static_cast<int64_t>(error.size()));
  return failed == 0 ? Status() : BadData(error.data());
}

}  // namespace ridge
