#include "ridge/data/text_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "ridge/data/content_split.h"
#include "ridge/data/subset.h"
#include "ridge/data/text/open_tokenizer.h"
#include "ridge/data/text_files.h"
#include "ridge/data/text_options.h"
#include "ridge/data/text_records.h"
#include "ridge/data/text_source.h"

namespace ridge {
namespace {

constexpr int64_t kDefaultLength = 128;

Status BadData(const std::string& where, const std::string& what) {
  return Status(ErrorCode::kInvalidData, where + ": " + what);
}

bool IsOneOf(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* one) { return name == one; });
}
bool IsLabelName(const std::string& name) {
  return IsOneOf(name, {"label", "labels", "y", "target", "targets"});
}
bool IsTokenName(const std::string& name) {
  return IsOneOf(name, {"input_ids", "tokens", "token_ids", "ids"});
}

// ---- the tokenizer

struct ChosenTokenizer {
  TokenizerPtr tokenizer;
  TextPreprocessing text;
  std::vector<std::string> notes;
};

Result<ChosenTokenizer> ChooseTokenizer(const std::string& name, const TextOptions& text,
                                        const DataOptions& options) {
  ChosenTokenizer chosen;
  if (options.preprocessing != nullptr && options.preprocessing->text) {
    chosen.text = *options.preprocessing->text;
    RIDGE_ASSIGN_OR_RETURN(chosen.tokenizer, TokenizerOf(chosen.text));
    return chosen;
  }
  const std::string path = text.tokenizer.empty() ? "bytes" : text.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(OpenedTokenizer opened, OpenTokenizer(path));
  chosen.tokenizer = std::move(opened.tokenizer);
  chosen.text = {chosen.tokenizer->kind(), std::move(opened.files)};
  if (text.tokenizer.empty()) {
    chosen.notes.push_back(name +
                           ": tokens are bytes, as no tokenizer is given. hint: "
                           "tokenizer=FILE behind a comma (tokenizer.json, vocab.txt)");
  }
  return chosen;
}

// ---- the model's side

const Field* FindTokens(const std::vector<Field>& inputs) {
  for (const Field& input : inputs) {
    if (IsTokenName(input.name)) return &input;
  }
  const Field* found = nullptr;
  for (const Field& input : inputs) {
    const bool fits = IsInteger(input.type.dtype) && input.type.rank() == 1;
    if (!fits || IsLabelName(input.name)) continue;
    if (found != nullptr) return nullptr;
    found = &input;
  }
  return found;
}

// Whether the label has a place for each token.
bool IsLanguageModel(const Field& tokens, const std::vector<Field>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const Field& input) {
    return IsLabelName(input.name) && input.type.dims == tokens.type.dims;
  });
}

Result<TextLayout> LayoutFor(const std::string& name, const TextOptions& text,
                             const Tokenizer& tokenizer, const DataOptions& options) {
  TextLayout layout;
  layout.pad = static_cast<uint32_t>(tokenizer.pad());
  layout.pads_left = tokenizer.pads_left();
  layout.labeled = text.label != "none";
  layout.length = text.length.value_or(kDefaultLength);
  if (options.model_inputs.empty()) return layout;
  const Field* tokens = FindTokens(options.model_inputs);
  if (tokens == nullptr || tokens->type.rank() != 1) {
    return InvalidArgument(fmt::format(
        "data '{}': the model has no input of tokens, i64[batch,length], named tokens or input_ids",
        name));
  }
  if (text.length && *text.length != tokens->type.dims[0]) {
    return InvalidArgument(fmt::format("data '{}': length is {}; the model takes {} tokens", name,
                                       *text.length, tokens->type.dims[0]));
  }
  if (tokens->classes > 0 && tokenizer.vocab() > tokens->classes) {
    return InvalidArgument(fmt::format("data '{}': the tokenizer has {} tokens; the model knows {}",
                                       name, tokenizer.vocab(), tokens->classes));
  }
  layout.length = tokens->type.dims[0];
  layout.language = IsLanguageModel(*tokens, options.model_inputs);
  return layout;
}

// ---- reading

class TextReader {
 public:
  TextReader(const Tokenizer& tokenizer, const TextLayout& layout, const TextOptions& text,
             const std::vector<std::string>& classes)
      : tokenizer_(tokenizer), layout_(layout), text_(text), classes_(classes) {}

  Status AddFile(const TextFile& file) {
    int32_t label = 0;
    if (layout_.labeled && !layout_.language) {
      RIDGE_ASSIGN_OR_RETURN(label, LabelOf(file));
    }
    read_.files.push_back(file.path);
    return ForEachRecord(file.path, Form(), [&](std::string_view record, int64_t line) {
      return AddRecord(record, line, label);
    });
  }

  // A text that is no file's.
  Status AddText(const std::string& text) {
    if (read_.files.empty()) read_.files.push_back("text");
    return AddRecord(text, static_cast<int64_t>(read_.samples.size()) + 1, /*label=*/0);
  }

