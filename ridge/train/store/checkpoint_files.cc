#include "ridge/train/store/checkpoint_files.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "ridge/core/files.h"
#include "ridge/train/store/parallel_writer.h"

namespace ridge {
namespace {

constexpr char kParameters[] = "/parameters.safetensors";
constexpr char kStates[] = "/state.safetensors";
constexpr int64_t kMostStateBytes = 1 << 24;

const SafetensorsMetadata kMetadata = {{"format", "pt"}};

std::vector<SafetensorsEntry> EntriesOf(std::span<const PersistentTensor> tensors) {
  std::vector<SafetensorsEntry> entries;
  for (const PersistentTensor& tensor : tensors) entries.push_back({tensor.name, tensor.type});
  return entries;
}

Result<FileDigest> WriteTensors(const std::string& path, std::span<const PersistentTensor> tensors,
                                ParallelWriter* parallel) {
  if (parallel != nullptr) return parallel->Write(path, tensors);
  RIDGE_ASSIGN_OR_RETURN(SafetensorsWriter writer,
                         SafetensorsWriter::Create(path, EntriesOf(tensors), kMetadata));
  for (const PersistentTensor& tensor : tensors) {
    RIDGE_RETURN_IF_ERROR(
        tensor.Read([&](const void* data, int64_t bytes) { return writer.Append(data, bytes); }));
  }
  return writer.Finish();
}

Status VerifyFile(const std::string& path, const FileDigest& expected) {
  RIDGE_ASSIGN_OR_RETURN(const FileDigest found, ReadFileDigest(path));
  if (found == expected) return Status();
  return Status(
      ErrorCode::kInvalidData,
      fmt::format("{}: damaged: {} bytes with crc32c {:08x}, written were {} bytes with "
                  "{:08x}",
                  path, found.size_bytes, found.crc32c, expected.size_bytes, expected.crc32c));
}

Status ReadTensors(const std::string& path, std::span<const PersistentTensor> tensors,
                   LoadMode mode) {
  RIDGE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(path));
  if (mode == LoadMode::kResume && file.entries().size() != tensors.size()) {
    return Status(ErrorCode::kInvalidData, fmt::format("{}: {} tensors; the run has {}", path,
                                                       file.entries().size(), tensors.size()));
  }
  for (const PersistentTensor& tensor : tensors) {
    const SafetensorsEntry* entry = file.Find(tensor.name);
    if (entry == nullptr) {
      return Status(ErrorCode::kInvalidData, fmt::format("{}: no '{}'", path, tensor.name));
    }
    if (entry->type != tensor.type) {
      return Status(ErrorCode::kInvalidData,
                    fmt::format("{}: '{}' is {}; the run has {}", path, tensor.name,
                                TypeToString(entry->type), TypeToString(tensor.type)));
    }
    RIDGE_RETURN_IF_ERROR(tensor.Write([&](int64_t begin, int64_t bytes, void* to) {
      return file.ReadInto(*entry, begin, bytes, to);
    }));
  }
  return Status();
}

}  // namespace

Result<std::string> HeadOf(std::span<const PersistentTensor> tensors) {
  return SafetensorsHead(EntriesOf(tensors), kMetadata);
}

Status WriteCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                            CheckpointState& state, ParallelWriter* parallel) {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  const Status made = MakeFolders(folder);
  // The other ranks wait for a path.
  if (!made.ok() && parallel != nullptr) (void)parallel->Write("", tensors.parameters).ok();
  RIDGE_RETURN_IF_ERROR(made);
  RIDGE_ASSIGN_OR_RETURN(state.parameters,
                         WriteTensors(folder + kParameters, tensors.parameters, parallel));
  RIDGE_ASSIGN_OR_RETURN(state.state, WriteTensors(folder + kStates, tensors.state, parallel));
  RIDGE_RETURN_IF_ERROR(WriteCheckpointState(folder, state));
  return SyncPath(folder);
}

Status WriteCheckpointState(const std::string& folder, const CheckpointState& state) {
  return WriteFileAtomically(folder + "/" + kCheckpointStateFile, CheckpointStateToJson(state));
}

Result<CheckpointState> ReadCheckpointState(const std::string& folder) {
  const std::string path = folder + "/" + kCheckpointStateFile;
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostStateBytes));
  return CheckpointStateFromJson(text, path);
}

Status VerifyCheckpointFiles(const std::string& folder, const CheckpointState& state) {
  RIDGE_RETURN_IF_ERROR(VerifyFile(folder + kParameters, state.parameters));
  RIDGE_RETURN_IF_ERROR(VerifyFile(folder + kStates, state.state));
  const Result<CheckpointState> read_back = ReadCheckpointState(folder);
  return read_back.ok() ? Status() : read_back.status();
}

Status ReadCheckpointFiles(const std::string& folder, const CheckpointTensors& tensors,
                           LoadMode mode) {
  RIDGE_RETURN_IF_ERROR(ReadTensors(folder + kParameters, tensors.parameters, mode));
  return ReadTensors(folder + kStates, tensors.state, mode);
}

}  // namespace ridge
