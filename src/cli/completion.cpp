#include "cli/completion.h"

#include "cli/arguments.h"
#include "cli/report.h"

namespace atl::cli {
namespace {

// The shells ask the program itself, so that completion knows what the program knows.
constexpr std::string_view kBash = R"(# source <(atoll completion bash)
_atoll() {
  local IFS=$'\n'
  COMPREPLY=($(atoll __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *: ]]; then compopt -o nospace; fi
}
complete -o default -F _atoll atoll
)";
constexpr std::string_view kZsh = R"(#compdef atoll
# source <(atoll completion zsh)
_atoll() {
  local -a found
  found=("${(@f)$(atoll __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(${found:#})
  if (( ${#found} )); then compadd -- $found; else _files; fi
}
compdef _atoll atoll
)";
constexpr std::string_view kFish = R"(# atoll completion fish | source
complete -c atoll -a '(atoll __complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
)";

std::vector<std::string> sandbox_names() {
  ClientOptions options = ClientOptions::from_environment();
  options.connect_timeout = std::chrono::milliseconds(500);
  options.io_timeout = std::chrono::milliseconds(1000);
  auto client = Client::connect(std::move(options));
  if (!client) return {};
  auto sandboxes = client->list();
  if (!sandboxes) return {};
  std::vector<std::string> names;
  for (const Sandbox& sandbox : *sandboxes) {
    names.push_back(sandbox.name.empty() ? sandbox.id : sandbox.name);
  }
  return names;
}

std::vector<std::string> flags_of(const std::vector<const Command*>& path) {
  std::vector<std::string> flags = {"--help"};
  for (const Command* command : path) {
    for (const Option& option : command->options) flags.push_back(long_name(option));
  }
  return flags;
}

std::vector<std::string> argument_candidates(const CutCommandLine& cut) {
  const Command& command = *cut.path.back();
  if (command.arguments.empty()) return {};
  size_t index = std::min(cut.arguments, command.arguments.size() - 1);
  Complete kind = command.arguments[index].complete;
  if (kind != Complete::Sandbox && kind != Complete::Target) return {};
  std::vector<std::string> names = sandbox_names();
  if (kind == Complete::Target) {
    for (std::string& name : names) name.push_back(':');
  }
  return names;
}

std::vector<std::string> candidates(const CutCommandLine& cut, const std::string& word) {
  if (cut.open != nullptr) return cut.open->choices;
  if (word.starts_with('-')) return flags_of(cut.path);
  const Command& command = *cut.path.back();
  if (command.commands.empty()) return argument_candidates(cut);
  std::vector<std::string> names;
  for (const Command& below : command.commands) {
    if (!below.hidden) names.push_back(below.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> complete_words(const Command& root,
                                        const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::vector<std::string> before(words.begin(), words.end() - 1);
  CutCommandLine cut = cut_command_line(root, before);
  if (!cut.rest.empty() || !cut.unknown.empty()) return {};
  std::vector<std::string> fitting;
  for (std::string& word : candidates(cut, words.back())) {
    if (word.starts_with(words.back())) fitting.push_back(std::move(word));
  }
  return fitting;
}

std::string completion_script(const Command&, std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return {};
}

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print the completion script for a shell";
  command.examples = {"source <(atoll completion bash)",
                      "atoll completion fish > ~/.config/fish/completions/atoll.fish"};
  command.arguments = {{"SHELL", "bash, zsh or fish", shell.get()}};
  command.run = [shell](const Globals&) {
    std::string script = completion_script({}, *shell);
    if (script.empty()) return report_usage("'" + *shell + "' is not one of bash, zsh, fish");
    print_out(script);
    return 0;
  };
  return command;
}

}  // namespace atl::cli