  // Cuts the blocks of a language model.
  Status Finish(const std::string& name) {
    if (!layout_.language) {
      if (read_.samples.empty()) return BadData(name, "holds no text");
      return Status();
    }
    const auto tokens = static_cast<int64_t>(read_.ids.size());
    std::vector<TextSample> blocks;
    for (int64_t begin = 0; begin + layout_.length < tokens; begin += layout_.length) {
      TextSample block = RecordAt(begin);
      block.begin = begin;
      block.tokens = static_cast<int32_t>(layout_.length);
      blocks.push_back(block);
      hashes_.push_back(HashOfBlock(begin));
    }
    if (blocks.empty()) {
      return BadData(name, fmt::format("has {} tokens; one sample of the model takes {}", tokens,
                                       layout_.length + 1));
    }
    read_.samples = std::move(blocks);
    return Status();
  }

  // Samples of `split` go to the end; returns how many.
  Result<int64_t> HoldOut(const std::string& name, double fraction) {
    ContentSplit split(fraction);
    for (bool settled = false; !settled;) {
      split = split.Uncounted();
      for (const uint64_t hash : hashes_) split.Count(hash);
      RIDGE_ASSIGN_OR_RETURN(settled, split.Settle(name));
    }
    std::vector<TextSample> kept, held;
    for (size_t i = 0; i < hashes_.size(); ++i)
      (split.HoldsOut(hashes_[i]) ? held : kept).push_back(read_.samples[i]);
    kept.insert(kept.end(), held.begin(), held.end());
    read_.samples = std::move(kept);
    return split.held_out();
  }

  TokenizedText Take() {
    read_.ids.shrink_to_fit();
    read_.samples.shrink_to_fit();
    read_.files.shrink_to_fit();
    return std::move(read_);
  }

 private:
  std::string Form() const {
    if (!text_.record.empty()) return text_.record;
    return layout_.language ? "file" : "line";
  }

  Result<int32_t> LabelOf(const TextFile& file) const {
    const auto found = std::find(classes_.begin(), classes_.end(), file.of_class);
    if (found != classes_.end()) return static_cast<int32_t>(found - classes_.begin());
    return BadData(file.path, fmt::format("its class '{}' is none of the run's", file.of_class));
  }

  Status AddRecord(std::string_view record, int64_t line, int32_t label) {
    std::vector<TokenId> ids;
    if (layout_.language) {
      tokenizer_.Encode(record, ids);
      if (tokenizer_.end() >= 0) ids.push_back(tokenizer_.end());
    } else {
      ids = tokenizer_.EncodeFramed(record, layout_.length);
      ContentHash hash;
      hash.Add(record);
      hashes_.push_back(hash.value());
    }
    constexpr int64_t kMostLine = std::numeric_limits<uint32_t>::max();
    read_.samples.push_back({static_cast<int64_t>(read_.ids.size()),
                             static_cast<int32_t>(ids.size()), label,
                             static_cast<uint32_t>(read_.files.size() - 1),
                             static_cast<uint32_t>(std::min(line, kMostLine))});
    read_.ids.insert(read_.ids.end(), ids.begin(), ids.end());
    return Status();
  }

  // The record that token `begin` is of.
  TextSample RecordAt(int64_t begin) const {
    const auto after =
        std::upper_bound(read_.samples.begin(), read_.samples.end(), begin,
                         [](int64_t at, const TextSample& record) { return at < record.begin; });
    return *(after - 1);
  }

  uint64_t HashOfBlock(int64_t begin) const {
    ContentHash hash;
    hash.Add({reinterpret_cast<const char*>(read_.ids.data() + begin),
              static_cast<size_t>(layout_.length) * sizeof(uint32_t)});
    return hash.value();
  }

  const Tokenizer& tokenizer_;
  const TextLayout& layout_;
  const TextOptions& text_;
  const std::vector<std::string>& classes_;
  TokenizedText read_;            // of a language model, samples are records until Finish
  std::vector<uint64_t> hashes_;  // by sample
};

// ---- opening

struct Opening {
  TextOptions text;
  TextFileSets files;
  ChosenTokenizer chosen;
  std::vector<std::string> classes;
};

Result<Opening> Begin(const std::string& name, const std::string& argument,
                      const DataOptions& options) {
  Opening opening;
  RIDGE_ASSIGN_OR_RETURN(opening.text, ParseTextOptions(name, argument, /*json_lines=*/false));
  RIDGE_ASSIGN_OR_RETURN(opening.files, FindTextFiles(name, opening.text));
  RIDGE_ASSIGN_OR_RETURN(opening.chosen, ChooseTokenizer(name, opening.text, options));
  const bool known = options.preprocessing != nullptr && !options.preprocessing->classes.empty();
  opening.classes = known ? options.preprocessing->classes : ClassesOf(opening.files.train);
  return opening;
}

