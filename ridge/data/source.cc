// A spec is `kind` or `kind:argument` (kinds.h).
#include "ridge/data/source.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "ridge/core/process.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/kinds.h"
#include "ridge/data/mask_folder.h"
#include "ridge/data/mixture.h"
#include "ridge/data/point_folder.h"
#include "ridge/data/spec_options.h"

namespace ridge {
namespace {

Status UnknownSpec(const std::string& spec) {
  std::string known;
  for (const DataKind& kind : DataKinds()) known += (known.empty() ? "" : ", ") + kind.Form();
  return InvalidArgument("data '" + spec + "': is not a known kind of data; known are " + known);
}

// "kind:argument"
struct Spec {
  std::string text, argument;
  const DataKind* kind = nullptr;  // null: none of them
  bool guessed = false;            // a folder of files without a kind
};

Spec SplitSpec(const std::string& text) {
  const size_t colon = text.find(':');
  const bool has_argument = colon != std::string::npos;
  Spec spec{text, has_argument ? text.substr(colon + 1) : ""};
  for (const DataKind& kind : DataKinds()) {
    const bool fits = kind.argument != nullptr || !has_argument;
    if (fits && text.substr(0, colon) == kind.name) spec.kind = &kind;
  }
  return spec;
}

// The kind of a file by its name; "" where that says nothing.
std::string KindOfFile(const std::string& text) {
  std::string path = SplitSpecOptions(text).path;
  if (path.ends_with(".gz")) path.resize(path.size() - 3);
  constexpr std::pair<const char*, const char*> kSuffixes[] = {
      {".csv", "csv"},         {".tsv", "csv"}, {".npz", "npz"},          {".jsonl", "jsonl"},
      {".parquet", "parquet"}, {".tar", "tar"}, {".tfrecord", "tfrecord"}};
  for (const auto& [suffix, kind] : kSuffixes) {
    if (path.ends_with(suffix)) return kind;
  }
  return "";
}

// A file of a known suffix and a folder of pictures or of point clouds are taken for what they are.
Spec ParseSpec(const std::string& text) {
  Spec spec = SplitSpec(text);
  if (spec.kind != nullptr) return spec;
  std::string kind = KindOfFile(text);
  if (kind.empty() && HoldsMasks(text)) kind = "masks";
  if (kind.empty() && HoldsPictures(text)) kind = "images";
  if (kind.empty() && HoldsClouds(text)) kind = "points";
  if (kind.empty()) return spec;
  spec = SplitSpec(kind + ":" + text);
  spec.guessed = true;
  return spec;
}

// Whether a part of a mixture begins so.
bool BeginsSpec(const std::string& piece) {
  const bool is_option = piece.find('=') != std::string::npos;
  return SplitSpec(piece).kind != nullptr || (!is_option && !KindOfFile(piece).empty());
}

Status CheckSpec(const Spec& spec) {
  if (spec.kind == nullptr) return UnknownSpec(spec.text);
  if (spec.kind->argument == nullptr || !spec.argument.empty()) return Status();
  const bool folder = std::string_view(spec.kind->argument) == "DIR";
  return InvalidArgument("data '" + spec.text + "': names no " + (folder ? "folder" : "file") +
                         "; write " + spec.kind->Form());
}

}  // namespace

Source::Source(std::string name, std::vector<Field> fields, int64_t size)
    : name_(std::move(name)), fields_(std::move(fields)), size_(size) {
  RIDGE_CHECK(size_ >= 1, name_ + ": a source has at least one sample");
}

int Source::FindField(const std::string& name) const {
  for (size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

Status Source::ReadOne(int64_t index, int field, void* out) const {
  std::vector<char> scratch(static_cast<size_t>(scratch_bytes()));
  return Read({index}, field, scratch, out);
}

const void* Source::View(int64_t, int) const { return nullptr; }

std::string Source::Origin(int64_t index) const {
  return name_ + "[" + std::to_string(index) + "]";
}

int64_t ResidentBytes(const std::vector<SourcePtr>& sources) {
  std::vector<const Source*> counted;
  int64_t bytes = 0;
  for (const SourcePtr& source : sources) {
    if (!source) continue;
    const Source* storage = source->storage();
    if (std::find(counted.begin(), counted.end(), storage) != counted.end()) continue;
    counted.push_back(storage);
    bytes += storage->resident_bytes();
  }
  return bytes;
}

Result<DataSplits> OpenData(const std::string& text, const DataOptions& options) {
  try {
    if (const auto mixture = ParseMixture(text, BeginsSpec)) {
      Result<DataSplits> mixed = OpenMixture(text, *mixture, options);
      if (mixed.ok()) mixed->bad_records = options.bad_records;
      return mixed;
    }
    const Spec spec = ParseSpec(text);
    RIDGE_RETURN_IF_ERROR(CheckSpec(spec));
    const int64_t before = AllocatedBytes();
    Result<DataSplits> splits = spec.kind->open(spec.text, spec.argument, options);
    if (splits.ok()) splits->held_bytes = AllocatedBytes() - before;
    if (splits.ok()) splits->bad_records = options.bad_records;
    if (splits.ok() && spec.guessed)
      splits->notes.push_back("data '" + text + "': is read as " + spec.text);
    return splits;
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "data '" + text + "': does not fit into memory");
  }
}

Result<std::optional<DataFacts>> FactsBeforeModel(const std::string& text,
                                                  const DataOptions& options) {
  if (const auto mixture = ParseMixture(text, BeginsSpec))
    return MixtureFacts(text, *mixture, options);
  const Spec spec = ParseSpec(text);
  if (spec.kind == nullptr || spec.kind->facts == nullptr) return std::optional<DataFacts>();
  RIDGE_RETURN_IF_ERROR(CheckSpec(spec));
  RIDGE_ASSIGN_OR_RETURN(DataFacts facts, spec.kind->facts(spec.text, spec.argument, options));
  return std::optional(std::move(facts));
}

}  // namespace ridge
