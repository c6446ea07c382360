// Attr: a constant argument of a node.  Integers also encode booleans.
#pragma once
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

class Graph;

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          Tensor, std::shared_ptr<const Graph>>;

// Attributes by name, in order of name, so that text and plans are deterministic.  A std::map whose
// copies share their contents until one of them is changed (copy on write): passes copy every node
// many times and change few.  Calls that may change a map (operator[], at and begin of a map that
// is not const) unshare its contents first, so hold no iterators across them.
class AttrMap {
 public:
  using Map = std::map<std::string, Attr>;
  using value_type = Map::value_type;
  using iterator = Map::iterator;
  using const_iterator = Map::const_iterator;

  AttrMap() = default;
  AttrMap(std::initializer_list<value_type> attrs)
      : map_(attrs.size() == 0 ? nullptr : std::make_shared<Map>(attrs)) {}

  size_t size() const { return map().size(); }
  bool empty() const { return map().empty(); }
  const_iterator begin() const { return map().begin(); }
  const_iterator end() const { return map().end(); }
  const_iterator find(const std::string& name) const { return map().find(name); }
  bool contains(const std::string& name) const { return map().contains(name); }
  size_t count(const std::string& name) const { return map().count(name); }
  const Attr& at(const std::string& name) const { return map().at(name); }

  iterator begin() { return own().begin(); }
  iterator end() { return own().end(); }
  iterator find(const std::string& name) { return own().find(name); }
  Attr& at(const std::string& name) { return own().at(name); }
  Attr& operator[](const std::string& name) { return own()[name]; }
  std::pair<iterator, bool> emplace(const std::string& name, Attr value) {
    return own().emplace(name, std::move(value));
  }
  std::pair<iterator, bool> try_emplace(const std::string& name, Attr value) {
    return own().try_emplace(name, std::move(value));
  }
  size_t erase(const std::string& name) { return own().erase(name); }
  // Adds the attributes of `other` whose names are missing here.
  void merge(const AttrMap& other) {
    if (!other.empty()) own().insert(other.begin(), other.end());
  }

  // True implies equal contents; false does not imply different ones.
  bool SharesWith(const AttrMap& other) const { return map_ == other.map_; }

 private:
  const Map& map() const;
  Map& own();

  std::shared_ptr<Map> map_;  // nullptr: empty
};

// "an integer", "a list of integers", ... for messages.
const char* AttrKindName(const Attr& attr);

bool SameAttr(const Attr& a, const Attr& b);  // tensors by their bits, subgraphs by their text
bool SameAttrs(const AttrMap& a, const AttrMap& b);

}  // namespace ridge
