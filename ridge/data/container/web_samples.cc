#include "ridge/data/container/web_samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "ridge/core/split.h"
#include "ridge/data/container/picture_bytes.h"
#include "ridge/data/content_split.h"
#include "ridge/data/csv_cells.h"
#include "ridge/data/npy.h"

namespace ridge {
namespace {

constexpr int64_t kMostLabelBytes = 1 << 10;
constexpr int64_t kMostJsonBytes = 16 << 20;
constexpr int64_t kMostNpyHeader = (1 << 16) + 12;
constexpr size_t kMostParts = 256;

Status Bad(const std::string& reason) { return Status(ErrorCode::kInvalidData, reason); }

// ---- names

struct MemberName {
  std::string key, suffix;
};

// Nothing for a member that belongs to no sample: without a suffix, or hidden.
std::optional<MemberName> SplitName(const std::string& name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string::npos || dot == base || dot + 1 == name.size()) return std::nullopt;
  if (name.compare(base, 2, "__") == 0) return std::nullopt;  // WebDataset's own
  MemberName result{name.substr(0, dot), name.substr(dot + 1)};
  for (char& c : result.suffix) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// "jpg" of "left.jpg"
std::string_view LastSuffix(std::string_view suffix) {
  return suffix.substr(suffix.rfind('.') == suffix.npos ? 0 : suffix.rfind('.') + 1);
}

PartUse UseOf(std::string_view suffix) {
  const std::string_view last = LastSuffix(suffix);
  if (last == "jpg" || last == "jpeg" || last == "png" || last == "webp") return PartUse::kPicture;
  if (last == "npy") return PartUse::kArray;
  if (suffix == "cls") return PartUse::kClass;
  return suffix == "json" ? PartUse::kJson : PartUse::kOther;
}

std::string FieldName(const WebPart& part) {
  if (part.use == PartUse::kPicture) return "image";
  if (part.use != PartUse::kArray) return "label";
  return part.suffix == "npy" ? "data" : part.suffix.substr(0, part.suffix.rfind('.'));
}

// ---- samples

struct SamplePart {
  std::string suffix;
  TarMember member;
};

struct Sample {
  std::string key;
  int64_t header = 0;  // of its first member
  std::vector<SamplePart> parts;
};

using SampleFunction = std::function<Result<bool>(const Sample&, FileWindow&, int64_t file)>;

// Groups the members of one file.
class SampleGrouper {
 public:
  SampleGrouper(const FileTable& files, int64_t file, FileWindow& window,
                const SampleFunction& found)
      : files_(files), file_(file), window_(window), found_(found) {}

  Status Run() {
    RIDGE_RETURN_IF_ERROR(ForEachMember(files_, file_, window_, [&](const TarMember& member) {
      return stopped_ ? Status() : Add(member);
    }));
    RIDGE_RETURN_IF_ERROR(Close());
    return seen_.empty() ? Bad(files_.path(file_) + ": holds no samples") : Status();
  }
  bool stopped() const { return stopped_; }

 private:
  Status BadMember(const TarMember& member, const std::string& what) const {
    return Bad(fmt::format("{}: member '{}' at byte {}: {}", files_.path(file_), member.name,
                           member.header, what));
  }

  Status Add(const TarMember& member) {
    const auto name = SplitName(member.name);
    if (!name) return Status();
    if (sample_.parts.empty() || name->key != sample_.key) {
      RIDGE_RETURN_IF_ERROR(Close());
      ContentHash hash;
      hash.Add(name->key);
      if (!seen_.insert(hash.value()).second) {
        return BadMember(member, fmt::format("sample '{}' has begun before; its members must "
                                             "follow one another. hint: tar --sort=name",
                                             name->key));
      }
      sample_ = {name->key, member.header, {}};
    }
    for (const SamplePart& part : sample_.parts) {
      if (part.suffix == name->suffix)
        return BadMember(member, fmt::format("its sample has two parts '{}'", name->suffix));
    }
    if (sample_.parts.size() == kMostParts)
      return BadMember(member, fmt::format("its sample has more than {} parts", kMostParts));
    sample_.parts.push_back({name->suffix, member});
    return Status();
  }

  Status Close() {
    if (sample_.parts.empty() || stopped_) return Status();
    const Result<bool> more = found_(sample_, window_, file_);
    sample_.parts.clear();
    if (!more.ok()) {
      return Status(more.status().code(),
                    fmt::format("{}: sample '{}' at byte {}: {}", files_.path(file_), sample_.key,
                                sample_.header, more.status().message()));
    }
    stopped_ = !*more;
    return Status();
  }

