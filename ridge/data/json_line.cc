// The handler of a parser that reports one event after the other: a tree of a hostile line would
// take many times its bytes.
#include "ridge/data/json_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ridge/data/csv_cells.h"

namespace ridge {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostDepth = 64;
constexpr size_t kMostReason = 200;  // bytes of a parser's message, which quotes the line

class LineHandler final : public nlohmann::json_sax<Json> {
 public:
  explicit LineHandler(const std::function<bool(const std::string&)>& wants) : wants_(wants) {}

  bool null() override {
    return Add(JsonKind::kOther, [] { return std::string("null"); });
  }
  bool boolean(bool value) override {
    return Add(JsonKind::kBoolean, [&] { return std::string(value ? "true" : "false"); });
  }
  bool number_integer(number_integer_t value) override {
    return Add(JsonKind::kInteger, [&] { return std::to_string(value); });
  }
  bool number_unsigned(number_unsigned_t value) override {
    return Add(JsonKind::kInteger, [&] { return std::to_string(value); });
  }
  bool number_float(number_float_t, const string_t& text) override {
    return Add(JsonKind::kOther, [&] { return text; });
  }
  bool string(string_t& text) override {
    return Add(JsonKind::kText, [&] { return std::move(text); });
  }
  bool binary(binary_t&) override { return Refuse("is no JSON object"); }

  bool start_object(size_t) override { return Open(/*list=*/false); }
  bool start_array(size_t) override { return Open(/*list=*/true); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(string_t& name) override {
    path_.resize(levels_.back().path_bytes);
    if (!path_.empty()) path_ += '.';
    path_ += name;
    return true;
  }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = static_cast<int64_t>(position > 0 ? position - 1 : 0);
    std::string text = error.what();
    // "[...] parse error at line 1, column 3: reason"
    const size_t column = text.find("column ");
    const size_t begin = column == std::string::npos ? column : text.find(": ", column);
    if (begin != std::string::npos) text.erase(0, begin + 2);
    if (text.size() > kMostReason) text = text.substr(0, kMostReason) + "...";
    MakeUtf8(text);
    return Refuse("is no JSON: " + text);
  }

  const std::string& reason() const { return reason_; }
  int64_t position() const { return position_; }  // in the line, of a syntax error
  std::vector<JsonValue> Take() { return std::move(values_); }

 private:
  struct Level {
    size_t path_bytes = 0;  // of the path of the object's own keys
    bool list = false;      // it is one, or lies in one
  };

  bool Refuse(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  bool Open(bool list) {
    if (levels_.empty() && list) return Refuse("is a list, no object");
    if (levels_.size() == kMostDepth)
      return Refuse(fmt::format("is nested more than {} deep", kMostDepth));
    levels_.push_back({path_.size(), list || (!levels_.empty() && levels_.back().list)});
    return true;
  }
  bool Close() {
    path_.resize(levels_.back().path_bytes);
    levels_.pop_back();
    return true;
  }

  template <typename Text>
  bool Add(JsonKind kind, const Text& text) {
    if (levels_.empty()) return Refuse("is no JSON object");
    if (levels_.back().list || !wants_(path_)) return true;
    const bool again = std::any_of(values_.begin(), values_.end(),
                                   [&](const JsonValue& value) { return value.path == path_; });
    if (again) return Refuse(fmt::format("has '{}' twice", path_));
    values_.push_back({path_, kind, text()});
    return true;
  }

  const std::function<bool(const std::string&)>& wants_;
  std::vector<Level> levels_;
  std::string path_;  // of the key at hand
  std::vector<JsonValue> values_;
  std::string reason_;
  int64_t position_ = 0;
};

}  // namespace

Result<std::vector<JsonValue>> ParseJsonLine(
    std::string_view line, int64_t offset,
    const std::function<bool(const std::string& path)>& wants) {
  LineHandler handler(wants);
  if (Json::sax_parse(line.begin(), line.end(), &handler)) return handler.Take();
  return Status(ErrorCode::kInvalidData,
                fmt::format("byte {}: {}", offset + handler.position(), handler.reason()));
}

}  // namespace ridge
