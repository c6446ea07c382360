// A tar archive of any bytes, the sums of its headers put right: what is opened can be read, or
// its members are damaged pictures.
#include <cstdio>
#include <string>
#include <vector>

#include "ridge/data/container/web_dataset.h"
#include "tests/fuzz/fuzz_file.h"

namespace {

// Sums hide the parser from a fuzzer.  Any block that has a type at its place may be a header.
std::string WithSums(std::string file) {
  constexpr size_t kBlock = 512, kAt = 148, kBytes = 8;
  for (size_t at = 0; at + kBlock <= file.size(); at += kBlock) {
    if (file.compare(at + 257, 5, "ustar") != 0) continue;
    file.replace(at + kAt, kBytes, kBytes, ' ');
    unsigned sum = 0;
    for (size_t i = at; i < at + kBlock; ++i) sum += static_cast<uint8_t>(file[i]);
    char text[16];
    std::snprintf(text, sizeof text, "%06o", sum);
    file.replace(at + kAt, 7, text, 7);
  }
  return file;
}

void ReadAll(const ridge::SourcePtr& source) {
  if (source == nullptr) return;
  std::vector<char> scratch(static_cast<size_t>(source->scratch_bytes()));
  for (size_t field = 0; field < source->fields().size(); ++field) {
    std::vector<char> out(static_cast<size_t>(source->fields()[field].type.bytes()));
    const bool image = source->fields()[field].name == "image";
    for (int64_t i = 0; i < source->size(); ++i) {
      const auto read = source->Read({i}, static_cast<int>(field), scratch, out.data());
      RIDGE_CHECK(read.ok() || image, read.message());
    }
  }
}

void Open(const std::string& path, const std::string& options, double hold_out) {
  ridge::DataOptions data;
  data.hold_out = hold_out;
  const auto facts = ridge::WebDatasetFacts("tar:fuzz", path + options, data);
  const auto opened = ridge::OpenWebDataset("tar:fuzz", path + options, data);
  RIDGE_CHECK(facts.ok() || !opened.ok(), "what is opened has facts");
  if (!opened.ok()) return;
  ReadAll(opened->train);
  ReadAll(opened->validation);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text = WithSums({reinterpret_cast<const char*>(data), size});
  const ridge::FuzzFile file(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  Open(file.path(), ",size=8", 0.3);
  Open(file.path(), ",size=8,json=label", 0);
  return 0;
}
