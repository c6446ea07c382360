// ConfigFile: Hugging Face's config.json, of which every key is accounted for.
//
// A key that nothing asks for may change what the model computes, so CheckAllKnown refuses it.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "ridge/core/status.h"

namespace ridge {

class ConfigFile {
 public:
  // Fails with kInvalidData when the file is no JSON object of at most 1 MiB.
  static Result<ConfigFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  // The value, or nullptr where the file has none; the key counts as known.
  const nlohmann::json* Find(const std::string& key);
  // Fail with kInvalidModel for a value of another type.  A missing key and null are no value.
  Result<std::optional<int64_t>> Integer(const std::string& key);
  Result<std::optional<double>> Real(const std::string& key);
  Result<std::optional<std::string>> Text(const std::string& key);
  // Keys of this pattern change nothing here.
  void Ignore(const std::string& pattern);

  // Fails with kUnsupported and names the first key that nobody asked for.
  Status CheckAllKnown(const std::string& model) const;
  // "FILE: KEY is VALUE; WHAT"
  Status Unsupported(const std::string& key, const std::string& what) const;

 private:
  ConfigFile(std::string path, nlohmann::json json)
      : path_(std::move(path)), json_(std::move(json)) {}
  Status WrongType(const std::string& key, const char* wanted) const;

  std::string path_;
  nlohmann::json json_;
  std::set<std::string> known_;
};

}  // namespace ridge
