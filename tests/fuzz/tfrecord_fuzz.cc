// A TFRecord file of any bytes, its checksums put right, and the Examples in it: what is opened can
// be read, or its records are damaged pictures.
#include <cstring>
#include <string>
#include <vector>

#include "ridge/core/crc32c.h"
#include "ridge/data/container/tfrecord.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void PutChecksum(std::string& file, size_t at, size_t from, size_t bytes) {
  const uint32_t crc = ridge::MaskCrc32c(ridge::Crc32c({file.data() + from, bytes}));
  std::memcpy(file.data() + at, &crc, sizeof crc);
}

// Checksums hide the parser from a fuzzer: each that belongs to a whole record becomes right.
std::string WithChecksums(std::string file) {
  constexpr size_t kHeader = 12, kFooter = 4;
  for (size_t at = 0; file.size() - at >= kHeader;) {
    uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof length);
    PutChecksum(file, at + 8, at, 8);
    if (length > file.size() - at - kHeader) break;
    if (file.size() - at - kHeader - length < kFooter) break;
    PutChecksum(file, at + kHeader + length, at + kHeader, length);
    at += kHeader + length + kFooter;
  }
  return file;
}

// With right checksums all fields can be read but damaged pictures.
void ReadAll(const ridge::SourcePtr& source, bool checked) {
  if (source == nullptr) return;
  std::vector<char> scratch(static_cast<size_t>(source->scratch_bytes()));
  for (size_t field = 0; field < source->fields().size(); ++field) {
    std::vector<char> out(static_cast<size_t>(source->fields()[field].type.bytes()));
    const bool image = source->fields()[field].name == "image";
    for (int64_t i = 0; i < source->size(); ++i) {
      const auto read = source->Read({i}, static_cast<int>(field), scratch, out.data());
      RIDGE_CHECK(read.ok() || image || !checked, read.message());
    }
  }
}

void Open(const std::string& path, const std::string& options, double hold_out,
          bool checked = true) {
  ridge::DataOptions data;
  data.hold_out = hold_out;
  const auto facts = ridge::TfRecordFacts("tfrecord:fuzz", path + options, data);
  const auto opened = ridge::OpenTfRecord("tfrecord:fuzz", path + options, data);
  RIDGE_CHECK(facts.ok() || !opened.ok(), "what is opened has facts");
  if (!opened.ok()) return;
  ReadAll(opened->train, checked);
  ReadAll(opened->validation, checked);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile as_is(data, size);
  Open(as_is.path(), ",size=8", 0, /*checked=*/false);
  const std::string text = WithChecksums({reinterpret_cast<const char*>(data), size});
  const ridge::FuzzFile file(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  Open(file.path(), ",size=8", 0.3);
  Open(file.path(), ",size=8,schema=label:i64,x:f32[2]", 0);
  return 0;
}
