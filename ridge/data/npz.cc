#include "ridge/data/npz.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <new>

#include "ridge/core/files.h"
#include "ridge/core/small_float.h"
#include "ridge/data/npy.h"
#include "ridge/data/zip.h"

namespace ridge {
namespace {

using NamedTensor = std::pair<std::string, Tensor>;

constexpr std::string_view kEnding = ".npy";

Result<NamedTensor> ReadEntry(const std::string& path, const ZipEntry& entry) {
  if (!entry.name.ends_with(kEnding)) {
    return Status(ErrorCode::kInvalidData,
                  fmt::format("{}: holds '{}', should hold only .npy arrays", path, entry.name));
  }
  RIDGE_ASSIGN_OR_RETURN(const auto stream, OpenZipEntry(path, entry));
  RIDGE_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(*stream, entry.bytes));
  return NamedTensor(entry.name.substr(0, entry.name.size() - kEnding.size()), std::move(tensor));
}

Status CheckNewName(const std::string& path, const std::vector<NamedTensor>& tensors,
                    const std::string& name) {
  const bool known = std::any_of(tensors.begin(), tensors.end(),
                                 [&](const NamedTensor& other) { return other.first == name; });
  if (!known) return Status();
  return Status(ErrorCode::kInvalidData, fmt::format("{}: holds '{}' twice", path, name));
}

Result<std::vector<NamedTensor>> ReadEntries(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const std::vector<ZipEntry> entries, ReadZipDirectory(path));
  std::vector<NamedTensor> tensors;
  for (const ZipEntry& entry : entries) {
    RIDGE_ASSIGN_OR_RETURN(NamedTensor tensor, ReadEntry(path, entry));
    RIDGE_RETURN_IF_ERROR(CheckNewName(path, tensors, tensor.first));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// numpy has no bf16 and no floats of 8 bits; each of their values is an f32 value.
Tensor Writable(const Tensor& tensor) {
  const DType dtype = tensor.type().dtype;
  if (dtype != DType::kBF16 && !IsSmallFloat(dtype)) return tensor;
  Tensor wide(TensorType{DType::kF32, tensor.type().dims});
  for (int64_t i = 0; i < tensor.elements(); ++i)
    StoreFromDouble(DType::kF32, wide.mutable_data(), i, tensor.at(i));
  return wide;
}

Result<std::string> MakeArchive(const std::vector<NamedTensor>& tensors) {
  std::vector<Tensor> writable;
  std::list<std::string> headers;  // a list: the views below stay valid
  std::vector<ZipContent> entries;
  for (const auto& [name, tensor] : tensors) {
    writable.push_back(Writable(tensor));
    headers.push_back(NpyHeader(writable.back().type()));
    const std::string_view elements(writable.back().as<char>(),
                                    static_cast<size_t>(writable.back().bytes()));
    entries.push_back({name + std::string(kEnding), {headers.back(), elements}});
  }
  return MakeZip(entries);
}

}  // namespace

Result<std::vector<NamedTensor>> ReadNpz(const std::string& path) {
  try {
    return ReadEntries(path);
  } catch (const std::bad_alloc&) {
    return Status(ErrorCode::kOutOfMemory, path + ": does not fit into memory");
  }
}

Status WriteNpz(const std::string& path, const std::vector<NamedTensor>& tensors) {
  RIDGE_ASSIGN_OR_RETURN(const std::string archive, MakeArchive(tensors));
  return WriteFileAtomically(path, archive);
}

}  // namespace ridge
