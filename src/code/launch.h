// How kernels of each language are started and asked.
#pragma once

#include <map>
#include <string>

#include "atoll/sandbox_session.h"
#include "code/language.h"

namespace atl::code {

// The program that is to run; what it is, it gets by its input.
SpawnOptions kernel_command(Language language);
std::string kernel_program(Language language);
// The process that a branch of a Python kernel is for the agent.
SpawnOptions branch_command(const std::string& door);

struct Cell {
  std::string code;
  std::map<std::string, std::string> env;
};
// One request, as the kernel reads it.
std::string run_request(Language language, const Cell& cell, const std::string& mark);
std::string fork_request(const std::string& door, const std::string& mark);

// $'...', on one line.
std::string shell_quoted(std::string_view text);

// Why a kernel that ended before it began could not start; what to install.
Error missing_program(Language language);

}  // namespace atl::code