  const FileTable& files_;
  const int64_t file_;
  FileWindow& window_;
  const SampleFunction& found_;
  Sample sample_;
  std::unordered_set<uint64_t> seen_;  // hashes of the keys
  bool stopped_ = false;
};

// Until `found` returns false.  A failure of it is a bare reason.
Status ForEachSample(const FileTable& files, const SampleFunction& found) {
  for (int64_t file = 0; file < files.size(); ++file) {
    auto window = FileWindow::Open(files, file);
    if (!window.ok()) return Bad(files.path(file) + ": " + window.status().message());
    SampleGrouper grouper(files, file, *window, found);
    RIDGE_RETURN_IF_ERROR(grouper.Run());
    if (grouper.stopped()) return Status();
  }
  return Status();
}

// ---- parts

const TarMember* FindPart(const Sample& sample, const std::string& suffix) {
  for (const SamplePart& part : sample.parts) {
    if (part.suffix == suffix) return &part.member;
  }
  return nullptr;
}

Result<std::string_view> WholeText(const TarMember& member, FileWindow& window, int64_t most) {
  if (member.bytes > most) {
    return Bad(fmt::format("its {} has {} bytes, at most {} are read",
                           SplitName(member.name)->suffix, member.bytes, most));
  }
  return window.At(member.begin, member.bytes);
}

Result<std::string> ReadClass(const TarMember& member, FileWindow& window) {
  RIDGE_ASSIGN_OR_RETURN(std::string_view text, WholeText(member, window, kMostLabelBytes));
  constexpr std::string_view kSpace(" \t\r\n\0", 5);
  const size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  std::string label(text.substr(0, text.find_last_not_of(kSpace) + 1));
  MakeUtf8(label);
  return label;
}

// The text or integer at "key", or "outer.key".
Result<std::string> ReadJson(const TarMember& member, FileWindow& window, const std::string& key) {
  RIDGE_ASSIGN_OR_RETURN(const std::string_view text, WholeText(member, window, kMostJsonBytes));
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Bad("its json is malformed");
  const nlohmann::json* at = &json;
  for (std::string_view part : SplitAt(key, '.')) {
    const auto found = at->is_object() ? at->find(std::string(part)) : at->end();
    if (!at->is_object() || found == at->end())
      return Bad(fmt::format("its json has no '{}'", key));
    at = &*found;
  }
  if (at->is_string()) return at->get<std::string>();
  if (at->is_number_integer()) return at->dump();
  return Bad(fmt::format("'{}' of its json is neither a text nor an integer", key));
}

Result<std::string> ReadLabel(const WebPart& part, const TarMember& member, FileWindow& window,
                              const ContainerOptions& options) {
  if (part.use == PartUse::kJson) return ReadJson(member, window, options.json);
  return ReadClass(member, window);
}

Result<NpyStart> ReadArrayStart(const TarMember& member, FileWindow& window) {
  RIDGE_ASSIGN_OR_RETURN(const std::string_view start,
                         window.At(member.begin, std::min(member.bytes, kMostNpyHeader)));
  const std::string name = "its " + SplitName(member.name)->suffix;
  RIDGE_ASSIGN_OR_RETURN(const NpyStart npy, ReadNpyStart(name, start));
  const int64_t held = member.bytes - npy.header_bytes;
  if (npy.type.bytes() == held) return npy;
  return Bad(fmt::format("{} declares {}, {} bytes, but {} follow", name, TypeToString(npy.type),
                         npy.type.bytes(), held));
}

Status AdmitPicture(const TarMember& member, FileWindow& window, PictureReader& reader) {
  const auto header = ReadPictureHeader(
      member.bytes, [&](int64_t count) { return window.At(member.begin, count); });
  Status status = header.status();
  if (header.ok()) status = reader.Admit(*header);
  if (status.ok()) return status;
  return Status(status.code(),
                fmt::format("its {} {}", SplitName(member.name)->suffix, status.message()));
}

// ---- the layout

// One picture has the size of the model's image.
Status KeepOnePicture(const std::string& chosen, WebLayout& layout,
                      std::vector<std::string>& left_out) {
  std::vector<std::string> pictures;
  for (const WebPart& part : layout.parts) {
    if (part.use == PartUse::kPicture) pictures.push_back(part.suffix);
  }
  const bool has = std::find(pictures.begin(), pictures.end(), chosen) != pictures.end();
  if (!chosen.empty() && !has) {
    return InvalidArgument(fmt::format("image is '{}', which is none of its pictures: {}", chosen,
                                       fmt::join(pictures, ", ")));
  }
  if (chosen.empty() && pictures.size() > 1) {
    return InvalidArgument(fmt::format("has several pictures: {}. hint: image={}",
                                       fmt::join(pictures, ", "), pictures[0]));
  }
  std::erase_if(layout.parts, [&](const WebPart& part) {
    const bool other =
        part.use == PartUse::kPicture && pictures.size() > 1 && part.suffix != chosen;
    if (other) left_out.push_back(part.suffix);
    return other;
  });
  return Status();
}

// The parts of a sample that become fields; the label stands last.
Result<WebLayout> LayoutOf(const std::string& spec, const Sample& sample, FileWindow& window,
                           const ContainerOptions& options) {
  WebLayout layout;
  std::vector<std::string> left_out;
  std::optional<WebPart> label;
  for (const SamplePart& found : sample.parts) {
    WebPart part{found.suffix, UseOf(found.suffix), {"", {DType::kI64, {}}, 0}};
    const PartUse wanted = options.json.empty() ? PartUse::kClass : PartUse::kJson;
    part.field.name = FieldName(part);
    if (part.use == wanted) {
      label = part;
      continue;
    }
    if (part.use != PartUse::kPicture && part.use != PartUse::kArray) {
      left_out.push_back(part.suffix);
      continue;
    }
    if (part.use == PartUse::kArray) {
      RIDGE_ASSIGN_OR_RETURN(const NpyStart npy, ReadArrayStart(found.member, window));
      part.field.type = npy.type;
    }
    layout.parts.push_back(part);
  }
  if (!label && !options.json.empty()) return Bad("has no part json");
  if (label) layout.parts.push_back(*label);
  RIDGE_RETURN_IF_ERROR(KeepOnePicture(options.image, layout, left_out));
  if (layout.parts.empty()) {
    return Bad(
        fmt::format("has no part that is read (jpg, jpeg, png, webp, cls, npy, json with "
                    "json=KEY), only: {}",
                    fmt::join(left_out, ", ")));
  }
  if (!left_out.empty()) {
    layout.notes.push_back(
        fmt::format("{}: parts of the samples left out: {}", spec, fmt::join(left_out, ", ")));
  }
  return layout;
}

// ---- the index

class Indexer {
 public:
  Indexer(const WebLayout& layout, const ContainerOptions& options, PictureReader* reader,
          WebIndex& index)
      : layout_(layout), options_(options), reader_(reader), index_(index) {}

