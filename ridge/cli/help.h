// The text of --help: usage, arguments, options by group, examples.  80 columns.
//
// Of a verb with many options those that most people need; `--help all` lists every one.
#pragma once
#include <CLI/App.hpp>
#include <CLI/FormatterFwd.hpp>
#include <string>

namespace ridge::cli {

class HelpFormatter : public CLI::FormatterBase {
 public:
  explicit HelpFormatter(bool all) : all_(all) {}

  // `name` is the full name: "ridge bench step".
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;

 private:
  bool all_;
};

}  // namespace ridge::cli
