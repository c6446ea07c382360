// The command line: builds the tree of verbs, parses, runs one, turns the outcome into a code.
//
// This is a public boundary: Bug and bad_alloc end here, as a message and an exit code.
#include "ridge/cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <map>
#include <memory>
#include <new>

#include "ridge/cli/config_file.h"
#include "ridge/cli/exit_codes.h"
#include "ridge/cli/flags.h"
#include "ridge/cli/help.h"
#include "ridge/cli/output.h"
#include "ridge/cli/start.h"
#include "ridge/cli/verbs.h"
#include "ridge/core/version.h"
#include "ridge/graph/suggest.h"

namespace ridge::cli {
namespace {

struct Tree {
  CLI::App root{
      "Trains neural networks from one small native program, and says before it starts "
      "what the run will need."};
  std::map<const CLI::App*, VerbBody> bodies;  // looked up only
};

void AddVerbs(const std::vector<Verb>& verbs, CLI::App& parent, Tree& tree) {
  for (const Verb& verb : verbs) {
    CLI::App* app = parent.add_subcommand(verb.name, verb.doc);
    app->require_subcommand(0, 1);
    app->footer(verb.examples);
    if (verb.add != nullptr) tree.bodies[app] = verb.add(*app);
    AddVerbs(verb.verbs, *app, tree);
  }
}

std::unique_ptr<Tree> MakeTree() {
  auto tree = std::make_unique<Tree>();
  tree->root.name("ridge");
  tree->root.set_help_flag("-h,--help", "Prints this");
  tree->root.set_version_flag("--version", fmt::format("ridge {}", kRidgeVersion),
                              "Prints the version");
  // One verb at most: in `ridge eval run` the second word is a folder.
  tree->root.require_subcommand(0, 1);
  tree->root.footer(
      "ridge train cnn --data fashion-mnist --epochs 3 --batch 128\n"
      "ridge plan cnn --batch 1024\n"
      "ridge train --help");
  AddVerbs(Verbs(), tree->root, *tree);
  return tree;
}

// The verb that was chosen, or the deepest one on the way there.
CLI::App& Chosen(CLI::App& root) {
  CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return *app;
}

// "ridge bench step".
std::string FullName(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : FullName(*parent) + " " + app.get_name();
}

std::vector<std::string> VerbNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// "--bach=4" is about "--bach".
std::string UnexpectedWord(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  if (name.size() > 1 && name[0] == '-') {
    return fmt::format("no option '{}'{}", name, DidYouMean(name, OptionNames(app)));
  }
  const std::vector<std::string> verbs = VerbNames(app);
  if (!verbs.empty()) return fmt::format("no command '{}'{}", name, DidYouMean(name, verbs));
  return fmt::format("'{}' is one argument too many", word);
}

// A word before a verb is left over in what the verb belongs to.
std::string ExtrasText(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> words = app.remaining();
  if (words.empty()) {
    return app.get_parent() == nullptr ? error.what() : ExtrasText(*app.get_parent(), error);
  }
  // Of "--bach 4" the option is what is wrong, wherever the 4 went.
  for (const std::string& word : words) {
    if (word.size() > 1 && word[0] == '-' && word != "--") return UnexpectedWord(app, word);
  }
  return UnexpectedWord(app, words.front());
}

std::string UsageText(const CLI::App& app, const CLI::ParseError& error) {
  std::string text = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) return ExtrasText(app, error);
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    const size_t at = text.find(" excludes ");
    return fmt::format("{} and {} can't be given together", text.substr(0, at),
                       text.substr(at + std::string_view(" excludes ").size()));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return fmt::format("{} needs a value", text.substr(0, text.find(':')));
  }
  return text;
}

int ReportUsage(CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = Chosen(root);
  std::string text = UsageText(app, error);
  if (!text.ends_with('?')) text += '.';
  PrintError(InvalidArgument(fmt::format("{} hint: {} --help", text, FullName(app))));
  return kExitUsage;
}

