// The text of --help: usage, arguments, options by group, examples.  80 columns.
#pragma once
#include <CLI/App.hpp>
#include <CLI/FormatterFwd.hpp>
#include <string>

namespace ridge::cli {

class HelpFormatter : public CLI::FormatterBase {
 public:
  // `name` is the full name: "ridge bench step".
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override;
};

}  // namespace ridge::cli
