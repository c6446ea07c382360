// The table is a list of what others publish; nothing here knows more than it says.
#include "ridge/doctor/compat.h"

#include <algorithm>
#include <charconv>

#include "ridge/core/split.h"
#include "ridge/doctor/compat_list.h"
#include "ridge/plan/hardware/embedded_list.h"

namespace ridge {
namespace {

std::vector<std::string> ListAt(const toml::table& row, std::string_view key) {
  std::vector<std::string> list;
  const std::string text = TextAt(row, key);
  if (text.empty()) return list;
  for (const std::string_view part : SplitAt(text, ';')) list.emplace_back(part);
  return list;
}

CompatRow RowOf(const toml::table& row) {
  CompatRow out;
  for (const auto& [key, member] : {std::pair("table", &CompatRow::table),
                                    {"key", &CompatRow::key},
                                    {"python", &CompatRow::python},
                                    {"cudnn", &CompatRow::cudnn},
                                    {"cuda", &CompatRow::cuda},
                                    {"driver", &CompatRow::driver},
                                    {"rocm", &CompatRow::rocm},
                                    {"notes", &CompatRow::notes},
                                    {"source", &CompatRow::source},
                                    {"least", &CompatRow::least},
                                    {"confidence", &CompatRow::confidence}}) {
    out.*member = TextAt(row, key);
  }
  out.architectures = ListAt(row, "architectures");
  out.cudas = ListAt(row, "cuda");
  out.gfx = ListAt(row, "gfx");
  return out;
}

bool IsRelease(const std::string& key, const Version& version) {
  return Version(key).Text(2) == version.Text(2);
}

}  // namespace

Version::Version(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    int number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) return;
    numbers.push_back(number);
    if (rest == end || *rest != '.') return;
    at = rest + 1;
  }
}

std::string Version::Text(size_t count) const {
  std::string text;
  for (size_t i = 0; i < std::min(count, numbers.size()); ++i)
    text += (i == 0 ? "" : ".") + std::to_string(numbers[i]);
  return text;
}

const std::vector<CompatRow>& CompatRows() {
  static const std::vector<CompatRow> all =
      ReadEmbeddedList(kCompatList, "compat.toml", "row", RowOf);
  return all;
}

const CompatRow* FindCompat(std::string_view table, const std::string& version,
                            const std::string& cuda) {
  const Version wanted(version), with(cuda);
  for (const CompatRow& row : CompatRows()) {
    if (row.table != table || !IsRelease(row.key, wanted)) continue;
    if (cuda.empty() || IsRelease(row.cuda, with)) return &row;
  }
  return nullptr;
}

const CompatRow* DriverFor(const std::string& cuda) {
  const Version version(cuda);
  if (version.numbers.empty()) return nullptr;
  constexpr int kFirstWithOneDriver = 11;
  if (version.at(0) < kFirstWithOneDriver) return FindCompat("cuda_driver", cuda);
  for (const CompatRow& row : CompatRows()) {
    if (row.table == "cuda_minor_compat" && Version(row.key).numbers == std::vector{version.at(0)})
      return &row;
  }
  return nullptr;
}

bool RunsOn(const std::vector<std::string>& architectures, const std::string& architecture) {
  const Version gpu(architecture);
  return std::any_of(architectures.begin(), architectures.end(), [&](const std::string& built) {
    const Version code(built);
    if (built.ends_with("+PTX") && code <= gpu) return true;
    return code.at(0) == gpu.at(0) && code.at(1) <= gpu.at(1);
  });
}

bool TakesPython(const std::string& range, const std::string& version) {
  const Version python(Version(version).Text(2));
  for (std::string_view part : SplitAt(std::string_view(range).substr(0, range.find(" (")), ',')) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    const size_t dash = part.find('-');
    if (part.starts_with(">=")) {
      if (python < Version(part.substr(2))) return false;
    } else if (part.starts_with("<=")) {
      if (python > Version(part.substr(2))) return false;
    } else if (dash != std::string_view::npos) {
      if (python < Version(part.substr(0, dash)) || python > Version(part.substr(dash + 1)))
        return false;
    }
  }
  return true;
}

}  // namespace ridge