int PrintHelp(const CLI::App& app, bool all = false) {
  PrintData(HelpFormatter(all).make_help(&app, FullName(app), CLI::AppFormatMode::Normal));
  return kExitOk;
}

int RunVerb(Tree& tree) {
  CLI::App& app = Chosen(tree.root);
  const auto body = tree.bodies.find(&app);
  if (body == tree.bodies.end()) return PrintHelp(app);  // `ridge`, `ridge bench`
  const Result<int> code = body->second();
  if (!code.ok()) PrintError(code.status());
  return code.ok() ? *code : ExitCodeFor(code.status().code());
}

const CLI::App* FindVerb(const CLI::App& app, const std::string& name) {
  for (const CLI::App* verb : app.get_subcommands({})) {
    if (verb->get_name() == name) return verb;
  }
  return nullptr;
}

constexpr std::string_view kHelp = "help";

// Takes the `all` of `--help all`, and of the forms of WithHelpFlag, away; whether it was there.
bool TakeHelpAll(std::vector<const char*>& words) {
  if (words.size() < 3 || words.back() != std::string_view("all")) return false;
  const std::string_view before = words[words.size() - 2];
  if (before != "--help" && before != "-h" && before != kHelp && words[1] != kHelp) return false;
  words.pop_back();
  return true;
}

// `ridge help VERB` and `ridge VERB help` are `ridge VERB --help`.
std::vector<const char*> WithHelpFlag(const CLI::App& root, std::vector<const char*> words) {
  if (words.size() > 1 && words[1] == kHelp) {
    words.erase(words.begin() + 1);
    words.push_back("--help");
    return words;
  }
  size_t at = 1;
  for (const CLI::App* app = &root; at < words.size(); ++at) {
    app = FindVerb(*app, words[at]);
    if (app == nullptr) break;
  }
  if (at + 1 == words.size() && words[at] == kHelp) words[at] = "--help";
  return words;
}

int ParseAndRun(int argc, const char* const* argv) {
  const std::unique_ptr<Tree> tree = MakeTree();
  std::vector<const char*> given(argv, argv + argc);
  const bool help_all = TakeHelpAll(given);
  const std::vector<const char*> words = WithHelpFlag(tree->root, std::move(given));
  try {
    tree->root.parse(static_cast<int>(words.size()), words.data());
    ApplyEnvironment(Chosen(tree->root));
    ApplyConfig(Chosen(tree->root));
  } catch (const CLI::CallForHelp&) {
    return PrintHelp(Chosen(tree->root), help_all);
  } catch (const CLI::CallForVersion& version) {
    PrintData(fmt::format("{}\n", version.what()));
    return kExitOk;
  } catch (const CLI::ParseError& error) {
    return ReportUsage(tree->root, error);
  }
  return RunVerb(*tree);
}

int ReportBug(const std::string& what) {
  PrintError(Status(
      ErrorCode::kInternal,
      fmt::format("internal error: {}\n  This is a bug of ridge {}. Please report it with the "
                  "command and this text.",
                  what, kRidgeVersion)));
  return kExitFailed;
}

}  // namespace

int RunCommandLine(int argc, const char* const* argv) {
  ResidentAtStart();
  // A limit on file sizes is to us what a full disk is: an error of the write.
  std::signal(SIGXFSZ, SIG_IGN);
  int code = kExitFailed;
  try {
    code = ParseAndRun(argc, argv);
  } catch (const Bug& bug) {
    code = ReportBug(bug.what());
  } catch (const std::bad_alloc&) {
    PrintError(Status(ErrorCode::kOutOfMemory,
                      "out of memory: the system refused an allocation. hint: a smaller --batch"));
    code = kExitDoesNotFit;
  } catch (const std::exception& error) {
    code = ReportBug(error.what());
  }
  if (const Status status = FinishOutput(); !status.ok()) {
    PrintError(status);
    if (code == kExitOk) code = kExitFailed;
  }
  return code;
}

}  // namespace ridge::cli
