// In how many ways the planner can be asked to run the same training.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridge::crossing {

struct Setting {
  int64_t slices = 1;
  int64_t accumulate = 1;
  bool tree = false;  // slices are added in a tree
  bool in_place = false;
  int lanes = 1;        // --inter-op
  bool layout = false;  // with it, weights stay packed
  std::string recompute = "off";
  int64_t loss_chunks = 1;
  std::string optimizer = "sgd";
  std::string state = "f32";  // --optimizer-state
  bool scaled = false;        // loss_scale.h
  bool passes = true;         // without: the graph as it was differentiated
};

std::string TextOf(const Setting& setting);

// Some of all settings, the plainest and the fullest among them.
std::vector<Setting> DrawSettings(uint64_t seed, int count);

// Nearer to the plainest by one step each.
std::vector<Setting> Simpler(const Setting& setting);

}  // namespace ridge::crossing
