// One build as it happens: a sandbox, the steps in it, a snapshot with the template's name.
#pragma once

#include "api/e2b/builds.h"

namespace atl::api::e2b {

class BuildRun : public std::enable_shared_from_this<BuildRun> {
 public:
  BuildRun(sandbox::Manager& manager, std::shared_ptr<Build> build, BuildPlan plan,
           sandbox::SandboxPtr files)
      : manager_(manager.shared_from_this()),
        build_(std::move(build)),
        plan_(std::move(plan)),
        files_(std::move(files)) {}

  // What can be said before it begins: that it begins with something that is there.
  Result<void> check(Context& context);
  Task<void> carry_out();

 private:
  Task<Result<void>> run_steps(SandboxSession& session);
  Task<Result<void>> run_command(SandboxSession& session, const BuildStep& step,
                                 const std::string& number);
  Task<Result<void>> copy_files(SandboxSession& session, const BuildStep& step);
  Task<Result<void>> keep(const sandbox::SandboxPtr& sandbox);
  void tell_output(const std::string& text, const std::string& level, const std::string& number);

  std::shared_ptr<sandbox::Manager> manager_;
  std::shared_ptr<Build> build_;
  BuildPlan plan_;
  sandbox::SandboxPtr files_;    // where what is copied waits; null: nothing was uploaded
  sandbox::SnapshotPtr origin_;  // null: a template
  sandbox::Spec spec_;
};

}  // namespace atl::api::e2b
