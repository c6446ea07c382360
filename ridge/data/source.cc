// A spec is `kind` or `kind:argument`; each kind has a file of its own, called from here.
#include "ridge/data/source.h"

#include <algorithm>
#include <new>

#include "ridge/data/csv.h"
#include "ridge/data/idx.h"
#include "ridge/data/npz_source.h"
#include "ridge/data/synthetic.h"

namespace ridge {
namespace {

Status UnknownSpec(const std::string& spec) {
  return InvalidArgument(
      "data '" + spec +
      "': is not a known kind of data; known are fashion-mnist, synthetic, idx:DIR, "
      "npz:FILE, csv:FILE");
}

Result<DataSplits> OpenKind(const std::string& spec, const std::string& kind,
                            const std::string& argument, const DataOptions& options) {
  if (spec == "fashion-mnist") return OpenFashionMnist(options.fashion_mnist_folder);
  if (spec == "synthetic") return OpenSynthetic(options);
  const bool known = kind == "idx" || kind == "npz" || kind == "csv";
  if (!known) return UnknownSpec(spec);
  if (argument.empty()) {
    return InvalidArgument("data '" + spec + "': names no " + (kind == "idx" ? "folder" : "file") +
                           "; write " + kind + (kind == "idx" ? ":DIR" : ":FILE"));
  }
  if (kind == "idx") return OpenIdxFolder(spec, argument);
  if (kind == "npz") return OpenNpz(spec, argument);
  return OpenCsv(spec, argument);
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

Result<DataSplits> OpenData(const std::string& spec, const DataOptions& options) {
  const size_t colon = spec.find(':');
  const std::string argument = colon == std::string::npos ? "" : spec.substr(colon + 1);
  try {
    return OpenKind(spec, spec.substr(0, colon), argument, options);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, "data '" + spec + "': does not fit into memory");
  }
}

}  // namespace ridge
