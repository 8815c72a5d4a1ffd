#include "cli/report.h"

#include <errno.h>
#include <gtest/gtest.h>

#include "cli/doctor.h"

namespace atl::cli {
namespace {

constexpr std::string_view kUrl = "unix:/run/atoll/atoll.sock";

TEST(Explain, AMissingServerIsToldHowToStart) {
  for (int error : {ENOENT, ECONNREFUSED}) {
    EXPECT_EQ(explain(Error::from_errno(error, "connect", "/run/atoll/atoll.sock"), kUrl),
              "no server at unix:/run/atoll/atoll.sock (start one with 'sudo atoll serve' or "
              "'./dev run', or set ATOLL_URL)");
  }
}

TEST(Explain, AForbiddenSocketIsToldAboutSudoAndTheGroup) {
  EXPECT_EQ(explain(Error::from_errno(EACCES, "connect", "/run/atoll/atoll.sock"), kUrl),
            "no permission to use unix:/run/atoll/atoll.sock (use sudo, or join the group: sudo "
            "usermod -aG atoll $USER)");
}

TEST(Explain, TheServersWordsComeWithAdvice) {
  EXPECT_EQ(explain(Error(ErrorCode::NotFound, "no sandbox 'web'"), kUrl),
            "no sandbox 'web' ('atoll ls' lists the sandboxes)");
  EXPECT_EQ(explain(Error(ErrorCode::InvalidArgument, "too small").with_field("resources.memoryMB"),
                    kUrl),
            "--memory: too small");
}

TEST(Explain, TheServersOwnAdviceIsTakenOver) {
  EXPECT_EQ(explain(Error(ErrorCode::Conflict, "the name is in use; choose another"), kUrl),
            "the name is in use (choose another)");
  EXPECT_EQ(
      explain(Error(ErrorCode::InvalidState, "the sandbox is paused; unpause it first"), kUrl),
      "the sandbox is paused ('atoll unpause' lets it go on)");
  EXPECT_EQ(explain(Error(ErrorCode::Conflict, "x has files in it; ask for recursive"), kUrl),
            "x has files in it (use -r)");
  EXPECT_EQ(explain(Error(ErrorCode::NotFound, "no sandbox 'x'; list them"), kUrl),
            "no sandbox 'x' ('atoll ls' lists the sandboxes)");
}

TEST(Explain, ALocalFilesErrorStandsForItself) {
  EXPECT_EQ(explain(Error::from_errno(ENOENT, "open", "/nonexistent"), kUrl),
            "open /nonexistent: No such file or directory");
}

TEST(StartExitCode, IsWhatAShellWouldGive) {
  EXPECT_EQ(start_exit_code(Error(ErrorCode::NotFound, "x").with_field("command")), 127);
  EXPECT_EQ(start_exit_code(Error(ErrorCode::PermissionDenied, "x").with_field("command")), 126);
  EXPECT_EQ(start_exit_code(Error(ErrorCode::NotFound, "no sandbox")), 125);
}

TEST(IndentJson, LeavesStringsAlone) {
  EXPECT_EQ(indent_json(R"({"a":[1,{"b":"x{,\"}"}],"c":{},"d":[]})"),
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x{,\\\"}\"\n    }\n  ],\n"
            "  \"c\": {},\n  \"d\": []\n}");
}

TEST(KernelAtLeast, ComparesNumbers) {
  EXPECT_TRUE(kernel_at_least("6.1.0-13-amd64", 5, 19));
  EXPECT_TRUE(kernel_at_least("5.19.0", 5, 19));
  EXPECT_FALSE(kernel_at_least("5.4.0", 5, 19));
  EXPECT_FALSE(kernel_at_least("unknown", 5, 19));
}

}  // namespace
}  // namespace atl::cli
