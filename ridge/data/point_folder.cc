// A sample's scratch holds its file, then what CloudReader takes.
#include "ridge/data/point_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "ridge/core/rounding.h"
#include "ridge/core/stage_times.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/points/cloud_reader.h"
#include "ridge/data/sound/sound_bytes.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

const FileKind& CloudFiles() {
  static const FileKind kind = {"point cloud", "cloud.ply", {".ply", ".off", ".npy"}};
  return kind;
}

Status BadFile(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

struct PointArgument {
  std::string folder;
  std::optional<int64_t> count;
  std::optional<PointPick> pick;
  std::optional<PointScale> scale;
};

template <typename Kind>
bool TakeName(const std::string& value, std::initializer_list<const char*> names,
              std::optional<Kind>& kind) {
  const auto found = std::find(names.begin(), names.end(), value);
  if (found == names.end()) return false;
  kind = static_cast<Kind>(found - names.begin());
  return true;
}

bool TakeCount(const std::string& value, std::optional<int64_t>& count) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  count = number;
  return error == std::errc() && rest == value.data() + value.size() && number >= 1 &&
         number <= kMostPicked;
}

Status TakePointOption(const std::string& spec, const std::string& key, const std::string& value,
                       PointArgument& argument) {
  const auto wrong = [&](const std::string& values) {
    return InvalidArgument(
        fmt::format("data '{}': {} is '{}'; it must be {}", spec, key, value, values));
  };
  if (key == "points" && !TakeCount(value, argument.count))
    return wrong(fmt::format("a whole number from 1 to {}", kMostPicked));
  if (key == "pick" && !TakeName(value, {"even", "first", "farthest"}, argument.pick))
    return wrong("even, first or farthest");
  if (key == "normalize" && !TakeName(value, {"sphere", "none"}, argument.scale))
    return wrong("sphere or none");
  return Status();
}

Result<PointArgument> ParsePointArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, {"points", "pick", "normalize"}));
  PointArgument argument;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakePointOption(name, key, value, argument));
  argument.folder = WithoutSlash(spec.path);
  return argument;
}

// What the user says, then what the run keeps, then the model's input [N,3], then the defaults.
PointTarget PlanPoints(const PointArgument& argument, const DataOptions& options) {
  PointTarget target;
  const bool is_kept = options.preprocessing != nullptr && options.preprocessing->points;
  for (const Field& input : options.model_inputs) {
    const Dims& dims = input.type.dims;
    if (input.name == "points" && dims.size() == 2 && dims[1] == 3)
      target.count = std::clamp<int64_t>(dims[0], 1, kMostPicked);
  }
  if (is_kept) target = *options.preprocessing->points;
  target.count = argument.count.value_or(target.count);
  target.pick = argument.pick.value_or(target.pick);
  target.scale = argument.scale.value_or(target.scale);
  return target;
}

std::vector<ModelSize> PointSizes(const PointTarget& target) {
  return {{"points", target.count}, {"inputs", 3 * target.count}};
}

// ---- the source

Result<CloudHeader> HeaderOf(const SoundFile& file, const std::string& path) {
  std::string start(static_cast<size_t>(std::min(file.size(), kCloudStartBytes)), '\0');
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, file.ReadAt(0, start));
  start.resize(static_cast<size_t>(got));
  const auto header = ReadCloudHeader(start, file.size());
  return header.ok() ? header : BadFile(path, header.status().message());
}

Status AddCloud(const std::string& path, int64_t label, CloudReader& reader, FileIndex& index) {
  RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
  RIDGE_ASSIGN_OR_RETURN(const CloudHeader header, HeaderOf(file, path));
  reader.Admit(header);
  index.Add(path, file.stamp(), label);
  return Status();
}

// A file that has its stamp still; `to`: stamp.bytes.
Status ReadFileInto(const std::string& path, const FileStamp& stamp, std::span<char> to,
                    StageSeconds* stages) {
  const StageTimer timer(stages, InputStage::kRead);
  RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
  if (file.stamp() != stamp) return BadFile(path, kCloudChanged);
  const auto got = file.ReadAt(0, to);
  if (!got.ok()) return BadFile(path, got.status().message());
  return *got == file.size() ? Status() : BadFile(path, kCloudChanged);
}

