// Decoders stay open between reads, at most as many as threads read at once: a thread that needs
// another file closes the one that was left.
#include "ridge/data/video_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "ridge/core/files.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/container/sample_sets.h"
#include "ridge/data/container/video_plugin.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/preprocessing.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr double kMostFps = 1000;

const FileKind& VideoFiles() {
  static const FileKind kind = {
      "video",
      "video.mp4",
      {".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".ts", ".ogv", ".3gp"}};
  return kind;
}

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

// Which frames of a video are samples.
struct FramePick {
  int64_t every = 0;  // 0: by time
  double fps = 1;
};

struct Argument {
  std::string folder;
  FramePick pick;
  PictureOptions pictures;
};

template <typename T>
bool Parse(const std::string& text, T& number) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && rest == text.data() + text.size();
}

Status TakePickOption(const std::string& spec, const std::string& key, const std::string& value,
                      FramePick& pick) {
  if (key == "every") {
    if (Parse(value, pick.every) && pick.every >= 1 && pick.every <= kMostVideoFrames)
      return Status();
    return InvalidArgument(fmt::format("data '{}': every is '{}'; it must be from 1 to {}", spec,
                                       value, kMostVideoFrames));
  }
  if (Parse(value, pick.fps) && pick.fps > 0 && pick.fps <= kMostFps) return Status();
  return InvalidArgument(
      fmt::format("data '{}': fps is '{}'; it must be above 0, to {}", spec, value, kMostFps));
}

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  std::vector<std::string> keys = {"every", "fps"};
  keys.insert(keys.end(), PictureKeys().begin(), PictureKeys().end());
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, keys));
  Argument argument;
  bool by_time = false;
  for (const auto& [key, value] : spec.options) {
    const bool picks = key == "every" || key == "fps";
    RIDGE_RETURN_IF_ERROR(picks ? TakePickOption(name, key, value, argument.pick)
                                : TakePictureOption(name, key, value, argument.pictures));
    by_time = by_time || key == "fps";
  }
  if (by_time && argument.pick.every > 0)
    return InvalidArgument(fmt::format("data '{}': has both every and fps; give one", name));
  argument.folder = WithoutSlash(spec.path);
  return argument;
}

std::vector<int32_t> PickFrames(const VideoIndex& video, const FramePick& pick) {
  std::vector<int32_t> frames;
  const int64_t count = video.info().frames;
  if (pick.every > 0) {
    for (int64_t k = 0; k < count; k += pick.every) frames.push_back(static_cast<int32_t>(k));
    return frames;
  }
  // Frame k is shown from its time until the next one's.  The tolerance is of time stamps in ms.
  constexpr double kTolerance = 0.001;
  double wanted = 0;
  for (int64_t k = 0; k < count; ++k) {
    const bool last = k + 1 == count;
    const double until = last ? video.Seconds(k) + kTolerance : video.Seconds(k + 1) - kTolerance;
    if (until <= wanted) continue;
    frames.push_back(static_cast<int32_t>(k));
    wanted = std::ceil(until * pick.fps) / pick.fps;
  }
  return frames;
}

// ---- the files

struct Video {
  VideoIndex index;
  std::vector<int32_t> frames;  // that are samples
};

// The videos of a set, and their frames as one run of samples.
struct VideoSet {
  FileIndex files;
  std::vector<Video> videos;
  std::vector<int64_t> ends;  // of each video's samples

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  int64_t VideoOf(int64_t sample) const {
    return std::upper_bound(ends.begin(), ends.end(), sample) - ends.begin();
  }
  int64_t FrameOf(int64_t video, int64_t sample) const {
    const auto v = static_cast<size_t>(video);
    const int64_t begin = v == 0 ? 0 : ends[v - 1];
    return videos[v].frames[static_cast<size_t>(sample - begin)];
  }
  void Add(const std::string& path, const FileStamp& stamp, int64_t label, Video video) {
    files.Add(path, stamp, label);
    ends.push_back(size() + static_cast<int64_t>(video.frames.size()));
    videos.push_back(std::move(video));
  }
  int64_t resident_bytes() const {
    auto bytes =
        static_cast<int64_t>(videos.capacity() * sizeof(Video) + ends.capacity() * sizeof(int64_t));
    for (const Video& video : videos) {
      bytes += video.index.info().index_bytes +
               static_cast<int64_t>(video.frames.capacity() * sizeof(int32_t));
    }
    return bytes + files.resident_bytes();
  }
};

ImageHeader HeaderOf(const RidgeVideoInfo& info) {
  return {ImageFormat::kPng, /*channels=*/3, info.width, info.height, info.decoder_bytes};
}

