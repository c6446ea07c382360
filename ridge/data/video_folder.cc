// Decoders stay open between reads, at most as many as threads read at once: a thread that needs
// another file closes the one that was left.
#include "ridge/data/video_folder.h"

#include <fmt/format.h>

#include <algorithm>
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
#include "ridge/data/video_options.h"

namespace ridge {
namespace {

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

// ---- the files

std::vector<int32_t> PickFrames(const VideoIndex& video, const VideoTarget& target) {
  std::vector<int32_t> frames;
  const int64_t count = video.info().frames;
  if (target.every > 0) {
    for (int64_t k = 0; k < count; k += target.every) frames.push_back(static_cast<int32_t>(k));
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
    wanted = std::ceil(until * target.fps) / target.fps;
  }
  return frames;
}

struct Video {
  VideoIndex index;
  std::vector<int32_t> frames;  // that are picked
  int64_t stride = 1;           // of samples, in picked frames
};

// The videos of a set, and their frames or clips as one run of samples.
struct VideoSet {
  int64_t length = 1;  // frames of a sample
  FileIndex files;
  std::vector<Video> videos;
  std::vector<int64_t> ends;  // of each video's samples

  int64_t size() const { return ends.empty() ? 0 : ends.back(); }
  int64_t VideoOf(int64_t sample) const {
    return std::upper_bound(ends.begin(), ends.end(), sample) - ends.begin();
  }
  // Frame k of a sample.
  int64_t FrameOf(int64_t video, int64_t sample, int64_t k) const {
    const auto v = static_cast<size_t>(video);
    const int64_t begin = v == 0 ? 0 : ends[v - 1];
    return videos[v].frames[static_cast<size_t>((sample - begin) * videos[v].stride + k)];
  }
  // REQUIRES: a sample's frames.
  void Add(const std::string& path, const FileStamp& stamp, int64_t label, Video video) {
    files.Add(path, stamp, label);
    const auto picked = static_cast<int64_t>(video.frames.size());
    ends.push_back(size() + (picked - length) / video.stride + 1);
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

VideoSet EmptySet(const VideoTarget& target) {
  VideoSet set;
  set.length = target.makes_clips() ? target.frames : 1;
  return set;
}

Status TooShort(const std::string& path, const VideoTarget& target, size_t picked) {
  const std::string by =
      target.every > 0 ? fmt::format("every={}", target.every) : fmt::format("fps={}", target.fps);
  return BadData(path, fmt::format("has {} frames by {}, a clip {}. hint: frames={}, or {}", picked,
                                   by, target.frames, picked,
                                   target.every > 0 ? "a smaller every" : "a larger fps"));
}

Status AddVideo(const std::string& path, int64_t label, const VideoTarget& target,
                PictureReader& reader, VideoSet& set) {
  RIDGE_ASSIGN_OR_RETURN(const OpenVideo file, OpenVideoFile(path));
  RIDGE_ASSIGN_OR_RETURN(VideoIndex index, VideoIndex::Read(path, file));
  const Status admitted = reader.Admit(HeaderOf(index.info()));
  if (!admitted.ok()) return BadData(path, admitted.message());
  std::vector<int32_t> frames = PickFrames(index, target);
  if (std::ssize(frames) < set.length) return TooShort(path, target, frames.size());
  frames.shrink_to_fit();
  const int64_t stride = target.makes_clips() ? target.stride : 1;
  set.Add(path, file.stamp, label, {std::move(index), std::move(frames), stride});
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
  ordered.length = set.length;
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
    if (field == 0) return ReadFrames(at, video, scratch, static_cast<uint8_t*>(out));
    const int64_t label = set_.files.label(video);
    std::memcpy(out, &label, sizeof label);
    return Status();
  }
  int64_t scratch_bytes() const override { return reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override {
    const int64_t video = set_.VideoOf(index), first = set_.FrameOf(video, index, 0);
    if (set_.length == 1) return FrameName(video, first);
    return fmt::format("{} frames {} to {}", set_.files.Path(video), first,
                       set_.FrameOf(video, index, set_.length - 1));
  }
  int64_t resident_bytes() const override {
    return set_.resident_bytes() +
           static_cast<int64_t>(hashes_.capacity() * sizeof(std::optional<uint64_t>));
  }
  Status AddContent(int64_t index, std::vector<char>&, ContentHash& hash) const override {
    const int64_t video = set_.VideoOf(index);
    RIDGE_ASSIGN_OR_RETURN(const uint64_t of_file, HashOf(video));
    hash.Add(fmt::format("{:x} {}", of_file, set_.files.label(video)));
    for (int64_t k = 0; k < set_.length; ++k)
      hash.Add(std::to_string(set_.FrameOf(video, index, k)));
    return Status();
  }

 private:
  std::string FrameName(int64_t video, int64_t frame) const {
    return fmt::format("{} frame {}", set_.files.Path(video), frame);
  }

  // One behind the other, by one decoder.
  Status ReadFrames(SampleAt at, int64_t video, std::span<char> scratch, uint8_t* out) const {
    const VideoIndex& index = set_.videos[static_cast<size_t>(video)].index;
    RIDGE_ASSIGN_OR_RETURN(OpenVideo file, OpenVideoFile(set_.files.Path(video)));
    const FileStamp& stamp = set_.files.stamp(video);
    if (file.stamp != stamp) return BadData(set_.files.Path(video), kPictureChanged);
    auto decoder = decoders_.Take(video, index, std::move(file));
    if (!decoder.ok()) return BadData(Origin(at.index), decoder.status().message());
    Status read;
    for (int64_t k = 0; k < set_.length && read.ok(); ++k) {
      const int64_t frame = set_.FrameOf(video, at.index, k);
      const auto decode = [&](std::span<uint8_t> rgb) { return decoder->Read(frame, rgb); };
      uint8_t* place = out + k * reader_.target().type().bytes();
      read = reader_.ReadPixels(HeaderOf(index.info()), decode, scratch, place, at.crop, at.stages);
      if (!read.ok()) read = BadData(FrameName(video, frame), read.message());
    }
    decoders_.Give(video, stamp, std::move(*decoder));
    return read;
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

// What becomes of the frames and of each of them.
struct Plan {
  VideoOptions options;
  VideoTarget videos;
  PicturePreprocessing pictures;

  Field image() const {
    Field field = PictureField(pictures);
    field.type = videos.TypeOf(field.type);
    return field;
  }
};

Result<Plan> PlanArgument(const std::string& name, const std::string& text,
                          const DataOptions& data) {
  Plan plan;
  RIDGE_ASSIGN_OR_RETURN(plan.options, ParseVideoOptions(name, text));
  RIDGE_ASSIGN_OR_RETURN(plan.videos, PlanVideos(name, plan.options, data));
  RIDGE_ASSIGN_OR_RETURN(const DataOptions of_frame, OptionsOfFrames(name, plan.videos, data));
  RIDGE_ASSIGN_OR_RETURN(plan.pictures, PlanPictures(name, plan.options.pictures, of_frame));
  return plan;
}

}  // namespace

Result<DataSplits> OpenVideoFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Plan plan, PlanArgument(name, text, options));
  RIDGE_ASSIGN_OR_RETURN(
      const ClassFolders folders,
      FindClassFolders(VideoFiles(), name, WithoutSlash(plan.options.path), options));
  const bool splits_training = options.hold_out > 0 && folders.validation.empty();
  int64_t held_out = 0;
  const auto open = [&](const std::string& set_folder,
                        std::vector<std::string>& others) -> Result<SourcePtr> {
    VideoSet set = EmptySet(plan.videos);
    PictureReader reader(plan.pictures.target);
    const auto add = [&](const std::string& path, int64_t label) {
      return AddVideo(path, label, plan.videos, reader, set);
    };
    RIDGE_RETURN_IF_ERROR(
        WalkClassFiles(VideoFiles(), name, folders, set_folder, options, add, others));
    if (splits_training && set_folder == folders.train) {
      RIDGE_ASSIGN_OR_RETURN(held_out, HoldOut(name, options.hold_out, set));
    }
    return MakeSource(name, {plan.image(), LabelField(folders)}, std::move(reader), std::move(set));
  };
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenClassSets(VideoFiles(), name, folders, open));
  if (held_out > 0) SetTraining({splits.train, held_out}, splits);
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = folders.classes;
  preprocessing->pictures = plan.pictures;
  if (plan.videos.makes_clips()) preprocessing->clips = plan.videos;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> VideoFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const VideoOptions of_videos, ParseVideoOptions(name, text));
  RIDGE_ASSIGN_OR_RETURN(const VideoTarget videos, PlanVideos(name, of_videos, options));
  RIDGE_ASSIGN_OR_RETURN(
      const ClassFolders folders,
      FindClassFolders(VideoFiles(), name, WithoutSlash(of_videos.path), options));
  DataFacts facts;
  if (const auto target = KnownTarget(of_videos.pictures, options))
    facts.fields.push_back({"image", videos.TypeOf(target->type())});
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
  RIDGE_ASSIGN_OR_RETURN(const Plan all, PlanArgument(name, "", options));
  VideoSet set = EmptySet(all.videos);
  PictureReader reader(all.pictures.target);
  for (const std::string& path : paths) {
    RIDGE_ASSIGN_OR_RETURN(const VideoOptions of_path, ParseVideoOptions(path, path));
    RIDGE_ASSIGN_OR_RETURN(const VideoTarget videos, PlanVideos(path, of_path, options));
    if (videos.frames != all.videos.frames) {
      return InvalidArgument(fmt::format("data '{}': frames is {}; the model takes {}", path,
                                         videos.frames, SamplesOf(all.videos)));
    }
    const Status status = AddVideo(of_path.path, /*label=*/0, videos, reader, set);
    if (status.ok()) continue;
    if (!on_bad || !IsBadRecord(status)) return status;
    on_bad(path, status);
  }
  if (set.size() == 0) return SourcePtr();
  return MakeSource(name, {all.image()}, std::move(reader), std::move(set));
}

}  // namespace ridge