  Status Add(const Sample& sample, FileWindow& window, int64_t file) {
    for (const WebPart& part : layout_.parts) {
      const TarMember* member = FindPart(sample, part.suffix);
      if (member == nullptr) return Bad(fmt::format("has no part {}", part.suffix));
      RIDGE_RETURN_IF_ERROR(AddPart(part, *member, window, file));
    }
    ContentHash hash;
    hash.Add(sample.key);
    index_.hashes.push_back(hash.value());
    ++index_.samples;
    return Status();
  }
  LabelColumn& labels() { return labels_; }

 private:
  Status AddPart(const WebPart& part, const TarMember& member, FileWindow& window, int64_t file) {
    if (part.use == PartUse::kClass || part.use == PartUse::kJson) {
      RIDGE_ASSIGN_OR_RETURN(const std::string label, ReadLabel(part, member, window, options_));
      return labels_.Add(label);
    }
    int64_t skipped = 0;
    if (part.use == PartUse::kArray) {
      RIDGE_ASSIGN_OR_RETURN(const NpyStart npy, ReadArrayStart(member, window));
      if (npy.type != part.field.type) {
        return Bad(fmt::format("its {} is {}, in the first sample it is {}", part.suffix,
                               TypeToString(npy.type), TypeToString(part.field.type)));
      }
      skipped = npy.header_bytes;
    } else if (reader_ != nullptr) {
      RIDGE_RETURN_IF_ERROR(AdmitPicture(member, window, *reader_));
    }
    index_.places.push_back({FilePlace(file, member.begin + skipped), member.bytes - skipped});
    return Status();
  }

  const WebLayout& layout_;
  const ContainerOptions& options_;
  PictureReader* reader_;
  WebIndex& index_;
  LabelColumn labels_;
};

}  // namespace

const WebPart* WebLayout::picture() const {
  for (const WebPart& part : parts) {
    if (part.use == PartUse::kPicture) return &part;
  }
  return nullptr;
}

const WebPart* WebLayout::label() const {
  const bool has = parts.back().use == PartUse::kClass || parts.back().use == PartUse::kJson;
  return has ? &parts.back() : nullptr;
}

Result<WebLayout> FindLayout(const std::string& spec, const FileTable& files,
                             const ContainerOptions& options) {
  WebLayout layout;
  RIDGE_RETURN_IF_ERROR(
      ForEachSample(files, [&](const Sample& sample, FileWindow& window, int64_t) -> Result<bool> {
        RIDGE_ASSIGN_OR_RETURN(layout, LayoutOf(spec, sample, window, options));
        return false;
      }));
  return layout;
}

Result<WebIndex> IndexSamples(FileTable files, const WebLayout& layout,
                              const ContainerOptions& options,
                              const std::vector<std::string>& classes, PictureReader* reader) {
  WebIndex index;
  Indexer indexer(layout, options, reader, index);
  RIDGE_RETURN_IF_ERROR(ForEachSample(
      files, [&](const Sample& sample, FileWindow& window, int64_t file) -> Result<bool> {
        RIDGE_RETURN_IF_ERROR(indexer.Add(sample, window, file));
        return true;
      }));
  auto labels = indexer.labels().Finish(classes);
  if (!labels.ok()) return Bad(files.path(0) + ": " + labels.status().message());
  index.labels = std::move(labels->values);
  index.classes = std::move(labels->names);
  index.files = std::move(files);
  return index;
}

}  // namespace ridge
