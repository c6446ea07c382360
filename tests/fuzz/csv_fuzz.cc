// A table of any bytes; what is read has every sample that it promises.
#include <vector>

#include "ridge/data/csv.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ridge::FuzzFile file(data, size);
  const auto opened = ridge::OpenCsv("csv:fuzz", file.path());
  if (!opened.ok()) return 0;
  const ridge::Source& source = *opened->train;
  for (size_t field = 0; field < source.fields().size(); ++field) {
    std::vector<char> sample(static_cast<size_t>(source.fields()[field].type.bytes()));
    for (const int64_t index : {int64_t{0}, source.size() - 1}) {
      const auto read = source.Read(index, static_cast<int>(field), sample.data());
      RIDGE_CHECK(read.ok(), read.message());
    }
  }
  return 0;
}
