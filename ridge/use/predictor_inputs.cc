// A kind of input is a row of kKinds; the first that fits a word is taken.
#include "ridge/use/predictor_inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "ridge/data/csv.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/json_lines.h"
#include "ridge/data/memory_source.h"
#include "ridge/data/npy.h"
#include "ridge/data/npz_source.h"
#include "ridge/data/point_folder.h"
#include "ridge/data/sound_folder.h"
#include "ridge/data/spec_options.h"
#include "ridge/data/text_data.h"
#include "ridge/data/transcripts.h"
#include "ridge/data/video_folder.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

struct Context {
  const Signature& signature;
  DataOptions options;  // the run's preprocessing, without a label
  const BadInput& on_bad;
};

// A source whose damaged samples are zeros.
class LenientSource : public Source {
 public:
  LenientSource(SourcePtr source, std::shared_ptr<InputSet::BadSamples> bad)
      : Source(source->name(), source->fields(), source->size()),
        source_(std::move(source)),
        bad_(std::move(bad)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    const Status status = source_->Read(at, field, scratch, out);
    if (status.code() != ErrorCode::kInvalidData) return status;
    std::memset(out, 0, static_cast<size_t>(fields()[static_cast<size_t>(field)].type.bytes()));
    const std::lock_guard lock(bad_->mutex);
    bad_->why.emplace(at.index, status);
    return Status();
  }
  int64_t scratch_bytes() const override { return source_->scratch_bytes(); }
  int64_t heap_bytes() const override { return source_->heap_bytes(); }
  bool reads_slowly() const override { return source_->reads_slowly(); }
  std::string Origin(int64_t index) const override { return source_->Origin(index); }
  int64_t resident_bytes() const override { return source_->resident_bytes(); }
  const Source* storage() const override { return source_->storage(); }

 private:
  SourcePtr source_;
  std::shared_ptr<InputSet::BadSamples> bad_;
};

std::string LowerSuffix(const std::string& path) {
  std::string name = fs::path(path).filename().string();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  return fs::path(name).extension().string();
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// ---- texts, of models that were trained on text

bool IsArrays(const std::string& input, const Signature&) {
  const std::string suffix = LowerSuffix(input);
  return input.starts_with("npz:") || suffix == ".npz" || suffix == ".npy";
}

bool IsTextFile(const std::string& input, const Signature& signature) {
  const bool file = input.starts_with("text:") || input.starts_with("jsonl:") ||
                    Exists(SplitSpecOptions(input).path);
  return signature.preprocessing.text && file && !IsArrays(input, signature);
}

// A word that looks like a file's name is none: it was meant to be there.
bool IsText(const std::string& input, const Signature& signature) {
  const bool name = LowerSuffix(input) == ".txt" && input.find(' ') == std::string::npos;
  return signature.preprocessing.text && !name && !IsArrays(input, signature);
}

Result<InputSet> OpenTextFile(const std::vector<std::string>& inputs, const Context& context) {
  const std::string& input = inputs.front();
  const size_t kind = input.find(':');
  const bool has_kind = input.starts_with("text:") || input.starts_with("jsonl:");
  const std::string argument = has_kind ? input.substr(kind + 1) : input;
  const bool json = has_kind ? input.starts_with("jsonl:")
                             : LowerSuffix(SplitSpecOptions(input).path) == ".jsonl";
  const auto open = json ? OpenJsonLines : OpenText;
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, open((json ? "jsonl:" : "text:") + argument,
                                                 argument + ",label=none", context.options));
  InputSet set;
  set.source = splits.train;
  set.notes = std::move(splits.notes);
  for (int64_t i = 0; i < set.source->size(); ++i) set.names.push_back(set.source->Origin(i));
  return set;
}

Result<InputSet> OpenTextSet(const std::vector<std::string>& inputs, const Context& context) {
  InputSet set;
  RIDGE_ASSIGN_OR_RETURN(set.source, OpenTexts("text", inputs, context.options));
  set.names = inputs;
  return set;
}

// ---- pictures and sounds

// Files of one kind, which samples are read from when they are asked for.
struct FilesOfKind {
  bool (*is_file)(const std::string& path);
  Result<std::vector<std::string>> (*find)(const std::string& folder);
  Result<SourcePtr> (*open)(const std::string& name, const std::vector<std::string>& paths,
                            const DataOptions& options, const BadInput& on_bad);
};
constexpr FilesOfKind kPictureFiles = {IsPictureFile, FindPictures, OpenPictures};
constexpr FilesOfKind kSoundFiles = {IsSoundFile, FindSounds, OpenSounds};
constexpr FilesOfKind kVideoFiles = {IsVideoFile, FindVideos, OpenVideos};
constexpr FilesOfKind kCloudFiles = {IsCloudFile, FindClouds, OpenClouds};

