// A table of any bytes; what is read has every sample that it promises, and goes through its own
// preprocessing to the same bytes.
#include <vector>

#include "ridge/data/csv.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

using Bytes = std::vector<char>;

Bytes ReadSample(const ridge::Source& source, int64_t index) {
  Bytes bytes;
  for (size_t field = 0; field < source.fields().size(); ++field) {
    Bytes sample(static_cast<size_t>(source.fields()[field].type.bytes()));
    const auto read = source.ReadOne(index, static_cast<int>(field), sample.data());
    RIDGE_CHECK(read.ok(), read.message());
    bytes.insert(bytes.end(), sample.begin(), sample.end());
  }
  return bytes;
}

void CheckTwice(const std::string& path, const ridge::DataOptions& options) {
  const auto opened = ridge::OpenCsv("csv:fuzz", path, options);
  if (!opened.ok()) return;
  ridge::DataOptions known = options;
  known.preprocessing = opened->preprocessing;
  const auto again = ridge::OpenCsv("csv:fuzz", path, known);
  RIDGE_CHECK(again.ok(), again.status().message());
  for (const auto part : {&ridge::DataSplits::train, &ridge::DataSplits::validation}) {
    const ridge::SourcePtr &first = (*opened).*part, &second = (*again).*part;
    RIDGE_CHECK((first == nullptr) == (second == nullptr), "both hold out, or neither");
    if (first == nullptr) continue;
    RIDGE_CHECK(first->size() == second->size(), "as many samples");
    for (const int64_t index : {int64_t{0}, first->size() - 1})
      RIDGE_CHECK(ReadSample(*first, index) == ReadSample(*second, index), "the same sample");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  CheckTwice(file.path(), {});
  ridge::DataOptions split;
  split.hold_out = 0.3;
  CheckTwice(file.path(), split);
  return 0;
}
