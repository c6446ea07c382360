// A spec is `kind` or `kind:argument`; each kind has a file of its own, called from here.
#include "ridge/data/source.h"

#include <algorithm>
#include <new>
#include <string_view>

#include "ridge/data/csv.h"
#include "ridge/data/idx.h"
#include "ridge/data/image_folder.h"
#include "ridge/data/npz_source.h"
#include "ridge/data/synthetic.h"

namespace ridge {
namespace {

Status UnknownSpec(const std::string& spec) {
  return InvalidArgument(
      "data '" + spec +
      "': is not a known kind of data; known are fashion-mnist, synthetic, images:DIR, idx:DIR, "
      "npz:FILE, csv:FILE");
}

// "kind:argument"
struct Spec {
  std::string text, kind, argument;
  bool guessed = false;  // a folder of pictures without a kind
};

Spec SplitSpec(const std::string& text) {
  const size_t colon = text.find(':');
  Spec spec{text, text.substr(0, colon), ""};
  if (colon != std::string::npos) spec.argument = text.substr(colon + 1);
  return spec;
}

bool IsKnown(const std::string& kind) {
  constexpr std::string_view kKinds[] = {"fashion-mnist", "synthetic", "images",
                                         "idx",           "npz",       "csv"};
  return std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds);
}

// A folder of pictures is taken for what it is.
Spec ParseSpec(const std::string& text) {
  Spec spec = SplitSpec(text);
  if (IsKnown(spec.kind) || !HoldsPictures(text)) return spec;
  spec = SplitSpec("images:" + text);
  spec.guessed = true;
  return spec;
}

Status CheckArgument(const Spec& spec) {
  if (!spec.argument.empty()) return Status();
  const bool folder = spec.kind == "idx" || spec.kind == "images";
  return InvalidArgument("data '" + spec.text + "': names no " + (folder ? "folder" : "file") +
                         "; write " + spec.kind + (folder ? ":DIR" : ":FILE"));
}

Result<DataSplits> OpenKind(const Spec& spec, const DataOptions& options) {
  if (spec.text == "fashion-mnist") return OpenFashionMnist(options.fashion_mnist_folder);
  if (spec.text == "synthetic") return OpenSynthetic(options);
  const bool takes_argument =
      IsKnown(spec.kind) && spec.kind != "fashion-mnist" && spec.kind != "synthetic";
  if (!takes_argument) return UnknownSpec(spec.text);
  RIDGE_RETURN_IF_ERROR(CheckArgument(spec));
  if (spec.kind == "images") return OpenImageFolder(spec.text, spec.argument, options);
  if (spec.kind == "idx") return OpenIdxFolder(spec.text, spec.argument);
  if (spec.kind == "npz") return OpenNpz(spec.text, spec.argument);
  return OpenCsv(spec.text, spec.argument, options);
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
    const Spec spec = ParseSpec(text);
    Result<DataSplits> splits = OpenKind(spec, options);
    if (splits.ok() && spec.guessed)
      splits->notes.push_back("data '" + text + "': is read as " + spec.text);
    return splits;
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "data '" + text + "': does not fit into memory");
  }
}

Result<std::optional<DataFacts>> FactsBeforeModel(const std::string& text,
                                                  const DataOptions& options) {
  const Spec spec = ParseSpec(text);
  if (spec.text == "synthetic") return std::optional(DataFacts());
  if (spec.kind != "images") return std::optional<DataFacts>();
  RIDGE_RETURN_IF_ERROR(CheckArgument(spec));
  RIDGE_ASSIGN_OR_RETURN(DataFacts facts, ImageFolderFacts(spec.text, spec.argument, options));
  return std::optional(std::move(facts));
}

}  // namespace ridge