bool IsFolder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool IsPictures(const std::string& path, const Signature& signature) {
  const Preprocessing& learned = signature.preprocessing;
  return (IsFolder(path) && !learned.sounds && !learned.points) || IsPictureFile(path);
}

bool IsSounds(const std::string& path, const Signature& signature) {
  return (IsFolder(path) && signature.preprocessing.sounds) || IsSoundFile(path);
}

// With options: "a.mp4,fps=5".
bool IsVideos(const std::string& input, const Signature&) {
  return IsVideoFile(SplitSpecOptions(input).path);
}

// An array of numpy is a cloud to a run that has learned clouds.
bool IsClouds(const std::string& path, const Signature& signature) {
  return (IsFolder(path) || IsCloudFile(path)) && signature.preprocessing.points;
}

Status AddFiles(const FilesOfKind& kind, const std::string& path, std::vector<std::string>& paths) {
  if (!IsFolder(path)) {
    paths.push_back(path);
    return Status();
  }
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  RIDGE_ASSIGN_OR_RETURN(const std::vector<std::string> found, kind.find(folder));
  paths.insert(paths.end(), found.begin(), found.end());
  return Status();
}

// Recordings of which a model of transcripts would hear a part.
Status LeaveOutUnheard(const Context& context, std::vector<std::string>& paths) {
  std::vector<std::string> heard;
  for (const std::string& path : paths) {
    const Status status = CheckHeard(path, context.options);
    if (status.ok()) heard.push_back(path);
    if (status.ok()) continue;
    if (!context.on_bad) return status;
    context.on_bad(path, status);
  }
  paths = std::move(heard);
  return Status();
}

Result<InputSet> OpenFileSet(const FilesOfKind& kind, const std::vector<std::string>& inputs,
                             const Context& context) {
  std::vector<std::string> paths;
  for (const std::string& input : inputs) RIDGE_RETURN_IF_ERROR(AddFiles(kind, input, paths));
  InputSet set;
  if (context.signature.preprocessing.spelling) {
    RIDGE_RETURN_IF_ERROR(LeaveOutUnheard(context, paths));
    if (paths.empty()) return set;
  }
  RIDGE_ASSIGN_OR_RETURN(set.source,
                         kind.open(inputs.front(), paths, context.options, context.on_bad));
  if (set.source != nullptr && context.signature.preprocessing.spelling) {
    RIDGE_ASSIGN_OR_RETURN(set.source, CountFrames(set.source, context.options));
  }
  for (int64_t i = 0; set.source != nullptr && i < set.source->size(); ++i)
    set.names.push_back(set.source->Origin(i));
  if (set.source == nullptr || !context.on_bad) return set;
  set.bad = std::make_shared<InputSet::BadSamples>();
  set.source = std::make_shared<LenientSource>(set.source, set.bad);
  return set;
}

Result<InputSet> OpenPictureSet(const std::vector<std::string>& inputs, const Context& context) {
  return OpenFileSet(kPictureFiles, inputs, context);
}

Result<InputSet> OpenSoundSet(const std::vector<std::string>& inputs, const Context& context) {
  return OpenFileSet(kSoundFiles, inputs, context);
}

Result<InputSet> OpenVideoSet(const std::vector<std::string>& inputs, const Context& context) {
  RIDGE_ASSIGN_OR_RETURN(InputSet set, OpenFileSet(kVideoFiles, inputs, context));
  for (size_t i = 0; i < set.names.size(); ++i) {
    const std::string video = set.names[i].substr(0, set.names[i].rfind(" frame"));  // or " frames"
    if (set.parts.empty() || set.parts.back().name != video) set.parts.push_back({video, 0});
    set.parts.back().end = static_cast<int64_t>(i) + 1;
  }
  return set;
}

Result<InputSet> OpenCloudSet(const std::vector<std::string>& inputs, const Context& context) {
  return OpenFileSet(kCloudFiles, inputs, context);
}

// ---- tables

bool IsTable(const std::string& input, const Signature&) {
  const std::string suffix = LowerSuffix(SplitSpecOptions(input).path);
  return input.starts_with("csv:") || suffix == ".csv" || suffix == ".tsv";
}

// A table of numbers alone, where the run keeps no columns.
Result<DataSplits> OpenTable(const std::string& argument, const Context& context) {
  const std::string name = "csv:" + argument;
  if (context.options.preprocessing->table) return OpenCsv(name, argument, context.options);
  DataOptions plain = context.options;
  plain.plain_tables = true;
  return OpenCsv(name, argument + ",label=none", plain);
}

