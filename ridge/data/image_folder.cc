#include "ridge/data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/rounding.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/encoded_samples.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/picture_file.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/preprocessing.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;

const FileKind& PictureFiles() {
  static const FileKind kind = {"picture", "picture.jpg", {".jpg", ".jpeg", ".png", ".webp"}};
  return kind;
}

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

// ---- the argument

struct Argument {
  std::string folder;
  PictureOptions pictures;
};

Result<Argument> ParseArgument(const std::string& name, const std::string& text) {
  const SpecOptions spec = SplitSpecOptions(text);
  RIDGE_RETURN_IF_ERROR(CheckSpecKeys(name, spec, PictureKeys()));
  Argument argument;
  for (const auto& [key, value] : spec.options)
    RIDGE_RETURN_IF_ERROR(TakePictureOption(name, key, value, argument.pictures));
  argument.folder = WithoutSlash(spec.path);
  return argument;
}

// ---- the source

Status AddPicture(const std::string& path, int64_t label, PictureReader& reader,
                  std::vector<char>& buffer, FileIndex& index) {
  RIDGE_ASSIGN_OR_RETURN(const PictureFile file, InspectPicture(path, buffer));
  const Status admitted = reader.Admit(file.header);
  if (!admitted.ok()) return BadData(path, admitted.message());
  index.Add(path, file.stamp, label);
  return Status();
}

class ImageFolderSource : public Source, public EncodedSamples {
 public:
  ImageFolderSource(std::string name, std::vector<Field> fields, PictureReader reader,
                    FileIndex index)
      : Source(std::move(name), std::move(fields), index.size()),
        reader_(std::move(reader)),
        index_(std::move(index)) {}

  Status Read(SampleAt at, int field, std::span<char> scratch, void* out) const override {
    if (field == 0) return ReadImage(at, scratch, static_cast<uint8_t*>(out));
    const int64_t label = index_.label(at.index);
    std::memcpy(out, &label, sizeof label);
    return Status();
  }

  int64_t scratch_bytes() const override { return file_scratch() + reader_.scratch_bytes(); }
  int64_t heap_bytes() const override { return reader_.heap_bytes(); }
  bool reads_slowly() const override { return true; }
  bool reads_crops() const override { return true; }
  std::string Origin(int64_t index) const override { return index_.Path(index); }
  int64_t resident_bytes() const override { return index_.resident_bytes(); }
  Status AddContent(int64_t index, std::vector<char>& buffer, ContentHash& hash) const override {
    const auto bytes = static_cast<size_t>(index_.file_bytes(index));
    if (buffer.size() < bytes) buffer.resize(bytes);
    RIDGE_RETURN_IF_ERROR(ReadPicture(index_.Path(index), index_.stamp(index), buffer.data()));
    hash.Add({buffer.data(), bytes});
    hash.Add(std::to_string(index_.label(index)));
    return Status();
  }

 private:
  int64_t file_scratch() const { return RoundUp(index_.most_file_bytes(), kAlignment); }

  Status ReadImage(SampleAt at, std::span<char> scratch, uint8_t* out) const {
    const std::string path = index_.Path(at.index);
    const int64_t file_bytes = index_.file_bytes(at.index);
    {
      const StageTimer timer(at.stages, InputStage::kRead);
      RIDGE_RETURN_IF_ERROR(ReadPicture(path, index_.stamp(at.index), scratch.data()));
    }
    const Status read =
        reader_.Read(PictureBytes(scratch.data(), file_bytes),
                     scratch.subspan(static_cast<size_t>(file_scratch())), out, at.crop, at.stages);
    return read.ok() ? read : BadData(path, read.message());
  }

  const PictureReader reader_;
  const FileIndex index_;
};

// ---- opening

Result<SourcePtr> MakeSource(const std::string& name, std::vector<Field> fields,
                             PictureReader reader, FileIndex index) {
  index.ShrinkToFit();
  return SourcePtr(std::make_shared<ImageFolderSource>(name, std::move(fields), std::move(reader),
                                                       std::move(index)));
}

}  // namespace

Result<DataSplits> OpenImageFolder(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(PictureFiles(), name, argument.folder, options));
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, argument.pictures, options));
  const auto open = [&](const std::string& set,
                        std::vector<std::string>& others) -> Result<SourcePtr> {
    FileIndex index;
    PictureReader reader(pictures.target);
    std::vector<char> buffer;
    const auto add = [&](const std::string& path, int64_t label) {
      return AddPicture(path, label, reader, buffer, index);
    };
    RIDGE_RETURN_IF_ERROR(WalkClassFiles(PictureFiles(), name, folders, set, options, add, others));
    return MakeSource(name, {PictureField(pictures), LabelField(folders)}, std::move(reader),
                      std::move(index));
  };
  RIDGE_ASSIGN_OR_RETURN(DataSplits splits, OpenClassSets(PictureFiles(), name, folders, open));
  auto preprocessing = std::make_shared<Preprocessing>();
  preprocessing->classes = folders.classes;
  preprocessing->pictures = pictures;
  splits.preprocessing = std::move(preprocessing);
  return splits;
}

Result<DataFacts> ImageFolderFacts(const std::string& name, const std::string& text,
                                   const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Argument argument, ParseArgument(name, text));
  RIDGE_ASSIGN_OR_RETURN(const ClassFolders folders,
                         FindClassFolders(PictureFiles(), name, argument.folder, options));
  DataFacts facts;
  if (const auto target = KnownTarget(argument.pictures, options))
    facts.fields.push_back({"image", target->type()});
  facts.fields.push_back(LabelField(folders));
  facts.sizes = ClassSizes(folders);
  return facts;
}

Result<ImageHeader> ReadPictureHeader(const std::string& path) {
  std::vector<char> buffer;
  RIDGE_ASSIGN_OR_RETURN(const PictureFile file, InspectPicture(path, buffer));
  return file.header;
}

bool IsPictureFile(const std::string& path) { return PictureFiles().Has(path); }

Result<std::vector<std::string>> FindPictures(const std::string& folder) {
  return FindFiles(PictureFiles(), folder);
}

Result<SourcePtr> OpenPictures(const std::string& name, const std::vector<std::string>& paths,
                               const DataOptions& options, const BadPicture& on_bad) {
  RIDGE_ASSIGN_OR_RETURN(const PicturePreprocessing pictures,
                         PlanPictures(name, PictureOptions(), options));
  FileIndex index;
  PictureReader reader(pictures.target);
  std::vector<char> buffer;
  for (const std::string& path : paths) {
    const Status status = AddPicture(path, /*label=*/0, reader, buffer, index);
    if (status.ok()) continue;
    if (!on_bad) return status;
    on_bad(path, status);
  }
  if (index.size() == 0) return SourcePtr();
  return MakeSource(name, {PictureField(pictures)}, std::move(reader), std::move(index));
}

bool HoldsPictures(const std::string& text) {
  const auto argument = ParseArgument("", text);
  return argument.ok() && HoldsClassFiles(PictureFiles(), argument->folder);
}

}  // namespace ridge
