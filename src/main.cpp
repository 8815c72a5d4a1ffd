#include <errno.h>
#include <stdio.h>

#include <exception>

#include "cli/command.h"
#include "cli/report.h"

namespace {

int run(int argc, char** argv) {
  using namespace atl::cli;
  Globals globals;
  bool version = false;
  Command root = all_commands();
  root.options = {
      {"--json", "", "print JSON", &globals.json},
      {"-q,--quiet", "", "print only names, no progress", &globals.quiet},
      {"--url", "URL", "the server: https://host:port, http://... or unix:/path", &globals.url},
      {"--tenant", "NAME", "act for this tenant (administrators)", &globals.tenant},
      {"--version", "", "print the version", &version}};
  root.run = [&](const Globals& given) {
    if (version) return version_command().run(given);
    print_out(help_text(root, {&root}));
    return 0;
  };
  int code = run_command_line(root, globals, argc, argv);
  if (fflush(stdout) == 0) return code;
  return report(atl::Error::from_errno(errno, "write", "standard output"));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fprintf(stderr, "atoll: %s (this is a bug: please report it)\n", error.what());
    return atl::cli::kOwnFailure;
  }
}
