// Text records of any bytes: what is between the first and the last is in the file, in its order,
// at the byte that it says.
#include "ridge/data/byte_stream.h"
#include "ridge/data/text_records.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const bool plain = !bytes.starts_with("\x1F\x8B");
  for (const char* form : {"line", "paragraph", "file", "%"}) {
    int64_t line = 0;
    const auto read = ridge::ForEachRecord(file.path(), form, [&](const ridge::TextRecord& record) {
      RIDGE_CHECK(record.line > line, "records stand one behind the other");
      line = record.line;
      const auto at = static_cast<size_t>(record.offset);
      RIDGE_CHECK(!plain || bytes.substr(at, record.text.size()) == record.text,
                  "a record stands where it says");
      return ridge::Status();
    });
    RIDGE_CHECK(read.ok() || !plain, "plain text has no damage");
  }
  return 0;
}
