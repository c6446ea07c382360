// safetensors: tensors by name in one file that every framework reads.
//
// File: u64 length of the header, little-endian; the header (safetensors_header.h); then the
// tensors' bytes, row-major little-endian, without holes, in the order given.
//
// Neither side trusts the other: the reader checks everything before it uses anything, and its
// memory is bounded by the length of the header that is really in the file.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ridge/core/output_file.h"
#include "ridge/core/safetensors_header.h"
#include "ridge/core/status.h"
#include "ridge/core/tensor_file.h"

namespace ridge {

// What identifies a file's content.
struct FileDigest {
  int64_t size_bytes = 0;
  uint32_t crc32c = 0;
  bool operator==(const FileDigest&) const = default;
};

// Writes a file in one go, keeping nothing but the header in memory.  A file that is not finished
// is removed.  Not atomic: checkpoints write into a folder that is renamed when complete.
//
//   RIDGE_ASSIGN_OR_RETURN(auto writer, SafetensorsWriter::Create(path, entries, metadata));
//   for (...) RIDGE_RETURN_IF_ERROR(writer.Append(data, bytes));
//   RIDGE_ASSIGN_OR_RETURN(const FileDigest digest, writer.Finish());
class SafetensorsWriter {
 public:
  // Fails with kInvalidArgument for a name that is double, empty, reserved or not UTF-8, and with
  // kUnavailable when the file can't be written.
  static Result<SafetensorsWriter> Create(const std::string& path,
                                          std::span<const SafetensorsEntry> entries,
                                          const SafetensorsMetadata& metadata = {});
  SafetensorsWriter(SafetensorsWriter&&) = default;
  SafetensorsWriter& operator=(SafetensorsWriter&&) = delete;
  ~SafetensorsWriter();

  // The next bytes of the buffer: a tensor, a piece of one, or several.
  Status Append(const void* data, int64_t bytes);

  // Syncs and closes.  REQUIRES: all tensors' bytes were appended.
  Result<FileDigest> Finish();

 private:
  explicit SafetensorsWriter(OutputFile file) : file_(std::move(file)) {}
  Status Write(std::string_view bytes);

  std::optional<OutputFile> file_;  // empty once finished
  int64_t missing_bytes_ = 0;
  uint32_t crc_ = 0;
};

// What comes before the tensors' bytes: the length and the header.  Fails as
// PrintSafetensorsHeader.
Result<std::string> SafetensorsHead(std::span<const SafetensorsEntry> entries,
                                    const SafetensorsMetadata& metadata = {});

struct SafetensorsItem {
  std::string name;
  TensorType type;
  const void* data = nullptr;  // type.bytes() bytes
};
Result<FileDigest> WriteSafetensors(const std::string& path, std::span<const SafetensorsItem> items,
                                    const SafetensorsMetadata& metadata = {});

// Reads a file back from the disk, not from what the system still has in memory where that can be
// asked for.  Fails with kInvalidData when the file can't be read.
Result<FileDigest> ReadFileDigest(const std::string& path);

// An open file whose header has been checked.  Copies share the file.  Thread-safe.
//
// Load()ed tensors alias a mapping of the file: others must not shorten the file meanwhile.
// ReadInto() and Refer() have no such demand and leave nothing mapped.
class SafetensorsFile {
 public:
  // Fails with kInvalidData when anything is wrong with the file, and with kUnsupported for an
  // element type that ridge lacks.  The message names the file and the tensor.
  static Result<SafetensorsFile> Open(const std::string& path);

  const SafetensorsMetadata& metadata() const { return state_->header.metadata; }
  // By offset.
  const std::vector<SafetensorsEntry>& entries() const { return state_->header.entries; }
  const SafetensorsEntry* Find(std::string_view name) const { return state_->header.Find(name); }

  // Fails with kInvalidData when there is no such tensor or the file can't be mapped.  Adopts the
  // mapping, or copies where the bytes are not aligned to the element's size.
  Result<Tensor> Load(std::string_view name) const;

  // The tensor, whose numbers stay in the file until they are wanted when they are many; the file
  // stays open for it.
  Result<Tensor> Refer(const SafetensorsEntry& entry) const;

  // Reads entry.type.bytes() bytes.
  Status ReadInto(const SafetensorsEntry& entry, void* to) const {
    return ReadInto(entry, 0, entry.type.bytes(), to);
  }
  // Reads so many bytes of the tensor from byte `begin` on.
  Status ReadInto(const SafetensorsEntry& entry, int64_t begin, int64_t bytes, void* to) const;

 private:
  struct State {
    int fd() const { return file->fd(); }
    std::string path;
    std::shared_ptr<const TensorFile> file;
    int64_t buffer_start = 0;  // in the file
    SafetensorsHeader header;
  };
  explicit SafetensorsFile(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  static Status ReadHeader(State& state);
  Result<Tensor> Map(const SafetensorsEntry& entry) const;

  std::shared_ptr<const State> state_;
};

}  // namespace ridge