Result<InputSet> OpenTableSet(const std::vector<std::string>& inputs, const Context& context) {
  const std::string& input = inputs.front();
  const std::string argument = input.starts_with("csv:") ? input.substr(4) : input;
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenTable(argument, context));
  InputSet set;
  set.source = splits.train;
  set.notes = std::move(splits.notes);
  const std::string path = SplitSpecOptions(argument).path;
  for (int64_t i = 0; i < set.source->size(); ++i)
    set.names.push_back(fmt::format("{} row {}", path, i + 1));
  return set;
}

// ---- arrays

Result<SourcePtr> OpenArray(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const auto stream, ByteStream::Open(path));
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(*stream, stream->bound_bytes()));
  std::vector<NamedTensor> fields;
  fields.emplace_back("x", std::move(tensor));
  return MemorySource::Create(path, std::move(fields));
}

Result<InputSet> OpenArraySet(const std::vector<std::string>& inputs, const Context&) {
  const std::string& input = inputs.front();
  const std::string path = input.starts_with("npz:") ? input.substr(4) : input;
  InputSet set;
  if (LowerSuffix(path) == ".npy") {
    RIDGE_ASSIGN_OR_RETURN(set.source, OpenArray(path));
  } else {
    RIDGE_ASSIGN_OR_RETURN(const DataSplits splits, OpenNpz("npz:" + path, path));
    set.source = splits.test != nullptr ? splits.test : splits.train;
    if (splits.test != nullptr)
      set.notes.push_back(path + ": holds two sets; the test set is answered");
  }
  for (int64_t i = 0; i < set.source->size(); ++i)
    set.names.push_back(fmt::format("{}[{}]", path, i));
  return set;
}

// ---- all of them

struct InputKind {
  const char* what;
  bool (*fits)(const std::string& input, const Signature& signature);
  Result<InputSet> (*open)(const std::vector<std::string>& inputs, const Context& context);
  bool together;  // neighbours are one set
};

constexpr InputKind kKinds[] = {
    {"files of texts, for a model of text", IsTextFile, OpenTextFile, false},
    {"texts in quotes, for a model of text", IsText, OpenTextSet, true},
    {"pictures (.jpg, .jpeg, .png, .webp, or a folder of them)", IsPictures, OpenPictureSet, true},
    {"videos (.mp4, .mkv, .webm, .avi, .mov and others)", IsVideos, OpenVideoSet, true},
    {"sounds (.wav, .flac, or a folder of them)", IsSounds, OpenSoundSet, true},
    {"point clouds (.ply, .off, .npy, or a folder of them), for a model of points", IsClouds,
     OpenCloudSet, true},
    {"tables (.csv, .tsv)", IsTable, OpenTableSet, false},
    {"arrays (.npz, .npy)", IsArrays, OpenArraySet, false},
};

Result<const InputKind*> KindOf(const std::string& input, const Signature& signature) {
  const std::string path = SplitSpecOptions(input).path;
  if (!IsText(input, signature) && input.find(':') == std::string::npos && !Exists(path)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("predict: there is no file or folder {}", path));
  }
  std::string known;
  for (const InputKind& kind : kKinds) {
    if (kind.fits(input, signature)) return &kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.what);
  }
  return InvalidArgument(
      fmt::format("predict: '{}' is of no known kind; known are {}", input, known));
}

// A prediction asks for no label, and a table need not have one.
std::shared_ptr<const Preprocessing> WithoutLabel(const Preprocessing& preprocessing) {
  auto unlabeled = std::make_shared<Preprocessing>(preprocessing);
  if (unlabeled->table) unlabeled->table->label.reset();
  return unlabeled;
}

}  // namespace

std::optional<Status> InputSet::BadSample(int64_t index) const {
  if (bad == nullptr) return std::nullopt;
  const std::lock_guard lock(bad->mutex);
  const auto found = bad->why.find(index);
  return found == bad->why.end() ? std::nullopt : std::optional(found->second);
}

Result<std::vector<InputSet>> OpenInputs(const std::vector<std::string>& inputs,
                                         const Signature& signature,
                                         const std::vector<Field>& model_inputs,
                                         const BadInput& on_bad) {
  Context context{signature, {}, on_bad};
  context.options.preprocessing = WithoutLabel(signature.preprocessing);
  context.options.model_inputs = model_inputs;
  std::vector<InputSet> sets;
  for (size_t i = 0; i < inputs.size();) {
    RIDGE_ASSIGN_OR_RETURN(const InputKind* kind, KindOf(inputs[i], signature));
    const auto is_next = [&](const std::string& input) {
      const Result<const InputKind*> other = KindOf(input, signature);
      return other.ok() && *other == kind;
    };
    std::vector<std::string> group;
    do {
      group.push_back(inputs[i++]);
    } while (kind->together && i < inputs.size() && is_next(inputs[i]));
    RIDGE_ASSIGN_OR_RETURN(InputSet set, kind->open(group, context));
    if (set.source != nullptr) sets.push_back(std::move(set));
  }
  return sets;
}

}  // namespace ridge
