#include "ridge/plan/hardware/driver_name.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace ridge {
namespace {

using Words = std::vector<std::string>;

// In lower case, cut at what is no letter or digit.
Words WordsOf(const std::string& text) {
  Words words(1);
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0) {
      words.back() += static_cast<char>(std::tolower(letter));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

// How the device is built, which a name may leave out: "sxm" of a100-sxm4-80g; "": the word says
// nothing of it.
std::string FormOf(const std::string& word) {
  if (word.starts_with("sxm")) return "sxm";
  return word == "pcie" || word == "nvl" ? word : "";
}
// "80g"
bool IsSize(const std::string& word) {
  return word.size() > 1 && word.back() == 'g' &&
         std::all_of(word.begin(), word.end() - 1,
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// What an id says: a model, and the form of it.
struct Model {
  std::string name;  // "rtx6000ada"
  std::string form;  // "sxm"; empty: it has one form
};

Model ModelOf(const std::string& id) {
  Model model;
  for (const std::string& word : WordsOf(id)) {
    if (const std::string form = FormOf(word); !form.empty()) {
      model.form = form;
    } else if (!IsSize(word)) {
      model.name += word;
    }
  }
  return model;
}

// Whether words of the name, one behind the other, make up the model.
bool Names(const Words& words, const std::string& model) {
  for (size_t first = 0; first < words.size(); ++first) {
    std::string together;
    for (size_t i = first; i < words.size() && together.size() < model.size(); ++i) {
      together += words[i];
      if (together == model) return true;
    }
  }
  return false;
}

// The first that a word says; the module's where none does.
std::string FormIn(const Words& words) {
  for (const std::string& word : words) {
    if (std::string form = FormOf(word); !form.empty()) return form;
  }
  return "sxm";
}

// A driver keeps some of the memory, more with ECC.
bool HasMemory(const Hardware& hardware, int64_t bytes) {
  constexpr double kGiB = 1 << 30, kLeast = 0.88, kMost = 1.06;
  const double share = static_cast<double>(bytes) / kGiB / hardware.memory_gb.value_or(0);
  return share >= kLeast && share <= kMost;
}

}  // namespace

std::optional<Hardware> HardwareOfDriver(const std::string& name, int64_t memory_bytes) {
  const Words words = WordsOf(name);
  const std::string form = FormIn(words);
  size_t longest = 0;  // an RTX 3080 Ti is no RTX 3080
  std::vector<const Hardware*> found;
  for (const Hardware& hardware : HardwareCatalog()) {
    const Model model = ModelOf(hardware.id);
    if (hardware.vendor != "NVIDIA" || !Names(words, model.name)) continue;
    if (model.name.size() > longest) found.clear();
    longest = std::max(longest, model.name.size());
    const bool has_form = model.form.empty() || model.form == form;
    if (model.name.size() == longest && has_form && HasMemory(hardware, memory_bytes))
      found.push_back(&hardware);
  }
  if (found.size() != 1) return std::nullopt;
  return *found.front();
}

}  // namespace ridge
