#include "cli/completion.h"

#include "cli/arguments.h"
#include "cli/report.h"
#include "cli/target.h"

namespace atl::cli {
namespace {

// The shells ask the program itself, so that completion knows what the program knows. It answers a
// line a word; the line ":files" says that local files fit too.
constexpr std::string_view kBash = R"sh(# source <(atoll completion bash)
_atoll() {
  local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} words=() word blank i
  # Bash also splits words at ':' and '=': what no blank separates is one word.
  for ((i = 0; i <= COMP_CWORD; i++)); do
    blank=${line%%[![:space:]]*}
    line=${line:${#blank}}
    word=${COMP_WORDS[i]}
    if ((i == COMP_CWORD)); then word=$line; fi
    if [[ -n $blank || i -eq 0 ]]; then words+=("$word"); else words[-1]+=$word; fi
    line=${line:${#word}}
  done
  COMPREPLY=($(atoll __complete "${words[@]:1}" 2>/dev/null))
  i=$((${#COMPREPLY[@]} - 1))
  if [[ $i -ge 0 && ${COMPREPLY[i]} == :files ]]; then
    unset "COMPREPLY[i]"
    compopt -o default
  fi
  # It replaces only what stands after the last ':' or '='.
  word=${words[-1]}
  word=${word%"${word##*[:=]}"}
  for i in "${!COMPREPLY[@]}"; do printf -v "COMPREPLY[i]" %q "${COMPREPLY[i]#"$word"}"; done
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[:/=] ]]; then compopt -o nospace; fi
}
complete -F _atoll atoll
)sh";
constexpr std::string_view kZsh = R"sh(#compdef atoll
# source <(atoll completion zsh), after compinit; or as a file _atoll in $fpath
_atoll() {
  local -a found
  found=(${(f)"$(atoll __complete "${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"})
  if (( ${found[(Ie):files]} )); then
    found=(${found:#:files})
    _files
  fi
  compadd -S '' -- ${(M)found:#*[:/=]}
  compadd -- ${found:#*[:/=]}
}
if [[ ${funcstack[1]} == _atoll ]]; then _atoll "$@"; else compdef _atoll atoll; fi
)sh";
constexpr std::string_view kFish = R"sh(# atoll completion fish | source
function __atoll_complete
    set -l words (commandline -opc) (commandline -ct)
    set -l found (atoll __complete $words[2..] 2>/dev/null)
    string match -v :files -- $found
    if contains -- :files $found
        __fish_complete_path (commandline -ct)
    end
end
complete -c atoll -f -a '(__atoll_complete)'
)sh";

// Nobody waits long for a completion.
Result<Client> connect_quickly() {
  ClientOptions options = ClientOptions::from_environment();
  options.connect_timeout = std::chrono::milliseconds(500);
  options.io_timeout = std::chrono::milliseconds(1000);
  return Client::connect(std::move(options));
}

std::vector<std::string> sandbox_names(const char* suffix = "") {
  auto client = connect_quickly();
  if (!client) return {};
  auto sandboxes = client->list();
  if (!sandboxes) return {};
  std::vector<std::string> names;
  for (const Sandbox& sandbox : *sandboxes) {
    names.push_back((sandbox.name.empty() ? sandbox.id : sandbox.name) + suffix);
  }
  return names;
}

std::vector<std::string> template_names() {
  auto client = connect_quickly();
  if (!client) return {};
  auto templates = client->templates();
  if (!templates) return {};
  std::vector<std::string> names;
  for (const TemplateInfo& info : *templates) names.push_back(info.name);
  return names;
}

// "web:/etc/ho" as "web:/etc/hostname" and "web:/etc/hosts".
std::vector<std::string> remote_paths(const std::string& word) {
  auto target = parse_remote(word);
  auto client = connect_quickly();
  if (!target || !client) return {};
  std::string path = word.substr(word.find(':') + 1);
  std::string dir = path.substr(0, path.rfind('/') + 1);
  ListFilesRequest request;
  request.hidden = path.substr(dir.size()).starts_with('.');
  auto list = client->list_files(target->sandbox, dir, request);
  if (!list) return {};
  std::vector<std::string> paths;
  for (const FileEntry& entry : list->entries) {
    bool is_dir = entry.kind == FileKind::Directory;
    paths.push_back(target->sandbox + ":" + dir + entry.name + (is_dir ? "/" : ""));
  }
  return paths;
}

std::vector<std::string> flags_of(const std::vector<const Command*>& path) {
  std::vector<std::string> flags = {"--help"};
  for (const Command* command : path) {
    for (const Option& option : command->options) flags.push_back(long_name(option));
  }
  return flags;
}

Completion candidates(Complete kind, const std::string& word) {
  switch (kind) {
    case Complete::Nothing:
      return {};
    case Complete::Sandbox:
      return {sandbox_names()};
    case Complete::Template:
      return {template_names()};
    case Complete::File:
      return {{}, true};
    case Complete::Remote:
      return {word.find(':') == word.npos ? sandbox_names(":") : remote_paths(word)};
    case Complete::Target: {
      auto target = parse_target(word);
      if (target && target->remote()) return {remote_paths(word)};
      return {sandbox_names(":"), true};
    }
  }
  return {};
}

Completion option_value(const Option& option, const std::string& word) {
  if (!option.choices.empty()) return {option.choices};
  return candidates(option.complete, word);
}

// "--status=run"
Completion joined_value(const CutCommandLine& cut, const std::string& word) {
  size_t value = word.find('=') + 1;
  for (const Command* command : cut.path) {
    for (const Option& option : command->options) {
      if (long_name(option) + "=" != word.substr(0, value)) continue;
      Completion found = option_value(option, word.substr(value));
      for (std::string& text : found.words) text.insert(0, word, 0, value);
      return found;
    }
  }
  return {};
}

Completion candidates(const CutCommandLine& cut, const std::string& word) {
  if (cut.open != nullptr) return option_value(*cut.open, word);
  if (word.starts_with("--") && word.find('=') != word.npos) return joined_value(cut, word);
  if (word.starts_with('-')) return {flags_of(cut.path)};
  const Command& command = *cut.path.back();
  if (command.commands.empty()) {
    bool many = !command.arguments.empty() && takes_many(command.arguments.back());
    size_t index = many ? std::min(cut.arguments, command.arguments.size() - 1) : cut.arguments;
    if (index >= command.arguments.size()) return {};
    const Argument& argument = command.arguments[index];
    return argument.choices.empty() ? candidates(argument.complete, word)
                                    : Completion{argument.choices};
  }
  Completion names;
  for (const Command& below : command.commands) {
    if (!below.hidden) names.words.push_back(below.name);
  }
  return names;
}

}  // namespace

Completion complete(const Command& root, const std::vector<std::string>& words) {
  if (words.empty()) return {};
  std::vector<std::string> before(words.begin(), words.end() - 1);
  CutCommandLine cut = cut_command_line(root, before);
  if (!cut.rest.empty() || !cut.unknown.empty()) return {};
  Completion found = candidates(cut, words.back());
  std::erase_if(found.words,
                [&](const std::string& word) { return !word.starts_with(words.back()); });
  return found;
}

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  return std::string(shell == "zsh" ? kZsh : kFish);
}

Command completion_command() {
  auto shell = std::make_shared<std::string>();
  Command command;
  command.name = "completion";
  command.summary = "Print the completion script for a shell";
  command.examples = {"source <(atoll completion bash)      # also in ~/.bashrc",
                      "source <(atoll completion zsh)       # also in ~/.zshrc, after compinit",
                      "atoll completion fish > ~/.config/fish/completions/atoll.fish"};
  command.arguments = {{.name = "SHELL",
                        .help = "bash, zsh or fish",
                        .slot = shell.get(),
                        .choices = {"bash", "zsh", "fish"}}};
  command.run = [shell](const Globals&) {
    print_out(completion_script(*shell));
    return 0;
  };
  return command;
}

}  // namespace atl::cli
