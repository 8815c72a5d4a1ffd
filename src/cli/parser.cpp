// The one file that knows CLI11: it is slow to compile. It sees options and arguments only; the
// command to run in a sandbox is cut off before, so that no byte of it is interpreted.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <optional>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/report.h"
#include "cli/units.h"

namespace atl::cli {
namespace {

// CLI11 wants to hear of bad values by exceptions with its own words; we keep ours aside.
class Failures {
 public:
  void keep(const std::string& flag, const Result<void>& result) {
    if (!result && !first_) first_ = flag + ": " + result.error().message();
  }
  const std::optional<std::string>& first() const { return first_; }

 private:
  std::optional<std::string> first_;
};

Result<void> store_number(const std::string& text, unsigned* into) {
  ATOLL_ASSIGN(*into, parse_count(text));
  return {};
}

Result<void> store(const Slot& slot, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    if (const auto* read = std::get_if<ReadValue>(&slot)) ATOLL_TRY((*read)(text));
    if (auto* const* into = std::get_if<std::string*>(&slot)) **into = text;
    if (auto* const* into = std::get_if<std::vector<std::string>*>(&slot)) (*into)->push_back(text);
    if (auto* const* into = std::get_if<unsigned*>(&slot)) ATOLL_TRY(store_number(text, *into));
    if (auto* const* into = std::get_if<int*>(&slot)) {
      unsigned value = 0;
      ATOLL_TRY(store_number(text, &value));
      **into = static_cast<int>(value);
    }
  }
  return {};
}

bool repeats(const Slot& slot) {
  return std::holds_alternative<std::vector<std::string>*>(slot) ||
         std::holds_alternative<ReadValue>(slot);
}

Result<void> check_choice(const std::vector<std::string>& choices,
                          const std::vector<std::string>& texts) {
  if (choices.empty()) return {};
  for (const std::string& text : texts) {
    if (std::find(choices.begin(), choices.end(), text) != choices.end()) continue;
    return fail(ErrorCode::InvalidArgument,
                "'" + text + "' is not one of " + CLI::detail::join(choices, ", "));
  }
  return {};
}

void add_option(CLI::App& app, const Option& option, Failures& failures) {
  if (option.value.empty()) {
    app.add_flag(option.flags, *std::get<bool*>(option.slot), option.help);
    return;
  }
  CLI::callback_t take = [&option, &failures](const CLI::results_t& texts) {
    failures.keep(long_name(option), check_choice(option.choices, texts));
    failures.keep(long_name(option), store(option.slot, texts));
    return true;
  };
  CLI::Option* added = app.add_option(option.flags, take, option.help);
  if (repeats(option.slot)) added->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_argument(CLI::App& app, const Argument& argument, Failures& failures) {
  CLI::callback_t take = [&argument, &failures](const CLI::results_t& texts) {
    failures.keep(argument.name, check_choice(argument.choices, texts));
    failures.keep(argument.name, store(argument.slot, texts));
    return true;
  };
  CLI::Option* added = app.add_option(argument.name, take, argument.help);
  added->required(argument.required);
  if (takes_many(argument)) {
    added->expected(argument.required ? 1 : 0, CLI::detail::expected_max_vector_size);
    added->allow_extra_args(true);  // else CLI11 takes only the first word
  }
}

void build(CLI::App& app, const Command& command, Failures& failures) {
  for (const Option& option : command.options) add_option(app, option, failures);
  for (const Argument& argument : command.arguments) add_argument(app, argument, failures);
  for (const Command& below : command.commands) {
    CLI::App* added = app.add_subcommand(below.name, below.summary);
    added->fallthrough();
    build(*added, below, failures);
  }
}

std::string command_name(const std::vector<const Command*>& path) {
  std::string name;
  for (const Command* command : path) name += (name.empty() ? "" : " ") + command->name;
  return name;
}

int usage_failure(const std::vector<const Command*>& path, const std::string& what) {
  return report_usage(what + " (see '" + command_name(path) + " --help')");
}

std::string unknown_command(const CutCommandLine& cut) {
  std::string text = "there is no command '" + cut.unknown + "'";
  const Command* similar = similar_command(*cut.path.back(), cut.unknown);
  return similar == nullptr ? text : text + "; did you mean '" + similar->name + "'?";
}

// CLI11's sentences, made into ours.
std::string parse_failure(const CLI::ParseError& error, const CutCommandLine& cut) {
  constexpr std::string_view kExtras = "The following arguments were not expected: ";
  constexpr std::string_view kExtra = "The following argument was not expected: ";
  bool verb_missing = !cut.path.back()->commands.empty();
  if (verb_missing && !cut.unknown.empty()) return unknown_command(cut);
  if (cut.open != nullptr) return long_name(*cut.open) + " needs a value: " + cut.open->value;
  std::string text = error.what();
  for (std::string_view prefix : {kExtras, kExtra}) {
    if (!text.starts_with(prefix)) continue;
    text.erase(0, prefix.size());
    // CLI11 names an unknown option after the value that followed it: "x --nam".
    size_t option = text.starts_with('-') ? 0 : text.find(" -");
    if (option != text.npos) {
      text.erase(0, text.find('-', option));
      text = "there is no option " + text.substr(0, text.find(' '));
    } else {
      text.insert(0, "unexpected argument ");
    }
  }
  return text.substr(0, text.find('\n'));
}

std::string names_of(const std::vector<Command>& commands) {
  std::string names;
  for (const Command& command : commands) names += (names.empty() ? "" : ", ") + command.name;
  return names;
}

}  // namespace

bool takes_many(const Argument& argument) {
  return std::holds_alternative<std::vector<std::string>*>(argument.slot);
}

std::string long_name(const Option& option) {
  size_t at = option.flags.find("--");
  return at == option.flags.npos ? option.flags : option.flags.substr(at);
}

// "atoll checkpoint web" means "atoll checkpoint create web".
static void name_usual_command(const Command& root, std::vector<std::string>& words) {
  for (size_t i = 0; i + 1 < words.size() && words[i] != "--"; i++) {
    auto named = [](const std::vector<Command>& commands, const std::string& word) {
      return std::find_if(commands.begin(), commands.end(),
                          [&](const Command& command) { return command.name == word; });
    };
    auto command = named(root.commands, words[i]);
    if (command == root.commands.end()) continue;
    const std::string& next = words[i + 1];
    bool help = next == "-h" || next == "--help";
    if (command->usual.empty() || help || named(command->commands, next) != command->commands.end())
      return;
    words.insert(words.begin() + static_cast<ptrdiff_t>(i) + 1, command->usual);
    return;
  }
}

int run_command_line(const Command& root, Globals& globals, int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "__complete") {
    words.erase(words.begin());
    Completion found = complete(root, words);
    for (const std::string& word : found.words) print_out(word + "\n");
    if (found.files) print_out(":files\n");
    return 0;
  }
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.push_back("--help");
  }
  name_usual_command(root, words);
  CutCommandLine cut = cut_command_line(root, words);
  Failures failures;
  CLI::App app;
  build(app, root, failures);
  std::reverse(cut.words.begin(), cut.words.end());  // as CLI11 wants them
  try {
    app.parse(cut.words);
  } catch (const CLI::CallForHelp&) {
    print_out(help_text(root, cut.path));
    return 0;
  } catch (const CLI::ParseError& error) {
    return usage_failure(cut.path, parse_failure(error, cut));
  }
  if (failures.first()) return usage_failure(cut.path, *failures.first());
  const Command& command = *cut.path.back();
  if (command.rest != nullptr) *command.rest = cut.rest;
  if (command.run) return command.run(globals);
  return usage_failure(cut.path, "say which: " + names_of(command.commands));
}

}  // namespace atl::cli
