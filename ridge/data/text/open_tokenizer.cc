// vocab.txt and vocab.json with merges.txt are written as the tokenizer.json that means the same,
// so that one reader makes all of these.
#include "ridge/data/text/open_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "ridge/core/files.h"
#include "ridge/data/text/sentencepiece.h"
#include "ridge/data/text/tokenizer_json.h"

namespace ridge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMostFileBytes = int64_t{256} << 20;  // public ones have up to 35 MB
constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

Status BadData(const std::string& file, const std::string& what) {
  return Status(ErrorCode::kInvalidData, file + ": " + what);
}

bool Exists(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string NameOf(const std::string& path) { return fs::path(path).filename().native(); }
std::string FolderOf(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().native();
  return folder.empty() ? "." : folder;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

// What tokenizer_config.json and special_tokens_map.json say.
struct Config {
  bool lower = true, spaced_cjk = true;
  std::optional<bool> strip_accents;
  std::string begin, end, pad;
  std::optional<bool> pads_left, cuts_left;
  bool adds_begin = false, adds_end = false;  // to a sequence, by models of SentencePiece
};

// A token is a text, or an object with a content.
void TakeToken(const Json& json, const char* key, std::string& token) {
  if (!json.contains(key)) return;
  const Json& value = json.at(key);
  if (value.is_string()) token = value.get<std::string>();
  if (value.is_object() && value.contains("content") && value.at("content").is_string())
    token = value.at("content").get<std::string>();
}

void TakeFlag(const Json& json, const char* key, auto& flag) {
  if (json.contains(key) && json.at(key).is_boolean()) flag = json.at(key).get<bool>();
}

void TakeSide(const Json& json, const char* key, std::optional<bool>& left) {
  if (json.contains(key) && json.at(key).is_string()) left = json.at(key) == "left";
}

Result<Config> ReadConfig(const std::string& folder, std::vector<std::string>& files) {
  Config config;
  for (const char* name : {"special_tokens_map.json", "tokenizer_config.json"}) {
    const std::string path = folder + "/" + name;
    if (!Exists(path)) continue;
    RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostConfigBytes));
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return BadData(path, "is no JSON object");
    files.push_back(path);
    TakeFlag(json, "do_lower_case", config.lower);
    TakeFlag(json, "tokenize_chinese_chars", config.spaced_cjk);
    TakeFlag(json, "strip_accents", config.strip_accents);
    TakeFlag(json, "add_bos_token", config.adds_begin);
    TakeFlag(json, "add_eos_token", config.adds_end);
    TakeToken(json, "bos_token", config.begin);
    TakeToken(json, "eos_token", config.end);
    TakeToken(json, "pad_token", config.pad);
    TakeSide(json, "padding_side", config.pads_left);
    TakeSide(json, "truncation_side", config.cuts_left);
  }
  return config;
}

Json AddedToken(const std::string& content, size_t id) {
  return {{"content", content}, {"id", id}, {"special", true}};
}

Result<TokenizerParts> FromVocabTxt(const std::string& path, const Config& config) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostFileBytes));
  Json vocab = Json::object(), added = Json::array();
  const std::vector<std::string> lines = Lines(text);
  for (size_t id = 0; id < lines.size(); ++id) {
    vocab[lines[id]] = id;
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
      if (lines[id] == token) added.push_back(AddedToken(token, id));
    }
  }
  for (const char* token : {"[UNK]", "[CLS]", "[SEP]"}) {
    if (!vocab.contains(token))
      return BadData(path, fmt::format("has no line '{}', as vocabularies of BERT have", token));
  }
  Json json = {{"model", {{"type", "WordPiece"}, {"unk_token", "[UNK]"}, {"vocab", vocab}}},
               {"normalizer",
                {{"type", "BertNormalizer"},
                 {"lowercase", config.lower},
                 {"handle_chinese_chars", config.spaced_cjk},
                 {"strip_accents", config.strip_accents.value_or(config.lower)}}},
               {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
               {"added_tokens", added},
               {"post_processor", {{"type", "BertProcessing"}}}};
  json["post_processor"]["cls"] = Json::array({"[CLS]", vocab["[CLS]"]});
  json["post_processor"]["sep"] = Json::array({"[SEP]", vocab["[SEP]"]});
  return ParseTokenizerJson(json.dump(-1, ' ', false, Json::error_handler_t::replace), path);
}

