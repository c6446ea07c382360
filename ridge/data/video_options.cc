#include "ridge/data/video_options.h"

#include <fmt/format.h>

#include <charconv>

#include "ridge/data/batch_spec.h"
#include "ridge/data/container/video_plugin.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr double kMostFps = 1000;

template <typename T>
std::optional<T> Parse(const std::string& text) {
  T number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || rest != text.data() + text.size()) return std::nullopt;
  return number;
}

Status TakeCount(const std::string& spec, const std::string& key, const std::string& value,
                 int64_t most, std::optional<int64_t>& count) {
  count = Parse<int64_t>(value);
  if (count && *count >= 1 && *count <= most) return Status();
  return InvalidArgument(
      fmt::format("data '{}': {} is '{}'; it must be from 1 to {}", spec, key, value, most));
}

Status TakeFps(const std::string& spec, const std::string& value, std::optional<double>& fps) {
  fps = Parse<double>(value);
  if (fps && *fps > 0 && *fps <= kMostFps) return Status();
  return InvalidArgument(
      fmt::format("data '{}': fps is '{}'; it must be above 0, to {}", spec, value, kMostFps));
}

Status TakeOption(const std::string& spec, const std::string& key, const std::string& value,
                  VideoOptions& options) {
  if (key == "fps") return TakeFps(spec, value, options.fps);
  if (key == "every") return TakeCount(spec, key, value, kMostVideoFrames, options.every);
  if (key == "frames") return TakeCount(spec, key, value, kMostClipFrames, options.frames);
  if (key == "stride") return TakeCount(spec, key, value, kMostVideoFrames, options.stride);
  return TakePictureOption(spec, key, value, options.pictures);
}

bool IsChannels(int64_t extent) { return extent == 1 || extent == 3; }

// Of [N,C,H,W], [N,H,W,C] and [C,N,H,W], where 3 frames of 3 channels are any; 0: it is no clip.
int64_t FramesOf(const Dims& dims) {
  if (dims.size() != 4) return 0;
  if (IsChannels(dims[1]) || IsChannels(dims[3])) return dims[0];
  return IsChannels(dims[0]) ? dims[1] : 0;
}

// One frame of a clip; what is no clip of so many stays.
Dims DimsOfFrame(const Dims& dims, int64_t frames) {
  Dims frame = dims;
  if (dims.size() == 1 && dims[0] % frames == 0) frame[0] /= frames;
  if (dims.size() == 3 && dims[0] == frames) frame.erase(frame.begin());
  if (FramesOf(dims) == 0) return frame;
  const bool frames_first = dims[0] == frames && (IsChannels(dims[1]) || IsChannels(dims[3]));
  frame.erase(frame.begin() + (frames_first ? 0 : 1));
  return frame;
}

bool TakesClipsOf(const Dims& dims, int64_t frames) {
  return FramesOf(dims) == frames || (IsChannels(dims[0]) && dims[1] == frames);
}

}  // namespace

TensorType VideoTarget::TypeOf(const TensorType& picture) const {
  if (!makes_clips()) return picture;
  TensorType clip = picture;
  clip.dims.insert(clip.dims.begin(), frames);
  if (picture.dims.size() == 2) clip.dims.push_back(1);
  return clip;
}

std::string SamplesOf(const VideoTarget& target) {
  return target.makes_clips() ? fmt::format("clips of {} frames", target.frames) : "single frames";
}

Result<VideoOptions> ParseVideoOptions(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = {"every", "fps", "frames", "stride"};
  keys.insert(keys.end(), PictureKeys().begin(), PictureKeys().end());
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, keys));
  VideoOptions options;
  options.path = spec.path;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakeOption(name, key, value, options));
  if (!options.fps || !options.every) return options;
  return InvalidArgument(fmt::format("data '{}': has both every and fps; give one", name));
}

Result<VideoTarget> PlanVideos(const std::string& spec, const VideoOptions& options,
                               const DataOptions& data) {
  VideoTarget target;
  if (data.preprocessing != nullptr && data.preprocessing->clips)
    target = *data.preprocessing->clips;
  if (options.fps || options.every) {
    target.fps = options.fps.value_or(VideoTarget().fps);
    target.every = options.every.value_or(0);
  }
  if (options.frames) target.frames = target.stride = *options.frames;
  if (options.stride && !target.makes_clips()) {
    return InvalidArgument(fmt::format(
        "data '{}': stride is of clips, and frames is not given. hint: {},frames=16", spec, spec));
  }
  target.stride = options.stride.value_or(target.stride);
  return target;
}

Result<DataOptions> OptionsOfFrames(const std::string& spec, const VideoTarget& target,
                                    const DataOptions& data) {
  DataOptions of_frame = data;
  const Field* image = FindFieldByName("image", data.model_inputs);
  if (image == nullptr) return of_frame;
  const Dims& dims = image->type.dims;
  const int64_t frames = FramesOf(dims);
  if (frames > 0 && !TakesClipsOf(dims, target.frames)) {
    return InvalidArgument(
        fmt::format("data '{}': makes {}; the model takes clips, {} {}. hint: frames={}", spec,
                    SamplesOf(target), image->name, TypeToString(image->type), frames));
  }
  if (!target.makes_clips()) return of_frame;
  Field& frame = of_frame.model_inputs[static_cast<size_t>(image - data.model_inputs.data())];
  frame.type.dims = DimsOfFrame(dims, target.frames);
  return of_frame;
}

}  // namespace ridge
