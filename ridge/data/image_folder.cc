// Two files are never open at once, and a file's size and header are checked again when it is read:
// it may have been replaced.
#include "ridge/data/image_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "ridge/core/owned_fd.h"
#include "ridge/core/rounding.h"
#include "ridge/data/class_folders.h"
#include "ridge/data/image/picture.h"
#include "ridge/data/picture_options.h"
#include "ridge/data/preprocessing.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMostFileBytes = int64_t{1} << 31;

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

// ---- files

// Reads up to `bytes` from the beginning.
Result<int64_t> ReadBeginning(int fd, const std::string& path, char* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(fd, to + done, static_cast<size_t>(bytes - done), done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return BadData(path,
                     fmt::format("cannot be read at byte {}: {}", done, std::strerror(errno)));
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

struct OpenFile {
  OwnedFd fd;
  int64_t bytes = 0;
};

Result<OpenFile> OpenPicture(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe must not block
  struct stat info {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0)
    return BadData(path, std::string("cannot be opened: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return BadData(path, "is no regular file");
  if (info.st_size > kMostFileBytes) {
    return BadData(path,
                   fmt::format("has {} bytes, at most {} are read", info.st_size, kMostFileBytes));
  }
  return OpenFile{std::move(fd), info.st_size};
}

std::span<const uint8_t> Bytes(const char* data, int64_t count) {
  return {reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(count)};
}

// A file that has still as many bytes.
Status ReadWhole(const std::string& path, int64_t bytes, char* to) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  RIDGE_ASSIGN_OR_RETURN(const int64_t got, ReadBeginning(file.fd.get(), path, to, bytes));
  if (got != bytes || file.bytes != bytes) return BadData(path, kPictureChanged);
  return Status();
}

// The header, from as much of the file as it takes.
Result<ImageHeader> ReadHeader(const std::string& path, const OpenFile& file,
                               std::vector<char>& buffer) {
  constexpr int64_t kFirst = 4 << 10, kFactor = 16;
  for (int64_t wanted = kFirst;; wanted *= kFactor) {
    const int64_t bytes = std::min(wanted, file.bytes);
    if (static_cast<int64_t>(buffer.size()) < bytes) buffer.resize(static_cast<size_t>(bytes));
    RIDGE_ASSIGN_OR_RETURN(const int64_t got,
                           ReadBeginning(file.fd.get(), path, buffer.data(), bytes));
    const bool whole = got < bytes || bytes == file.bytes;
    const auto header = ReadImageHeader(Bytes(buffer.data(), got), whole);
    if (!header.ok()) return BadData(path, header.status().message());
    if (*header) return **header;
  }
}

// ---- the source

Status AddPicture(const std::string& path, int64_t label, PictureReader& reader,
                  std::vector<char>& buffer, FileIndex& index) {
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  RIDGE_ASSIGN_OR_RETURN(const ImageHeader header, ReadHeader(path, file, buffer));
  const Status admitted = reader.Admit(header);
  if (!admitted.ok()) return BadData(path, admitted.message());
  index.Add(path, file.bytes, label);
  return Status();
}

class ImageFolderSource : public Source {
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

 private:
  int64_t file_scratch() const { return RoundUp(index_.most_file_bytes(), kAlignment); }

  Status ReadImage(SampleAt at, std::span<char> scratch, uint8_t* out) const {
    const std::string path = index_.Path(at.index);
    const int64_t file_bytes = index_.file_bytes(at.index);
    {
      const StageTimer timer(at.stages, InputStage::kRead);
      RIDGE_RETURN_IF_ERROR(ReadWhole(path, file_bytes, scratch.data()));
    }
    const Status read =
        reader_.Read(Bytes(scratch.data(), file_bytes),
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
  RIDGE_ASSIGN_OR_RETURN(const OpenFile file, OpenPicture(path));
  std::vector<char> buffer;
  return ReadHeader(path, file, buffer);
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