// "#version: 0.2", then a merge a line.
Result<TokenizerParts> FromVocabJson(const std::string& path, std::vector<std::string>& files) {
  const std::string merges_path = FolderOf(path) + "/merges.txt";
  if (!Exists(merges_path)) return BadData(path, "needs merges.txt beside it");
  files.push_back(merges_path);
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostFileBytes));
  RIDGE_ASSIGN_OR_RETURN(const std::string merges, ReadFile(merges_path, kMostFileBytes));
  const Json vocab = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!vocab.is_object()) return BadData(path, "is no JSON object of pieces and ids");
  Json list = Json::array(), added = Json::array();
  for (const std::string& line : Lines(merges)) {
    if (!line.starts_with("#version") && !line.empty()) list.push_back(line);
  }
  if (vocab.contains("<|endoftext|>"))
    added.push_back(
        {{"content", "<|endoftext|>"}, {"id", vocab["<|endoftext|>"]}, {"special", true}});
  const Json json = {{"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", list}}},
                     {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}}},
                     {"added_tokens", added}};
  return ParseTokenizerJson(json.dump(-1, ' ', false, Json::error_handler_t::replace), path);
}

Result<TokenizerParts> FromJson(const std::string& path) {
  RIDGE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMostFileBytes));
  return ParseTokenizerJson(text, path);
}

Result<TokenizerParts> FromModel(const std::string& path, const Config& config) {
  RIDGE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMostFileBytes));
  RIDGE_ASSIGN_OR_RETURN(TokenizerParts parts, ParseSentencePiece(bytes, path));
  const auto begin = parts.model->Find(config.begin.empty() ? "<s>" : config.begin);
  const auto end = parts.model->Find(config.end.empty() ? "</s>" : config.end);
  if (config.adds_begin && begin) parts.frame.before.push_back(*begin);
  if (config.adds_end && end) parts.frame.after.push_back(*end);
  return parts;
}

// The names of the folder's files, sorted.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().native());
  std::sort(names.begin(), names.end());
  return names;
}

// The tokenizer's file in a folder; "" when there is none.
std::string FindIn(const std::string& folder) {
  const std::vector<std::string> names = NamesIn(folder);
  for (const char* name : {"tokenizer.json", "vocab.txt", "vocab.json"}) {
    if (std::find(names.begin(), names.end(), name) != names.end()) return folder + "/" + name;
  }
  for (const std::string& name : names) {
    if (name.ends_with(".model")) return folder + "/" + name;
  }
  return "";
}

Result<TokenizerParts> Parse(const std::string& file, const Config& config,
                             std::vector<std::string>& files) {
  if (file.ends_with(".model")) return FromModel(file, config);
  if (file.ends_with(".txt")) return FromVocabTxt(file, config);
  if (NameOf(file) == "vocab.json") return FromVocabJson(file, files);
  if (file.ends_with(".json")) return FromJson(file);
  return BadData(file,
                 "is no tokenizer: its name ends with none of .json, .txt (a vocabulary of "
                 "WordPiece) and .model (of SentencePiece)");
}

}  // namespace

Result<OpenedTokenizer> OpenTokenizer(const std::string& path) {
  if (path == "bytes") return OpenedTokenizer{ByteTokenizer(), {}};
  std::error_code error;
  const bool is_folder = fs::is_directory(path, error);
  const std::string file = is_folder ? FindIn(path) : path;
  if (file.empty()) {
    return BadData(path,
                   "holds no tokenizer: neither tokenizer.json, vocab.txt, vocab.json nor *.model");
  }
  OpenedTokenizer opened;
  opened.files.push_back(file);
  RIDGE_ASSIGN_OR_RETURN(const Config config, ReadConfig(FolderOf(file), opened.files));
  RIDGE_ASSIGN_OR_RETURN(TokenizerParts parts, Parse(file, config, opened.files));
  const auto id = [&](const std::string& token, TokenId missing) {
    return token.empty() ? missing : parts.model->Find(token).value_or(missing);
  };
  parts.end = id(config.end, parts.end);
  parts.pad = id(config.pad, parts.pad);
  parts.pads_left = config.pads_left.value_or(parts.pads_left);
  parts.cuts_left = config.cuts_left.value_or(parts.cuts_left);
  opened.tokenizer = std::make_shared<const Tokenizer>(std::move(parts));
  return opened;
}

bool HoldsTokenizer(const std::string& folder) { return !FindIn(folder).empty(); }

}  // namespace ridge
