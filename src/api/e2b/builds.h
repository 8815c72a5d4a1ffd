// Builds of templates under way and lately ended. A build is a sandbox in which the steps are run,
// and a snapshot of it that has the template's name. Files that steps copy wait in a sandbox of
// their own until the build begins. Builds end with the server.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/e2b/build_body.h"

namespace atl::api::e2b {

struct BuildLine {
  int64_t at_ms = 0;
  std::string level;  // "info", "warn", "error"
  std::string text;
  std::string step;
};

struct Build {
  enum class Status { Waiting, Building, Ready, Error };
  std::string id;
  BuildOrder order;
  sandbox::Caller caller;
  Status status = Status::Waiting;
  std::vector<BuildLine> lines;
  size_t text_bytes = 0;  // of the lines
  std::string reason;
  std::string failed_step;
  int64_t begun_at_ms = 0;

  void say(std::string level, std::string text, std::string step = {});
};

class Builds : public std::enable_shared_from_this<Builds> {
 public:
  // At most so many of a tenant at a time.
  static constexpr size_t kMost = 16;
  Result<std::shared_ptr<Build>> add(const sandbox::Caller& caller, BuildOrder order);
  // NotFound for somebody else's as for none.
  Result<std::shared_ptr<Build>> find(const sandbox::Caller& caller, const std::string& name,
                                      const std::string& id) const;
  // The newest of a template; null: none is known.
  std::shared_ptr<Build> newest(const sandbox::Caller& caller, const std::string& name) const;
  // Begins it; it goes on by itself.
  Task<Result<void>> start(Context& context, std::shared_ptr<Build> build, BuildPlan plan);

  // Where the files of a tenant's builds wait; made where there is none.
  Task<Result<sandbox::SandboxPtr>> store(Context& context);
  static std::string place_of(const std::string& files_hash);

 private:
  std::map<std::string, std::shared_ptr<Build>> builds_;
  std::map<std::string, std::string> stores_;  // tenant to sandbox
};

}  // namespace atl::api::e2b
