// A template's build, as clients describe it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "http/json.h"

namespace atl::api::e2b {

struct BuildStep {
  enum class Kind { Run, Copy };
  Kind kind = Kind::Run;
  size_t number = 0;    // as the client counts, from 1
  std::string command;  // Run
  std::string source;   // Copy: a pattern within the uploaded archive
  std::string target;
  std::string owner;
  std::string mode;
  std::string files_hash;
  // What the steps before it have set.
  std::map<std::string, std::string> env;
  std::string user;
  std::string workdir;
};

struct BuildPlan {
  std::string from;        // a template, a snapshot, or an image that was imported under its name
  std::string from_field;  // which field said so
  std::vector<BuildStep> steps;
  // What sandboxes of the template have.
  std::map<std::string, std::string> env;
  std::string user;
  std::string workdir;
};

Result<BuildPlan> read_plan(const http::JsonDocument& document);

// What the client asks for before it describes the steps.
struct BuildOrder {
  std::string name;
  std::vector<std::string> tags;
  uint32_t cpu_millis = 0;  // 0: as usual
  uint64_t memory_bytes = 0;
};
Result<BuildOrder> read_order(const http::JsonDocument& document);

}  // namespace atl::api::e2b
