#include "http/status.h"

#include <gtest/gtest.h>

namespace atl::http {
namespace {

TEST(Status, EveryCodeSurvivesTheTripToTheClient) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::Internal); i++) {
    auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_code_of(status_of(code), wire_code(code)), code) << to_string(code);
    Response response = error_response(Error(code, "said \"why\"").with_field("name"));
    EXPECT_EQ(response.status, status_of(code));
    Error back = error_from_response(response.status, response.body);
    EXPECT_EQ(back.code(), code);
    EXPECT_EQ(back.message(), "said \"why\"");
    EXPECT_EQ(back.field(), "name");
  }
}

TEST(Status, ErrorBodyHasTheShapeTheSdksRead) {
  EXPECT_EQ(error_response(Error(ErrorCode::NotFound, "no")).body,
            R"({"success":false,"error":{"code":"NOT_FOUND","message":"no"},)"
            R"("code":"NOT_FOUND","message":"no"})");
  EXPECT_EQ(error_response(Error(ErrorCode::InvalidArgument, "no").with_field("f")).body,
            R"({"success":false,"error":{"code":"VALIDATION_ERROR","message":"no","fields":["f"]},)"
            R"("code":"VALIDATION_ERROR","message":"no","fields":["f"]})");
}

TEST(Status, HowLongToWaitIsInTheHeaderAndTheBody) {
  Response response =
      error_response(Error(ErrorCode::ResourceExhausted, "slow down").with_retry_after(1001));
  EXPECT_EQ(response.status, 429);
  EXPECT_EQ(response.headers.get("Retry-After"), "2");
  EXPECT_EQ(error_from_response(429, response.body).retry_after_ms(), 1001u);
  Response other = error_response(Error(ErrorCode::ResourceExhausted, "full"));
  EXPECT_FALSE(other.headers.get("Retry-After"));
  EXPECT_EQ(error_from_response(429, other.body).retry_after_ms(), 0u);
}

TEST(Status, StatusAloneGivesTheCommonCode) {
  EXPECT_EQ(error_code_of(404, ""), ErrorCode::NotFound);
  EXPECT_EQ(error_code_of(409, "WHATEVER"), ErrorCode::Conflict);
  EXPECT_EQ(error_code_of(502, ""), ErrorCode::Unavailable);
  EXPECT_EQ(error_code_of(418, ""), ErrorCode::InvalidArgument);
}

TEST(Status, BodiesThatAreNotOursStillGiveAnError) {
  EXPECT_EQ(error_from_response(503, "<html>").code(), ErrorCode::Unavailable);
  EXPECT_EQ(error_from_response(500, "[1]").message(), "server answered 500");
}

}  // namespace
}  // namespace atl::http
