// Versions that go together: the rows of compat.toml, and what is asked of them.
#pragma once
#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ridge {

// "12.4.1" as numbers; what follows the numbers ("+cu124", "rc1") does not count.  Missing numbers
// are smaller than any: 12 < 12.0.
struct Version {
  Version() = default;
  explicit Version(std::string_view text);
  int at(size_t i) const { return i < numbers.size() ? numbers[i] : 0; }
  std::string Text(size_t count) const;  // of the first `count` numbers: "12.4"
  auto operator<=>(const Version& other) const = default;
  std::vector<int> numbers;
};

struct CompatRow {
  std::string table, key, python, cudnn, cuda, driver, rocm, notes, source;
  std::string least;       // the first release that was seen to run on `architectures`
  std::string confidence;  // datasheet, secondary or recalled
  std::vector<std::string> architectures;  // "8.0", "12.0+PTX"
  std::vector<std::string> cudas, gfx;
};

// In the order of the file.
const std::vector<CompatRow>& CompatRows();

// The first row of `table` whose key is of the same release (two numbers) as `version`; with `cuda`
// only one of that CUDA release.  nullptr without one.
const CompatRow* FindCompat(std::string_view table, const std::string& version,
                            const std::string& cuda = "");

// What a program built with this CUDA asks of the driver: the least one of the major release, which
// since CUDA 11 takes every program of it.  nullptr where nothing is known.
const CompatRow* DriverFor(const std::string& cuda);

// Programs for `architectures` have code for the GPU `architecture`: of the same major number and
// no larger a minor one, or PTX of a smaller one.
bool RunsOn(const std::vector<std::string>& architectures, const std::string& architecture);

// "3.9-3.12", ">=3.9,<=3.13 (3.13t experimental)".
bool TakesPython(const std::string& range, const std::string& version);

}  // namespace ridge
