#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "auth/audit_log.h"
#include "auth/audit_verify.h"
#include "auth/auth_test_support.h"

namespace atl::auth {

inline constexpr int64_t kNow = 1'767'323'045'678;

inline AuditEntry entry(std::string target) {
  return {.at_ms = kNow,
          .actor = "k",
          .tenant = "t",
          .action = "sandbox.create",
          .target = std::move(target),
          .outcome = "ok"};
}

class AuditLogTest : public testing::Test {
 protected:
  AuditLog open(AuditOptions options = {}) const {
    auto log = AuditLog::open(dir_ / "audit", kNow, options);
    if (!log) ADD_FAILURE() << log.error().message();
    return std::move(log).value();
  }
  Error refusal() const {
    auto log = AuditLog::open(dir_ / "audit", kNow);
    return log ? Error(ErrorCode::Internal, "accepted") : std::move(log).error();
  }
  AuditReport verify(const AuditAnchors& anchors = {}) const {
    return verify_audit_log(dir_ / "audit", anchors).value();
  }
  std::string file() const { return dir_ / "audit/audit.jsonl"; }

  TempDir dir_;
};

}  // namespace atl::auth
