#include "ridge/data/container/file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "ridge/core/glob.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = size_t{1} << 20;

Status BadData(const std::string& spec, const std::string& what) {
  return Status(ErrorCode::kInvalidData, "data '" + spec + "': " + what);
}

// ---- braces

// Where the brace opened at `open` closes; npos when it does not.
size_t ClosingBrace(std::string_view text, size_t open) {
  int depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    if (text[i] == '{') ++depth;
    if (text[i] == '}' && --depth == 0) return i;
  }
  return std::string_view::npos;
}

std::vector<std::string> CutAtOuterCommas(std::string_view text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '{') ++depth;
    if (c == '}') --depth;
    if (c == ',' && depth == 0)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::optional<int64_t> ParseCount(std::string_view text) {
  int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && rest == text.data() + text.size();
  if (!whole || value < 0) return std::nullopt;
  return value;
}

// "000..012"; nothing when the text is no such range.
std::optional<std::vector<std::string>> CountRange(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const auto first = ParseCount(text.substr(0, dots)), last = ParseCount(text.substr(dots + 2));
  if (!first || !last || *last < *first) return std::nullopt;
  if (static_cast<uint64_t>(*last - *first) >= kMostFiles) return std::nullopt;
  const size_t width = text[0] == '0' ? dots : 1;
  std::vector<std::string> numbers;
  for (int64_t i = *first; i <= *last; ++i) numbers.push_back(fmt::format("{:0{}}", i, width));
  return numbers;
}

// What the text between braces stands for; empty when the braces stand for themselves.
std::vector<std::string> Alternatives(std::string_view inner) {
  if (auto range = CountRange(inner)) return *std::move(range);
  std::vector<std::string> parts = CutAtOuterCommas(inner);
  return parts.size() > 1 ? parts : std::vector<std::string>();
}

// ---- patterns

bool HasWildcard(std::string_view text) { return text.find_first_of("*?") != text.npos; }

bool Exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The names in `folder` ("" is the current one) of the form `pattern`.
std::vector<std::string> MatchingNames(const std::string& folder, const std::string& pattern) {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator at(folder.empty() ? "." : folder, error);
  for (const fs::directory_iterator end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (name.starts_with('.') && !pattern.starts_with('.')) continue;
    if (MatchesPattern(name, pattern)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Appends what `rest` matches below `folder`, which is "" or ends with a slash.
void Match(const std::string& folder, std::string_view rest, std::vector<std::string>& files) {
  const size_t slash = rest.find('/');
  const std::string part(rest.substr(0, slash));
  const bool last = slash == std::string_view::npos;
  const auto names = HasWildcard(part) ? MatchingNames(folder, part) : std::vector{part};
  for (const std::string& name : names) {
    const std::string path = folder + name;
    std::error_code ignored;
    if (!last)
      Match(path + "/", rest.substr(slash + 1), files);
    else if (!HasWildcard(part) || !fs::is_directory(path, ignored))
      files.push_back(path);
  }
}

Result<std::vector<std::string>> FindPatterns(const std::string& spec, const std::string& pattern) {
  if (Exists(pattern)) return std::vector{pattern};
  Result<std::vector<std::string>> patterns = ExpandBraces(pattern);
  if (patterns.ok()) return patterns;
  return InvalidArgument("data '" + spec + "': " + patterns.status().message());
}

// ---- sets

enum class Set { kNone, kTrain, kValidation, kTest };

Set SetOfWord(std::string_view word) {
  if (word == "train" || word == "training") return Set::kTrain;
  if (word == "val" || word == "valid" || word == "validation") return Set::kValidation;
  if (word == "test" || word == "testing") return Set::kTest;
  return Set::kNone;
}

// The first word of a name that says a set.
Set SetOfName(std::string_view name) {
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    const char c = i < name.size() ? name[i] : '.';
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower >= 'a' && lower <= 'z') {
      word += lower;
      continue;
    }
    if (const Set set = SetOfWord(word); set != Set::kNone) return set;
    word.clear();
  }
  return Set::kNone;
}

Set SetOfFile(const std::string& path) {
  const fs::path file(path);
  const Set own = SetOfName(file.filename().native());
  return own != Set::kNone ? own : SetOfName(file.parent_path().filename().native());
}

}  // namespace

Result<std::vector<std::string>> ExpandBraces(const std::string& text) {
  std::vector<std::string> done, open = {text};
  while (!open.empty()) {
    const std::string next = std::move(open.back());
    open.pop_back();
    std::vector<std::string> alternatives;
    size_t begin = next.find('{'), end = 0;
    for (; begin != std::string::npos; begin = next.find('{', begin + 1)) {
      end = ClosingBrace(next, begin);
      if (end != std::string::npos)
        alternatives = Alternatives(std::string_view(next).substr(begin + 1, end - begin - 1));
      if (!alternatives.empty()) break;
    }
    if (alternatives.empty()) done.push_back(next);
    for (size_t i = alternatives.size(); i-- > 0;)
      open.push_back(next.substr(0, begin) + alternatives[i] + next.substr(end + 1));
    if (done.size() + open.size() > kMostFiles)
      return InvalidArgument(fmt::format("its braces stand for more than {} files", kMostFiles));
  }
  return done;
}

Result<std::vector<std::string>> FindFiles(const std::string& spec, const std::string& pattern) {
  RIDGE_ASSIGN_OR_RETURN(const auto patterns, FindPatterns(spec, pattern));
  std::vector<std::string> files;
  for (const std::string& one : patterns) {
    const size_t before = files.size();
    Match(one.starts_with('/') ? "/" : "", one.substr(one.starts_with('/') ? 1 : 0), files);
    std::error_code ignored;
    if (HasWildcard(one)) {  // a folder that matches may hold no file of the name
      const auto is_absent = [&](const std::string& file) { return !fs::exists(file, ignored); };
      files.erase(std::remove_if(files.begin() + static_cast<std::ptrdiff_t>(before), files.end(),
                                 is_absent),
                  files.end());
    }
    if (files.size() == before) return BadData(spec, "no file matches " + one);
    if (!fs::exists(files.back(), ignored))
      return BadData(spec, "there is no file " + files.back());
    if (fs::is_directory(files.back(), ignored)) {
      return BadData(spec, fmt::format("{} is a folder. hint: {}/*", files.back(), files.back()));
    }
  }
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  if (files.size() <= kMostFiles) return files;
  return BadData(spec, fmt::format("{} has more than {} files", pattern, kMostFiles));
}

Result<FileSets> SplitFiles(const std::string& spec, const std::vector<std::string>& files) {
  const Set first = SetOfFile(files.front());
  const bool one_set = std::all_of(files.begin(), files.end(), [&](const std::string& file) {
    return SetOfFile(file) == first;
  });
  if (one_set) return FileSets{files, {}, {}};
  FileSets sets;
  for (const std::string& file : files) {
    const Set set = SetOfFile(file);
    if (set == Set::kNone) {
      return BadData(spec, fmt::format("{} is named after none of train, val and test, but other "
                                       "files are; a pattern of one kind of names is needed",
                                       file));
    }
    auto& of_set = set == Set::kTrain        ? sets.train
                   : set == Set::kValidation ? sets.validation
                                             : sets.test;
    of_set.push_back(file);
  }
  if (!sets.train.empty()) return sets;
  return BadData(spec, fmt::format("has files for validation ({}) and test ({}), none to train on",
                                   sets.validation.front(), sets.test.front()));
}

}  // namespace ridge
