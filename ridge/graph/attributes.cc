#include "ridge/graph/attributes.h"

#include "ridge/graph/text.h"

namespace ridge {

const AttrMap::Map& AttrMap::map() const {
  static const Map kNone;
  return map_ == nullptr ? kNone : *map_;
}

AttrMap::Map& AttrMap::own() {
  if (map_ == nullptr) {
    map_ = std::make_shared<Map>();
  } else if (map_.use_count() > 1) {
    map_ = std::make_shared<Map>(*map_);
  }
  return *map_;
}

const char* AttrKindName(const Attr& attr) {
  static constexpr const char* kNames[] = {"an integer",         "a number",          "a text",
                                           "a list of integers", "a list of numbers", "a tensor",
                                           "a subgraph"};
  return kNames[attr.index()];
}

bool SameAttr(const Attr& a, const Attr& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a)) return tensor->same_bits(std::get<Tensor>(b));
  if (const auto* graph = std::get_if<std::shared_ptr<const Graph>>(&a)) {
    const auto& other = std::get<std::shared_ptr<const Graph>>(b);
    if (*graph == nullptr || other == nullptr) return *graph == other;
    return PrintGraph(**graph) == PrintGraph(*other);
  }
  return std::visit(
      [&](const auto& value) -> bool {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, Tensor> ||
                      std::is_same_v<T, std::shared_ptr<const Graph>>) {
          return false;  // handled above
        } else {
          return value == std::get<T>(b);
        }
      },
      a);
}

bool SameAttrs(const AttrMap& a, const AttrMap& b) {
  if (a.SharesWith(b)) return true;
  if (a.size() != b.size()) return false;
  for (auto ia = a.begin(), ib = b.begin(); ia != a.end(); ++ia, ++ib) {
    if (ia->first != ib->first || !SameAttr(ia->second, ib->second)) return false;
  }
  return true;
}

}  // namespace ridge