Status AddVideo(const std::string& path, int64_t label, const FramePick& pick,
                PictureReader& reader, VideoSet& set) {
  RIDGE_ASSIGN_OR_RETURN(const OpenVideo file, OpenVideoFile(path));
  RIDGE_ASSIGN_OR_RETURN(VideoIndex index, VideoIndex::Read(path, file));
  const Status admitted = reader.Admit(HeaderOf(index.info()));
  if (!admitted.ok()) return BadData(path, admitted.message());
  std::vector<int32_t> frames = PickFrames(index, pick);
  frames.shrink_to_fit();
  set.Add(path, file.stamp, label, {std::move(index), std::move(frames)});
  return Status();
}

Result<uint64_t> HashOfFile(const std::string& path, const FileStamp& stamp) {
  RIDGE_ASSIGN_OR_RETURN(const OpenVideo file, OpenVideoFile(path));
  if (file.stamp != stamp) return BadData(path, kPictureChanged);
  ContentHash hash;
  std::vector<char> buffer(size_t{1} << 20);
  for (int64_t at = 0;;) {
    const ssize_t got =
        ::pread(file.fd.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return BadData(path, fmt::format("cannot be read at byte {}: {}", at, std::strerror(errno)));
    if (got == 0) return hash.value();
    hash.Add({buffer.data(), static_cast<size_t>(got)});
    at += got;
  }
}

// Videos that are held out behind the others.
Result<int64_t> HoldOut(const std::string& name, double fraction, VideoSet& set) {
  std::vector<uint64_t> hashes;
  for (int64_t i = 0; i < set.files.size(); ++i) {
    RIDGE_ASSIGN_OR_RETURN(const uint64_t hash, HashOfFile(set.files.Path(i), set.files.stamp(i)));
    hashes.push_back(hash);
  }
  RIDGE_ASSIGN_OR_RETURN(const std::vector<bool> held_out, ChooseHeldOut(name, fraction, hashes));
  VideoSet ordered;
  int64_t training = 0;
  for (const bool side : {false, true}) {
    for (size_t i = 0; i < held_out.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      if (held_out[i] == side)
        ordered.Add(set.files.Path(at), set.files.stamp(at), set.files.label(at),
                    std::move(set.videos[i]));
    }
    if (!side) training = ordered.size();
  }
  set = std::move(ordered);
  return set.size() - training;
}

// ---- the source

class DecoderPool {
 public:
  Result<VideoDecoder> Take(int64_t video, const VideoIndex& index, OpenVideo file) {
    {
      const std::lock_guard lock(mutex_);
      const auto same = std::find_if(idle_.begin(), idle_.end(), [&](const Idle& idle) {
        return idle.video == video && idle.stamp == file.stamp;
      });
      const auto found = same != idle_.end() || idle_.empty() ? same : idle_.begin();
      if (found != idle_.end()) {
        std::optional<Idle> taken(std::move(*found));
        const bool fits = found == same;
        idle_.erase(found);
        if (fits) return std::move(taken->decoder);
      }
    }
    return VideoDecoder::Open(index, std::move(file.fd));
  }

  void Give(int64_t video, const FileStamp& stamp, VideoDecoder decoder) {
    const std::lock_guard lock(mutex_);
    idle_.push_back({video, stamp, std::move(decoder)});
  }

 private:
  struct Idle {
    int64_t video = 0;
    FileStamp stamp;
    VideoDecoder decoder;
  };
  std::mutex mutex_;  // guards idle_
  std::vector<Idle> idle_;
};

class VideoSource : public Source, public EncodedSamples {
 public:
  VideoSource(std::string name, std::vector<Field> fields, PictureReader reader, VideoSet set)
      : Source(std::move(name), std::move(fields), set.size()),
        reader_(std::move(reader)),
        set_(std::move(set)),
        hashes_(set_.videos.size()) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    const int64_t video = set_.VideoOf(at.index);
    if (field == 0) return ReadFrame(at, video, scratch, static_cast<uint8_t*>(out));
    const int64_t label = set_.files.label(video);
    std::memcpy(out, &label, sizeof label);
    return Status();
  }
  int64_t scratch_bytes() const override { return reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override {
    const int64_t video = set_.VideoOf(index);
    return fmt::format("{} frame {}", set_.files.Path(video), set_.FrameOf(video, index));
  }
  int64_t resident_bytes() const override {
    return set_.resident_bytes() +
           static_cast<int64_t>(hashes_.capacity() * sizeof(std::optional<uint64_t>));
  }
  Status AddContent(int64_t index, std::vector<char>&, ContentHash& hash) const override {
    const int64_t video = set_.VideoOf(index);
    RIDGE_ASSIGN_OR_RETURN(const uint64_t of_file, HashOf(video));
    hash.Add(
        fmt::format("{:x} {} {}", of_file, set_.FrameOf(video, index), set_.files.label(video)));
    return Status();
  }

 private:
  Status ReadFrame(SampleAt at, int64_t video, std::span<char> scratch, uint8_t* out) const {
    const VideoIndex& index = set_.videos[static_cast<size_t>(video)].index;
    RIDGE_ASSIGN_OR_RETURN(OpenVideo file, OpenVideoFile(set_.files.Path(video)));
    const FileStamp& stamp = set_.files.stamp(video);
    if (file.stamp != stamp) return BadData(set_.files.Path(video), kPictureChanged);
    auto decoder = decoders_.Take(video, index, std::move(file));
    if (!decoder.ok()) return BadData(Origin(at.index), decoder.status().message());
    const int64_t frame = set_.FrameOf(video, at.index);
    const auto decode = [&](std::span<uint8_t> rgb) { return decoder->Read(frame, rgb); };
    const Status read =
        reader_.ReadPixels(HeaderOf(index.info()), decode, scratch, out, at.crop, at.stages);
    decoders_.Give(video, stamp, std::move(*decoder));
    return read.ok() ? read : BadData(Origin(at.index), read.message());
  }

  Result<uint64_t> HashOf(int64_t video) const {
    const std::lock_guard lock(hash_mutex_);
    std::optional<uint64_t>& hash = hashes_[static_cast<size_t>(video)];
    if (!hash) {
      RIDGE_ASSIGN_OR_RETURN(hash, HashOfFile(set_.files.Path(video), set_.files.stamp(video)));
    }
    return *hash;
  }

  const PictureReader reader_;
  const VideoSet set_;
  mutable DecoderPool decoders_;
  mutable std::mutex hash_mutex_;  // guards hashes_
  mutable std::vector<std::optional<uint64_t>> hashes_;
};

SourcePtr MakeSource(const std::string& name, std::vector<Field> fields, PictureReader reader,
                     VideoSet set) {
  set.files.ShrinkToFit();
  set.videos.shrink_to_fit();
  set.ends.shrink_to_fit();
  return std::make_shared<VideoSource>(name, std::move(fields), std::move(reader), std::move(set));
}

}  // namespace

