// Templates that are built: a base, files and a script, known by their contents.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "atoll/sandbox_backend.h"

namespace atl::sandbox {

struct TemplateBuild {
  std::string name;
  std::string base = "base";
  std::vector<SeedFile> files;
  std::vector<SeedTree> trees;
  std::string script;  // for /bin/sh, as root, after the files are there; empty: none
  std::chrono::milliseconds time{0};  // for the script; 0: no limit
  TemplateSettings settings;
};

// Differs where what would be built may.
std::string digest_of(const TemplateBuild& build, const FoundTemplate& base);

// A template that was built of the same is reused. `log` gets what the build does and what its
// script writes.
Task<Result<PrewarmResult>> build_template(SandboxBackend& backend, TemplateBuild build,
                                           std::function<void(const std::string&)> log);

}  // namespace atl::sandbox
