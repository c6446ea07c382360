// The tree of verbs and options as tables, for the completion scripts.
#pragma once
#include <CLI/App.hpp>
#include <string>
#include <utility>
#include <vector>

namespace ridge::cli {

// One option or argument of a verb.
struct Entry {
  std::string name;  // "--batch"; empty: an argument
  std::string doc;
  bool takes_value = false;
  std::vector<std::string> words;  // possible values
  bool files = false;              // the value may be a file
};

// A verb by its path, "" for ridge itself, "bench step".
struct VerbEntry {
  std::string path;
  std::vector<std::pair<std::string, std::string>> verbs;  // name, doc
  std::vector<Entry> entries;
};

// All verbs below `root`, itself first.
std::vector<VerbEntry> CompletionTable(const CLI::App& root);

}  // namespace ridge::cli
