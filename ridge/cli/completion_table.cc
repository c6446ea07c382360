// What a value is follows from its name in the help: "a|b" are choices, MODEL and SPEC are known
// words or files, FILE, DIR, RUN and PATH are files; all others complete nothing.
#include "ridge/cli/completion_table.h"

#include "ridge/core/split.h"
#include "ridge/data/kinds.h"
#include "ridge/models/model.h"

namespace ridge::cli {
namespace {

void DescribeValue(const std::string& type, Entry& entry) {
  if (type.find('|') != std::string::npos) {
    for (const std::string_view word : SplitAt(type, '|')) entry.words.emplace_back(word);
  } else if (type == "MODEL") {
    for (const std::string& model : BuiltinModelNames()) entry.words.push_back(model);
    entry.files = true;
  } else if (type == "SPEC") {
    for (const DataKind& kind : DataKinds())
      entry.words.push_back(std::string(kind.name) + (kind.argument == nullptr ? "" : ":"));
  } else {
    entry.files =
        type == "FILE" || type == "DIR" || type == "RUN" || type == "OTHER" || type == "PATH";
  }
}

void AddEntries(const CLI::Option& option, std::vector<Entry>& entries) {
  Entry entry;
  entry.doc = option.get_description();
  entry.takes_value = option.get_type_size() > 0;
  if (entry.takes_value) DescribeValue(option.get_type_name(), entry);
  if (option.get_positional()) entries.push_back(entry);
  for (const std::string& name : option.get_lnames()) {
    entry.name = "--" + name;
    entries.push_back(entry);
  }
  for (const std::string& name : option.get_snames()) {
    entry.name = "-" + name;
    entries.push_back(entry);
  }
}

void Collect(const CLI::App& app, const std::string& path, std::vector<VerbEntry>& out) {
  VerbEntry verb;
  verb.path = path;
  for (const CLI::App* sub : app.get_subcommands({})) {
    verb.verbs.emplace_back(sub->get_name(), sub->get_description());
  }
  for (const CLI::Option* option : app.get_options()) AddEntries(*option, verb.entries);
  out.push_back(verb);
  for (const CLI::App* sub : app.get_subcommands({})) {
    Collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), out);
  }
}

}  // namespace

std::vector<VerbEntry> CompletionTable(const CLI::App& root) {
  std::vector<VerbEntry> verbs;
  Collect(root, "", verbs);
  return verbs;
}

}  // namespace ridge::cli
