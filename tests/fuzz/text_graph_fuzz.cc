// A text graph of any bytes; what is read prints, and the print reads back to the same print.
#include "ridge/graph/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = ridge::ParseGraph({reinterpret_cast<const char*>(data), size}, "fuzz.ridge");
  if (!graph.ok()) return 0;
  const std::string text = ridge::PrintGraph(*graph);
  const auto again = ridge::ParseGraph(text, "print.ridge");
  RIDGE_CHECK(again.ok(), again.status().message() + "\n" + text);
  RIDGE_CHECK(ridge::PrintGraph(*again) == text, "the print is not stable:\n" + text);
  return 0;
}
