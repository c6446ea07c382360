#include "tests/crossing/settings.h"

#include <fmt/format.h>

#include <random>

namespace ridge::crossing {

std::string TextOf(const Setting& s) {
  return fmt::format(
      "slices {}{}, accumulate {}, in place {}, inter-op {}, layout {}, recompute {}, loss "
      "chunks {}, {}, state {}, scaled {}, passes {}",
      s.slices, s.tree ? " in a tree" : "", s.accumulate, s.in_place ? "on" : "off", s.lanes,
      s.layout ? "on" : "off", s.recompute, s.loss_chunks, s.optimizer, s.state,
      s.scaled ? "on" : "off", s.passes ? "on" : "off");
}

std::vector<Setting> DrawSettings(uint64_t seed, int count) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed * 7919 + 1));
  const auto below = [&](unsigned end) { return random() % end; };
  static constexpr const char* kRecompute[] = {"off", "1", "2", "all", "full:1KiB", "full"};
  static constexpr const char* kOptimizers[] = {"sgd", "momentum", "adam", "adamw"};
  static constexpr const char* kStates[] = {"f32", "bf16", "8bit"};
  std::vector<Setting> settings = {
      {}, {4, 1, false, true, 2, true, "full", 2, "adam", "f32", true, true}};
  while (static_cast<int>(settings.size()) < count) {
    Setting s;
    s.slices = int64_t{1} << below(3);
    s.accumulate = below(3) == 0 ? 2 : 1;
    s.in_place = below(4) != 0;
    s.lanes = 1 + static_cast<int>(below(2));
    s.layout = below(3) != 0;
    s.recompute = kRecompute[below(6)];
    s.loss_chunks = (seed + settings.size()) % 3 == 0 ? 2 : 1;
    s.optimizer = kOptimizers[below(4)];
    s.passes = below(4) != 0;
    s.tree = s.slices > 1 && s.accumulate == 1 && (seed + settings.size()) % 2 == 0;
    if (s.optimizer != "sgd") s.state = kStates[below(3)];
    s.scaled = below(3) == 0;
    settings.push_back(s);
  }
  return settings;
}

std::vector<Setting> Simpler(const Setting& setting) {
  std::vector<Setting> simpler;
  const auto with = [&](auto change) {
    Setting s = setting;
    change(s);
    if (TextOf(s) != TextOf(setting)) simpler.push_back(s);
  };
  with([](Setting& s) { s.slices = 1, s.tree = false; });
  with([](Setting& s) { s.tree = false; });
  with([](Setting& s) { s.slices = std::min<int64_t>(s.slices, 2); });
  with([](Setting& s) { s.accumulate = 1; });
  with([](Setting& s) { s.in_place = false; });
  with([](Setting& s) { s.lanes = 1; });
  with([](Setting& s) { s.layout = false; });
  with([](Setting& s) { s.recompute = "off"; });
  with([](Setting& s) { s.loss_chunks = 1; });
  with([](Setting& s) { s.optimizer = "sgd", s.state = "f32"; });
  with([](Setting& s) { s.state = "f32"; });
  with([](Setting& s) { s.scaled = false; });
  with([](Setting& s) { s.passes = false; });
  return simpler;
}

}  // namespace ridge::crossing
