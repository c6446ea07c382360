// `ridge completion SHELL`: a script generated from the tree of options that parses the command
// line, so that both always agree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <sstream>

#include "ridge/cli/completion_table.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/output.h"
#include "ridge/cli/verbs.h"

namespace ridge::cli {
namespace {

std::vector<std::string> PathParts(const std::string& path) {
  std::vector<std::string> parts;
  std::istringstream words(path);
  for (std::string word; words >> word;) parts.push_back(word);
  return parts;
}

// In single quotes; a quote inside is written as the shell wants it.
std::string Quoted(const std::string& text, const char* quote = "'\\''") {
  std::string out;
  for (const char c : text) out += c == '\'' ? std::string(quote) : std::string(1, c);
  return "'" + out + "'";
}

std::string FishQuoted(const std::string& text) { return Quoted(text, "\\'"); }

std::vector<std::string> Words(const VerbEntry& verb, bool options) {
  std::vector<std::string> words;
  for (const auto& [name, doc] : verb.verbs) words.push_back(name);
  for (const Entry& entry : verb.entries) {
    if (entry.name.empty()) {
      words.insert(words.end(), entry.words.begin(), entry.words.end());
    } else if (options) {
      words.push_back(entry.name);
    }
  }
  return words;
}

bool TakesFiles(const VerbEntry& verb) {
  for (const Entry& entry : verb.entries) {
    if (entry.name.empty() && entry.files) return true;
  }
  return false;
}

// COMP_WORDBREAKS holds '=' and ':', so bash gives "--data=idx:x" as five words, and what is
// completed is the last of them.
constexpr char kBashHead[] = R"(# bash completion of ridge: source <(ridge completion bash)
_ridge() {
  local current=${COMP_WORDS[COMP_CWORD]} at=$((COMP_CWORD - 1)) verb="" words="" files=0 i
  if [[ $current == [=:] ]]; then current="" at=$COMP_CWORD; fi
  local before=${COMP_WORDS[at]} stem=""
  if [[ $before == ":" ]]; then stem=${COMP_WORDS[at - 1]}:; fi
  if [[ $before == "=" ]]; then before=${COMP_WORDS[at - 1]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case $verb${verb:+ }${COMP_WORDS[i]} in
)";

constexpr char kBashTail[] = R"(    esac;;
  esac
  mapfile -t COMPREPLY < <(
    compgen -W "$words" -- "$stem$current"
    if ((files)); then compgen -f -- "$current"; fi
  )
  COMPREPLY=("${COMPREPLY[@]#"$stem"}")
  if ((files)); then compopt -o filenames 2>/dev/null; fi
  if [[ ${COMPREPLY[0]-} == *: ]]; then compopt -o nospace 2>/dev/null; fi
  return 0
}
complete -F _ridge ridge
)";

std::string Joined(const std::vector<std::string>& words) {
  return Quoted(fmt::format("{}", fmt::join(words, " ")));
}

std::string BashVerbs(const std::vector<VerbEntry>& verbs) {
  std::vector<std::string> paths;
  for (const VerbEntry& verb : verbs) {
    if (!verb.path.empty()) paths.push_back(Quoted(verb.path));
  }
  return fmt::format(
      "      {})\n        verb=$verb${{verb:+ }}${{COMP_WORDS[i]}};;\n    esac\n  done\n",
      fmt::join(paths, "|"));
}

std::string BashValues(const VerbEntry& verb) {
  std::string out;
  for (const Entry& entry : verb.entries) {
    if (entry.name.empty() || !entry.takes_value) continue;
    out += fmt::format("    {}) words={} files={};;\n", Quoted(verb.path + ":" + entry.name),
                       Joined(entry.words), entry.files ? 1 : 0);
  }
  return out;
}

std::string BashWords(const VerbEntry& verb) {
  return fmt::format(
      "      {}) words={} files={}\n        if [[ $current == -* ]]; then words={} files=0; fi;;\n",
      Quoted(verb.path), Joined(Words(verb, /*options=*/false)), TakesFiles(verb) ? 1 : 0,
      Joined(Words(verb, /*options=*/true)));
}

// Those that go on behind a colon: "gpt:175b".
std::vector<std::string> WordsBehindColons(const std::vector<VerbEntry>& verbs) {
  std::set<std::string> found;
  for (const VerbEntry& verb : verbs) {
    for (const Entry& entry : verb.entries) {
      for (const std::string& word : entry.words) {
        const size_t colon = word.find(':');
        if (colon != std::string::npos && colon + 1 < word.size()) found.insert(word);
      }
    }
  }
  return {found.begin(), found.end()};
}

std::string BashScript(const std::vector<VerbEntry>& verbs) {
  std::string out = kBashHead + BashVerbs(verbs) + "  case $verb:$before in\n";
  out += fmt::format("    *::) files=1 words={};;\n", Joined(WordsBehindColons(verbs)));
  for (const VerbEntry& verb : verbs) out += BashValues(verb);
  out += "    *) case $verb in\n";
  for (const VerbEntry& verb : verbs) out += BashWords(verb);
  return out + kBashTail;
}

// A description for zsh: ':' and brackets are its own marks.
std::string ZshDoc(std::string doc) {
  for (char& c : doc) {
    if (c == ':' || c == '[' || c == ']') c = ' ';
  }
  return doc;
}

std::string ZshValue(const Entry& entry) {
  std::string words;
  for (const std::string& word : entry.words) {
    for (const char c : word) words += c == ':' ? std::string("\\:") : std::string(1, c);
    words += " ";
  }
  if (entry.files && entry.words.empty()) return ":value:_files";
  if (entry.files)
    return fmt::format(":value:{{_alternative \"words:word:({})\" \"files:file:_files\"}}", words);
  return words.empty() ? ":value: " : fmt::format(":value:({})", words);
}

std::string ZshFunctionName(const std::string& path) {
  std::string name = "_ridge";
  for (const std::string& part : PathParts(path)) name += "_" + part;
  return name;
}

std::string ZshArguments(const VerbEntry& verb) {
  std::string out;
  for (const Entry& entry : verb.entries) {
    const std::string value = entry.takes_value ? ZshValue(entry) : "";
    const std::string spec =
        entry.name.empty() ? ":" + value
                           : fmt::format("{}{}[{}]{}", entry.name,
                                         entry.takes_value && entry.name.size() > 2 ? "=" : "",
                                         ZshDoc(entry.doc), value);
    out += fmt::format(" \\\n    {}", Quoted(entry.name.empty() ? value : spec));
  }
  return out;
}

std::string ZshFunction(const VerbEntry& verb) {
  std::string out = ZshFunctionName(verb.path) + "() {\n";
  if (verb.verbs.empty()) return out + "  _arguments -s" + ZshArguments(verb) + "\n}\n";
  out += "  local -a verbs=(";
  for (const auto& [name, doc] : verb.verbs) {
    out += fmt::format("\n    {}", Quoted(fmt::format("{}:{}", name, ZshDoc(doc))));
  }
  out += "\n  )\n  local state line\n  _arguments -C" + ZshArguments(verb);
  out += " \\\n    '1: :->verb' '*:: :->rest'\n  case $state in\n";
  out += "    verb) _describe 'command' verbs;;\n";
  out += fmt::format("    rest) (( $+functions[{0}_$words[1]] )) && {0}_$words[1];;\n  esac\n}}\n",
                     ZshFunctionName(verb.path));
  return out;
}

std::string ZshScript(const std::vector<VerbEntry>& verbs) {
  std::string out =
      "#compdef ridge\n# zsh completion of ridge: ridge completion zsh > _ridge, in a folder of "
      "$fpath\n";
  for (const VerbEntry& verb : verbs) out += ZshFunction(verb);
  out +=
      "if [[ $funcstack[1] == _ridge ]]; then\n  _ridge \"$@\"\nelse\n  compdef _ridge ridge\nfi\n";
  return out;
}

// fish evaluates a condition for each candidate: the verb on the line.
std::string FishCondition(const VerbEntry& verb) {
  if (verb.path.empty()) return "__fish_use_subcommand";
  std::string condition;
  for (const std::string& part : PathParts(verb.path)) {
    condition += (condition.empty() ? "" : "; and ") + ("__fish_seen_subcommand_from " + part);
  }
  return condition;
}

std::string FishEntry(const Entry& entry, const std::string& condition) {
  std::string out = "complete -c ridge -n " + FishQuoted(condition);
  if (entry.name.size() == 2) out += " -s " + entry.name.substr(1);
  if (entry.name.size() > 2) out += " -l " + entry.name.substr(2);
  if (entry.takes_value && !entry.name.empty()) out += " -r";
  if (!entry.files && entry.takes_value) out += " -f";
  if (entry.files) out += " -F";
  if (!entry.words.empty()) {
    out += " -a " + FishQuoted(fmt::format("{}", fmt::join(entry.words, " ")));
  }
  return out + " -d " + FishQuoted(entry.doc) + "\n";
}

std::string FishScript(const std::vector<VerbEntry>& verbs) {
  std::string out =
      "# fish completion of ridge: ridge completion fish > "
      "~/.config/fish/completions/ridge.fish\ncomplete -c ridge -f\n";
  for (const VerbEntry& verb : verbs) {
    const std::string condition = FishCondition(verb);
    std::vector<std::string> names;
    for (const auto& [name, doc] : verb.verbs) names.push_back(name);
    for (const auto& [name, doc] : verb.verbs) {
      std::string once = condition;
      if (!verb.path.empty()) {
        once += fmt::format("; and not __fish_seen_subcommand_from {}", fmt::join(names, " "));
      }
      out += fmt::format("complete -c ridge -n {} -a {} -d {}\n", FishQuoted(once),
                         FishQuoted(name), FishQuoted(doc));
    }
    for (const Entry& entry : verb.entries) out += FishEntry(entry, condition);
  }
  return out;
}

Result<int> Complete(const CLI::App& app, const std::optional<std::string>& shell) {
  RIDGE_RETURN_IF_ERROR(RequireArgument(app, shell, "SHELL", "bash, zsh or fish"));
  const std::vector<VerbEntry> verbs = CompletionTable(*app.get_parent());
  if (*shell == "bash") PrintData(BashScript(verbs));
  if (*shell == "zsh") PrintData(ZshScript(verbs));
  if (*shell == "fish") PrintData(FishScript(verbs));
  return kExitOk;
}

}  // namespace

VerbBody AddCompletion(CLI::App& app) {
  auto shell = std::make_shared<std::optional<std::string>>();
  AddChoice(app, "SHELL", *shell, {"bash", "zsh", "fish"}, "Whose script to print");
  return [&app, shell] { return Complete(app, *shell); };
}

}  // namespace ridge::cli