Result<DataSplits> OpenVideoFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(VideoFiles(), name, argument.folder, options));
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, argument.pictures, options));
  const bool splits_training = options.hold_out > 0 && folders.validation.empty();
  int64_t held_out = 0;
  const auto open = [&](const std::string& set_folder,
                        std::vector<std::string>& others) -> Result<SourcePtr> {
    VideoSet set;
    PictureReader reader(pictures.target);
    const auto add = [&](const std::string& path, int64_t label) {
      return AddVideo(path, label, argument.pick, reader, set);
    };
    RIDGE_RETURN_IF_ERROR(
        WalkClassFiles(VideoFiles(), name, folders, set_folder, options, add, others));
    if (splits_training && set_folder == folders.train) {
      RIDGE_ASSIGN_OR_RETURN(held_out, HoldOut(name, options.hold_out, set));
    }
    return MakeSource(name, {PictureField(pictures), LabelField(folders)}, std::move(reader),
                      std::move(set));
  };
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenClassSets(VideoFiles(), name, folders, open));
  if (held_out > 0) SetTraining({splits.train, held_out}, splits);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = folders.classes;
  preprocessing->pictures = pictures;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> VideoFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(VideoFiles(), name, argument.folder, options));
  DataFacts facts;
  if (const auto target = KnownTarget(argument.pictures, options))
    facts.fields.push_back({"image", target->type()});
  facts.fields.push_back(LabelField(folders));
  facts.sizes = ClassSizes(folders);
  return facts;
}

bool IsVideoFile(const std::string& path) { return VideoFiles().Has(path); }

Result<std::vector<std::string>> FindVideos(const std::string& folder) {
  return FindFiles(VideoFiles(), folder);
}

Result<SourcePtr> OpenVideos(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadVideo& on_bad) {
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, PictureOptions(), options));
  VideoSet set;
  PictureReader reader(pictures.target);
  for (const std::string& path : paths) {
    RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(path, path));
    const Status status = AddVideo(argument.folder, /*label=*/0, argument.pick, reader, set);
    if (status.ok()) continue;
    if (!on_bad || !IsBadRecord(status)) return status;
    on_bad(path, status);
  }
  if (set.size() == 0) return SourcePtr();
  return MakeSource(name, {PictureField(pictures)}, std::move(reader), std::move(set));
}

}  // namespace ridge