Status CheckClasses(const std::string& name, const Opening& opening) {
  if (opening.classes.size() > 1) return Status();
  return BadData(name,
                 fmt::format("has one class, '{}'; a classifier needs two. hint: label=folder "
                             "or label=file says what a class is",
                             opening.classes.front()));
}

std::vector<ModelSize> SizesOf(const Opening& opening) {
  // Samples are padded, so a model that can take a mask does.
  std::vector<ModelSize> sizes = {{"vocab", opening.chosen.tokenizer->vocab()}, {"mask", 1}};
  if (opening.classes.size() > 1 && opening.text.label != "none")
    sizes.push_back({"classes", static_cast<int64_t>(opening.classes.size())});
  if (opening.text.length) {
    sizes.push_back({"tokens", *opening.text.length});
    sizes.push_back({"context", *opening.text.length});
  }
  return sizes;
}

}  // namespace

Result<TokenizerPtr> TokenizerOf(const TextPreprocessing& text) {
  RIDGE_ASSIGN_OR_RETURN(const OpenedTokenizer opened,
                         OpenTokenizer(text.files.empty() ? "bytes" : text.files.front()));
  return opened.tokenizer;
}

Result<DataSplits> OpenText(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  const Tokenizer& tokenizer = *opening.chosen.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(const TextLayout layout,
                         LayoutFor(name, opening.text, tokenizer, options));
  const bool classifies = layout.labeled && !layout.language;
  if (classifies) RIDGE_RETURN_IF_ERROR(CheckClasses(name, opening));
  const int64_t classes = classifies ? static_cast<int64_t>(opening.classes.size()) : 0;
  DataSplits splits;
  int64_t held_out = 0;
  const auto open = [&](const std::vector<TextFile>& files, double hold_out) -> Result<SourcePtr> {
    TextReader reader(tokenizer, layout, opening.text, opening.classes);
    for (const TextFile& file : files) RIDGE_RETURN_IF_ERROR(reader.AddFile(file));
    RIDGE_RETURN_IF_ERROR(reader.Finish(name));
    if (hold_out > 0) {
      RIDGE_ASSIGN_OR_RETURN(held_out, reader.HoldOut(name, hold_out));
    }
    return SourcePtr(
        std::make_shared<TextSource>(name, layout, tokenizer.vocab(), classes, reader.Take()));
  };
  RIDGE_ASSIGN_OR_RETURN(splits.train, open(opening.files.train, options.hold_out));
  if (held_out > 0) {
    const SourcePtr all = splits.train;
    const int64_t training = all->size() - held_out;
    splits.train = std::make_shared<SubsetSource>(all, 0, training);
    splits.validation = std::make_shared<SubsetSource>(all, training, held_out);
    splits.held_out = true;
  } else if (!opening.files.validation.empty()) {
    RIDGE_ASSIGN_OR_RETURN(splits.validation, open(opening.files.validation, 0));
  }
  if (!opening.files.test.empty()) {
    RIDGE_ASSIGN_OR_RETURN(splits.test, open(opening.files.test, 0));
  }
  auto preprocessing = std::make_shared<Preprocessing>();
  if (classifies) preprocessing->classes = opening.classes;
  preprocessing->text = opening.chosen.text;
  splits.preprocessing = std::move(preprocessing);
  splits.sizes = SizesOf(opening);
  splits.notes = opening.files.notes;
  splits.notes.insert(splits.notes.end(), opening.chosen.notes.begin(), opening.chosen.notes.end());
  return splits;
}

Result<SourcePtr> OpenTexts(const std::string& name, const std::vector<std::string>& texts,
                            const DataOptions& options) {
  TextOptions text;
  text.label = "none";
  RIDGE_ASSIGN_OR_RETURN(const ChosenTokenizer chosen, ChooseTokenizer(name, text, options));
  const Tokenizer& tokenizer = *chosen.tokenizer;
  RIDGE_ASSIGN_OR_RETURN(const TextLayout layout, LayoutFor(name, text, tokenizer, options));
  const std::vector<std::string> no_classes;
  TextReader reader(tokenizer, layout, text, no_classes);
  for (const std::string& one : texts) RIDGE_RETURN_IF_ERROR(reader.AddText(one));
  RIDGE_RETURN_IF_ERROR(reader.Finish(name));
  return SourcePtr(
      std::make_shared<TextSource>(name, layout, tokenizer.vocab(), /*classes=*/0, reader.Take()));
}

Result<DataFacts> TextFacts(const std::string& name, const std::string& argument,
                            const DataOptions& options) {
  RIDGE_ASSIGN_OR_RETURN(const Opening opening, Begin(name, argument, options));
  DataFacts facts;
  facts.sizes = SizesOf(opening);
  if (opening.text.length)
    facts.fields.push_back({"input_ids", {DType::kI64, {*opening.text.length}}});
  return facts;
}

}  // namespace ridge
