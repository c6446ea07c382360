#include "ridge/onnx/import/converter.h"

#include <algorithm>
#include <map>
#include <utility>

namespace ridge {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

const std::map<Key, const OnnxConverter*>& Table() {
  static const auto table = [] {
    std::map<Key, const OnnxConverter*> map;
#define RIDGE_ONNX_FAMILY(Name)                               \
  for (const OnnxConverter& entry : Onnx##Name##Converters()) \
    map.emplace(Key{entry.domain, entry.op_type}, &entry);
#include "ridge/onnx/import/converters/families.def"
#undef RIDGE_ONNX_FAMILY
    return map;
  }();
  return table;
}

}  // namespace

const OnnxConverter* FindOnnxConverter(std::string_view domain, std::string_view op_type) {
  const auto found = Table().find({domain == "ai.onnx" ? "" : domain, op_type});
  return found == Table().end() ? nullptr : found->second;
}

std::vector<const OnnxConverter*> AllOnnxConverters() {
  std::vector<const OnnxConverter*> all;
  for (const auto& [key, converter] : Table()) all.push_back(converter);
  return all;
}

}  // namespace ridge
