// Lines of any bytes; what is read has every sample that it promises, and what is said to be bad is
// no more than the lines.
#include <algorithm>
#include <vector>

#include "ridge/data/json_lines.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

void ReadAll(const ridge::Source& source) {
  for (size_t field = 0; field < source.fields().size(); ++field) {
    std::vector<char> sample(static_cast<size_t>(source.fields()[field].type.bytes()));
    for (int64_t index = 0; index < source.size(); ++index) {
      const auto read = source.ReadOne(index, static_cast<int>(field), sample.data());
      RIDGE_CHECK(read.ok(), read.message());
    }
  }
}

void Open(const std::string& path, const ridge::DataOptions& options) {
  const auto opened = ridge::OpenJsonLines("jsonl:fuzz", path + ",length=8", options);
  if (!opened.ok()) return;
  for (const ridge::SourcePtr& source : {opened->train, opened->validation}) {
    if (source != nullptr) ReadAll(*source);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  Open(file.path(), {});
  ridge::DataOptions lenient;
  lenient.bad_records =
      std::make_shared<ridge::BadRecords>(*ridge::BadRecordsPolicy::Parse("skip:1000000"));
  lenient.hold_out = 0.3;
  Open(file.path(), lenient);
  const auto lines = std::count(data, data + size, '\n') + 1;
  RIDGE_CHECK(size < 2 || data[0] == 0x1F || lenient.bad_records->count() <= lines, "a line each");
  return 0;
}
