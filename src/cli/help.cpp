#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

struct Row {
  std::string left;
  std::string right;
};

class HelpWriter {
 public:
  explicit HelpWriter(bool colour) : colour_(colour) {}

  void paragraph(std::string_view text) { out_.append(text).append("\n"); }
  void section(std::string_view title, const std::vector<Row>& rows) {
    if (rows.empty()) return;
    heading(title);
    size_t width = 0;
    for (const Row& row : rows) width = std::max(width, std::min<size_t>(row.left.size(), 28));
    for (const Row& row : rows) {
      bool wide = row.left.size() > width;
      out_ += fmt::format("  {:<{}}", row.left, width);
      out_ += wide ? fmt::format("\n  {:{}}  {}\n", "", width, row.right)
                   : fmt::format("  {}\n", row.right);
    }
  }
  void heading(std::string_view title) {
    out_ += "\n" + paint(title, Colour::Bold, colour_) + "\n";
  }
  std::string take() { return std::move(out_); }

 private:
  bool colour_;
  std::string out_;
};

std::string shown_flags(const Option& option) {
  std::string flags = option.flags;
  if (size_t comma = flags.find(','); comma != flags.npos) flags.insert(comma + 1, " ");
  if (flags.starts_with("--")) flags.insert(0, "    ");
  return option.value.empty() ? flags : flags + " " + option.value;
}

std::vector<Row> option_rows(const Command& command) {
  std::vector<Row> rows;
  for (const Option& option : command.options) rows.push_back({shown_flags(option), option.help});
  return rows;
}

std::string usage_line(const std::vector<const Command*>& path) {
  const Command& command = *path.back();
  std::string line = "Usage:";
  for (const Command* part : path) line += " " + part->name;
  if (!command.options.empty() && path.size() > 1) line += " [OPTIONS]";
  if (!command.commands.empty()) line += " COMMAND ...";
  for (const Argument& argument : command.arguments) {
    std::string name = argument.name + (takes_many(argument) ? "..." : "");
    line += argument.required ? " " + name : " [" + name + "]";
  }
  if (command.rest != nullptr) line += " [--] " + command.rest_name;
  return line;
}

}  // namespace

std::string help_text(const Command& root, const std::vector<const Command*>& path) {
  const Command& command = *path.back();
  HelpWriter help(use_colour(STDOUT_FILENO));
  help.paragraph(command.summary);
  help.paragraph("");
  help.paragraph(usage_line(path));
  std::vector<Row> rows;
  for (const Command& below : command.commands) {
    if (!below.hidden) rows.push_back({below.name, below.summary});
  }
  help.section("Commands", rows);
  rows.clear();
  for (const Argument& argument : command.arguments) rows.push_back({argument.name, argument.help});
  help.section("Arguments", rows);
  if (&command != &root) help.section("Options", option_rows(command));
  std::vector<Row> global = option_rows(root);
  if (&command != &root) {
    std::erase_if(global, [](const Row& row) { return row.left.ends_with("--version"); });
  }
  global.push_back({"-h, --help", "this text"});
  help.section(&command == &root ? "Options" : "Options of every command", global);
  if (!command.examples.empty()) {
    help.heading("Examples");
    for (const std::string& example : command.examples) help.paragraph("  " + example);
  }
  if (&command == &root) {
    help.paragraph(
        "\nThey need a server: 'sudo atoll serve' runs one, 'atoll doctor' checks the host.");
    help.paragraph("'atoll COMMAND --help' says more about one command, with examples.");
    help.paragraph("ATOLL_URL or ATOLL_SOCKET say where the server is, ATOLL_API_KEY who you are,");
    help.paragraph("ATOLL_TENANT for whom you act.");
  }
  return help.take();
}

}  // namespace atl::cli
