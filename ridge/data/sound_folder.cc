#include "ridge/data/sound_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/files.h"
#include "ridge/core/stage_times.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/preprocessing.h"
#include "ridge/data/sound/sound.h"
#include "ridge/data/sound_options.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

const FileKind& SoundFiles() {
  static const FileKind kind = {"sound", "sound.wav", {".wav", ".flac"}};
  return kind;
}

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

struct Argument {
  std::string folder;
  SoundOptions sounds;
};

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, SoundKeys()));
  Argument argument;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakeSoundOption(name, key, value, argument.sounds));
  argument.folder = WithoutSlash(spec.path);
  return argument;
}

// Files that cannot be read are told when they are opened.
double LongestOf(const std::vector<std::string>& paths) {
  double longest = 0;
  for (const std::string& path : paths) {
    const auto header = ReadSoundFileHeader(path);
    if (!header.ok()) continue;
    const double seconds = static_cast<double>(header->frames) / static_cast<double>(header->rate);
    longest = std::max(longest, seconds);
  }
  return longest;
}

Result<SoundTarget> PlanFolder(const std::string& name, const Argument& argument,
                               const ClassFolders& folders, const DataOptions& options,
                               std::vector<std::string>* notes) {
  const auto longest = [&] {
    const auto paths = FindFiles(SoundFiles(), folders.train);
    const double seconds = paths.ok() ? LongestOf(*paths) : 0;
    if (notes != nullptr && seconds > kMostSecondsByDefault) {
      notes->push_back(
          fmt::format("{}: sounds are cut to {} s; the longest has {:.1f} s. hint: "
                      "{},seconds=N",
                      name, kMostSecondsByDefault, seconds, name));
    }
    return seconds;
  };
  return PlanSounds(name, argument.sounds, options, longest);
}

// ---- the source

Status AddSound(const std::string& path, int64_t label, SoundReader& reader, FileIndex& index,
                const SoundPart& part = {}) {
  RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
  auto header = ReadSoundHeader(file);
  if (!header.ok()) return BadData(path, header.status().message());
  if (part.count > 0) header->frames = part.count;
  const Status admitted = reader.Admit(*header);
  if (!admitted.ok()) return BadData(path, admitted.message());
  index.Add(path, file.stamp(), label);
  return Status();
}

class SoundFolderSource : public Source, public EncodedSamples {
 public:
  SoundFolderSource(std::string name, std::vector<Field> fields, SoundReader reader,
                    FileIndex index, std::vector<SoundPart> parts)
      : Source(std::move(name), std::move(fields), index.size()),
        reader_(std::move(reader)),
        index_(std::move(index)),
        parts_(std::move(parts)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return ReadSound(at, scratch, static_cast<float*>(out));
    const int64_t label = index_.label(at.index);
    std::memcpy(out, &label, sizeof label);
    return Status();
  }
  int64_t scratch_bytes() const override { return reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return index_.Path(index); }
  int64_t resident_bytes() const override {
    return index_.resident_bytes() + reader_.bytes() +
           static_cast<int64_t>(parts_.capacity() * sizeof(SoundPart));
  }
  Status AddContent(int64_t index, std::vector<char>&, ContentHash& hash) const override {
    RIDGE_ASSIGN_OR_RETURN(const std::string content,
                           ReadFile(index_.Path(index), index_.file_bytes(index)));
    hash.Add(content);
    hash.Add(std::to_string(index_.label(index)));
    const SoundPart part = PartOf(index);
    if (part.count > 0) hash.Add(fmt::format("{}+{}", part.first, part.count));
    return Status();
  }

 private:
  SoundPart PartOf(int64_t index) const {
    return parts_.empty() ? SoundPart() : parts_[static_cast<size_t>(index)];
  }
  Status ReadSound(SampleAt at, std::span<char> scratch, float* out) const {
    const std::string path = index_.Path(at.index);
    RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
    if (file.stamp() != index_.stamp(at.index)) return BadData(path, kSoundChanged);
    const StageTimer timer(at.stages, InputStage::kDecode);
    const Status read = reader_.Read(file, scratch, out, at.crop, PartOf(at.index));
    return IsBadRecord(read) ? BadData(path, read.message()) : read;
  }

  const SoundReader reader_;
  const FileIndex index_;
  const std::vector<SoundPart> parts_;  // of the files; none: all are whole
};