class PointFolderSource : public Source {
 public:
  PointFolderSource(std::string name, std::vector<Field> fields, CloudReader reader,
                    FileIndex index)
      : Source(std::move(name), std::move(fields), index.size()),
        reader_(reader),
        index_(std::move(index)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return ReadPoints(at, scratch, static_cast<float*>(out));
    const int64_t label = index_.label(at.index);
    std::memcpy(out, &label, sizeof label);
    return Status();
  }
  int64_t scratch_bytes() const override { return FileBytes() + reader_.scratch_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return index_.Path(index); }
  int64_t resident_bytes() const override { return index_.resident_bytes(); }

 private:
  int64_t FileBytes() const { return RoundUp(index_.most_file_bytes(), 64); }

  Status ReadPoints(SampleAt at, std::span<char> scratch, float* out) const {
    const std::string path = index_.Path(at.index);
    const auto bytes = static_cast<size_t>(index_.file_bytes(at.index));
    RIDGE_RETURN_IF_ERROR(
        ReadFileInto(path, index_.stamp(at.index), scratch.first(bytes), at.stages));
    const StageTimer timer(at.stages, InputStage::kDecode);
    const Status read = reader_.Read(
        {scratch.data(), bytes}, scratch.subspan(static_cast<size_t>(FileBytes())), out, at.crop);
    return IsBadRecord(read) ? BadFile(path, read.message()) : read;
  }

  const CloudReader reader_;
  const FileIndex index_;
};

SourcePtr MakePointSource(const std::string& name, std::vector<Field> fields,
                          const CloudReader& reader, FileIndex index) {
  index.ShrinkToFit();
  return std::make_shared<PointFolderSource>(name, std::move(fields), reader, std::move(index));
}

}  // namespace

Result<DataSplits> OpenPointFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const PointArgument argument, ParsePointArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(CloudFiles(), name, argument.folder, options));
  const PointTarget target = PlanPoints(argument, options);
  const auto open = [&](const std::string& set,
                        std::vector<std::string>& others) -> Result<SourcePtr> {
    FileIndex index;
    CloudReader reader(target);
    const auto add = [&](const std::string& path, int64_t label) {
      return AddCloud(path, label, reader, index);
    };
    RIDGE_RETURN_IF_ERROR(WalkClassFiles(CloudFiles(), name, folders, set, options, add, others));
    return MakePointSource(name, {{"points", target.type()}, LabelField(folders)}, reader,
                           std::move(index));
  };
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenClassSets(CloudFiles(), name, folders, open));
  const std::vector<ModelSize> sizes = PointSizes(target);
  splits.sizes.insert(splits.sizes.end(), sizes.begin(), sizes.end());
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = folders.classes;
  preprocessing->points = target;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> PointFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const PointArgument argument, ParsePointArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(CloudFiles(), name, argument.folder, options));
  DataOptions before_model = options;
  before_model.model_inputs.clear();
  DataFacts facts;
  facts.fields.push_back(LabelField(folders));
  facts.sizes = ClassSizes(folders);
  const std::vector<ModelSize> sizes = PointSizes(PlanPoints(argument, before_model));
  facts.sizes.insert(facts.sizes.end(), sizes.begin(), sizes.end());
  return facts;
}

Result<CloudHeader> ReadCloudFileHeader(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
  return HeaderOf(file, path);
}

bool IsCloudFile(const std::string& path) { return CloudFiles().Has(path); }

bool HoldsClouds(const std::string& folder) {
  const FileKind sure = {"point cloud", "cloud.ply", {".ply", ".off"}};  // arrays may be anything
  return HoldsClassFiles(sure, folder);
}

Result<std::vector<std::string>> FindClouds(const std::string& folder) {
  return FindFiles(CloudFiles(), folder);
}

Result<SourcePtr> OpenClouds(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadCloudFile& on_bad) {
  const PointTarget target = PlanPoints({}, options);
  FileIndex index;
  CloudReader reader(target);
  for (const std::string& path : paths) {
    const Status status = AddCloud(path, /*label=*/0, reader, index);
    if (status.ok()) continue;
    if (!on_bad) return status;
    on_bad(path, status);
  }
  if (index.size() == 0) return SourcePtr();
  return MakePointSource(name, {{"points", target.type()}}, reader, std::move(index));
}

}  // namespace ridge
