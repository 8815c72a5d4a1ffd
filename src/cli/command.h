// The command line as data. Each verb's file describes its options and arguments here; only
// parser.cpp knows the library that parses them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace atl::cli {

// What every verb accepts.
struct Globals {
  bool json = false;
  bool quiet = false;
  std::string url;
  std::string tenant;
};

// Reads one value; its error becomes "--flag: ...". For options that repeat it is called for each.
using ReadValue = std::function<Result<void>(const std::string& text)>;
// Where a value goes. A vector and a ReadValue take an option that repeats.
using Slot =
    std::variant<bool*, std::string*, unsigned*, int*, std::vector<std::string>*, ReadValue>;

// What a shell offers for a value: names that the server knows, local files, paths in a sandbox
// ("web:/etc"), or either kind of path.
enum class Complete : uint8_t { Nothing, Sandbox, Template, File, Remote, Target };

struct Option {
  std::string flags;  // "-e,--env"
  std::string value;  // "KEY=VALUE", how help shows it; empty for a switch
  std::string help;
  Slot slot;
  std::vector<std::string> choices = {};
  Complete complete = Complete::Nothing;
};

struct Argument {
  std::string name;  // "SANDBOX"
  std::string help;
  Slot slot;  // a vector takes all that are left
  bool required = true;
  Complete complete = Complete::Nothing;
  std::vector<std::string> choices = {};
};

struct Command {
  std::string name;
  std::string summary;
  std::vector<std::string> examples = {};
  std::vector<Option> options = {};
  std::vector<Argument> arguments = {};
  // Where the command to run goes, byte by byte: all after "--", or after the last argument.
  std::vector<std::string>* rest = nullptr;
  std::string rest_name = {};
  std::vector<Command> commands = {};
  std::string usual = {};  // which of them is meant where none is named
  std::function<int(const Globals&)> run = {};
  bool hidden = false;
};

// The whole tree, in the order help shows it.
Command all_commands();

// Whether it takes all the words that are left.
bool takes_many(const Argument& argument);

// The flag as messages name it: "--env" of "-e,--env".
std::string long_name(const Option& option);

// Parses and runs; returns the exit code.
int run_command_line(const Command& root, Globals& globals, int argc, char** argv);

std::string help_text(const Command& root, const std::vector<const Command*>& path);
// "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);

// One for each file of verbs.
Command run_command();
Command create_command();
Command ls_command();
Command inspect_command();
Command exec_command();
Command ps_command();
Command logs_command();
Command kill_command();
Command wait_command();
Command cp_command();
Command cat_command();
Command files_command();
Command search_command();
Command watch_command();
Command stop_command();
Command start_command();
Command pause_command();
Command unpause_command();
Command resume_command();
Command update_command();
Command snapshot_command();
Command checkpoint_command();
Command restore_command();
Command fork_command();
Command diff_command();
Command history_command();
Command undo_command();
Command usage_command();
Command rm_command();
Command events_command();
Command token_command();
Command key_command();
Command net_command();
Command port_command();
Command secret_command();
Command whoami_command();
Command audit_command();
Command template_command();
Command doctor_command();
Command storage_command();
Command system_command();
Command serve_command();
Command config_command();
Command backup_command();
Command version_command();
Command completion_command();

}  // namespace atl::cli