Result<SourcePtr> MakeSource(const std::string& name, std::vector<Field> fields, SoundReader reader,
                             FileIndex index, std::vector<SoundPart> parts = {}) {
  index.ShrinkToFit();
  parts.shrink_to_fit();
  return SourcePtr(std::make_shared<SoundFolderSource>(name, std::move(fields), std::move(reader),
                                                       std::move(index), std::move(parts)));
}

}  // namespace

Result<DataSplits> OpenSoundFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(SoundFiles(), name, argument.folder, options));
  std::vector<std::string> notes;
  RIDGE_ASSIGN_OR_RETURN(const SoundTarget target,
                         PlanFolder(name, argument, folders, options, &notes));
  const auto open = [&](const std::string& set,
                        std::vector<std::string>& others) -> Result<SourcePtr> {
    FileIndex index;
    SoundReader reader(target);
    const auto add = [&](const std::string& path, int64_t label) {
      return AddSound(path, label, reader, index);
    };
    RIDGE_RETURN_IF_ERROR(WalkClassFiles(SoundFiles(), name, folders, set, options, add, others));
    return MakeSource(name, {SoundField(target), LabelField(folders)}, std::move(reader),
                      std::move(index));
  };
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenClassSets(SoundFiles(), name, folders, open));
  splits.notes.insert(splits.notes.end(), notes.begin(), notes.end());
  const std::vector<ModelSize> sizes = SoundSizes(target);
  splits.sizes.insert(splits.sizes.end(), sizes.begin(), sizes.end());
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = folders.classes;
  preprocessing->sounds = target;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> SoundFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(SoundFiles(), name, argument.folder, options));
  DataOptions before_model = options;
  before_model.model_inputs.clear();
  RIDGE_ASSIGN_OR_RETURN(const SoundTarget target,
                         PlanFolder(name, argument, folders, before_model, nullptr));
  DataFacts facts;
  facts.fields.push_back(LabelField(folders));
  facts.sizes = ClassSizes(folders);
  const std::vector<ModelSize> sizes = SoundSizes(target);
  facts.sizes.insert(facts.sizes.end(), sizes.begin(), sizes.end());
  return facts;
}

Result<SoundHeader> ReadSoundFileHeader(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const SoundFile file, SoundFile::Open(path));
  const auto header = ReadSoundHeader(file);
  return header.ok() ? header : BadData(path, header.status().message());
}

bool IsSoundFile(const std::string& path) { return SoundFiles().Has(path); }

Result<std::vector<std::string>> FindSounds(const std::string& folder) {
  return FindFiles(SoundFiles(), folder);
}

Result<SourcePtr> OpenSounds(const std::string& name, const std::vector<std::string>& paths,
                             const DataOptions& options, const BadSound& on_bad) {
  std::vector<SoundPiece> pieces;
  for (const std::string& path : paths) pieces.push_back({path, {}});
  BadPiece on_piece;
  if (on_bad) on_piece = [&](size_t piece, const Status& why) { on_bad(paths[piece], why); };
  return OpenSoundPieces(name, pieces, options, on_piece);
}

Result<SourcePtr> OpenSoundPieces(const std::string& name, const std::vector<SoundPiece>& pieces,
                                  const DataOptions& options, const BadPiece& on_bad) {
  const auto longest = [&] {
    std::vector<std::string> paths;
    for (const SoundPiece& piece : pieces) paths.push_back(piece.path);
    return LongestOf(paths);
  };
  RIDGE_ASSIGN_OR_RETURN(const SoundTarget target,
                         PlanSounds(name, SoundOptions(), options, longest));
  FileIndex index;
  SoundReader reader(target);
  std::vector<SoundPart> parts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Status status = AddSound(pieces[i].path, /*label=*/0, reader, index, pieces[i].part);
    if (status.ok()) parts.push_back(pieces[i].part);
    if (status.ok()) continue;
    if (!on_bad) return status;
    on_bad(i, status);
  }
  if (index.size() == 0) return SourcePtr();
  const bool whole = std::all_of(parts.begin(), parts.end(),
                                 [](const SoundPart& part) { return part.count == 0; });
  if (whole) parts.clear();
  return MakeSource(name, {SoundField(target)}, std::move(reader), std::move(index),
                    std::move(parts));
}

}  // namespace ridge
