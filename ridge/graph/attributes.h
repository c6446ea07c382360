// Attr: a constant argument of a node.  Integers also encode booleans.
//
//   AttrMap attrs = {{"axis", 1}, {"axes", {0, 2}}, {"mode", "linear"}, {"to", DType::kF16}};
//   attrs.integer("axis")
#pragma once
#include <concepts>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ridge/core/tensor.h"

namespace ridge {

class Graph;

using Attr = std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                          Tensor, std::shared_ptr<const Graph>>;

// A name and an attribute, as an initializer of an AttrMap writes them: any integer, number or
// text, a list of integers, or a dtype, which attributes spell as text.
struct AttrInit {
  template <class T>
  AttrInit(std::string attr_name, T&& attr)
      : name(std::move(attr_name)), value(From(std::forward<T>(attr))) {}
  AttrInit(std::string attr_name, std::initializer_list<int64_t> integers)
      : name(std::move(attr_name)), value(std::vector<int64_t>(integers)) {}

  std::string name;
  Attr value;

 private:
  template <class T>
  static Attr From(T&& attr) {
    if constexpr (std::same_as<std::remove_cvref_t<T>, DType>) {
      return std::string(DTypeName(attr));
    } else if constexpr (std::convertible_to<T, std::string_view>) {
      return std::string(std::string_view(attr));
    } else {
      return Attr(std::forward<T>(attr));
    }
  }
};

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
  AttrMap(std::initializer_list<AttrInit> attrs) {
    for (const AttrInit& attr : attrs) emplace(attr.name, attr.value);
  }

  size_t size() const { return map().size(); }
  bool empty() const { return map().empty(); }
  const_iterator begin() const { return map().begin(); }
  const_iterator end() const { return map().end(); }
  const_iterator find(const std::string& name) const { return map().find(name); }
  bool contains(const std::string& name) const { return map().contains(name); }
  size_t count(const std::string& name) const { return map().count(name); }
  const Attr& at(const std::string& name) const { return map().at(name); }

  // REQUIRES: the attribute is there and of this kind, as those are that OpDef::attr_defaults
  // declares.
  int64_t integer(const std::string& name) const { return std::get<int64_t>(at(name)); }
  double number(const std::string& name) const { return std::get<double>(at(name)); }
  const std::string& text(const std::string& name) const { return std::get<std::string>(at(name)); }
  const std::vector<int64_t>& integers(const std::string& name) const {
    return std::get<std::vector<int64_t>>(at(name));
  }
  const std::vector<double>& numbers(const std::string& name) const {
    return std::get<std::vector<double>>(at(name));
  }

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
