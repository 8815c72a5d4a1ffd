#include <gtest/gtest.h>

#include "base/log_line.h"

namespace atl {
namespace {

std::string line(LogFormat format, std::string_view message, std::vector<LogField> fields = {}) {
  return log_line(format, {.time = "T",
                           .level = LogLevel::Warning,
                           .component = "server",
                           .message = message,
                           .fields = fields});
}

TEST(LogLine, IsAJsonObject) {
  EXPECT_EQ(line(LogFormat::Json, "a \"b\"", {{"path", "/x\\y"}, {"n", ""}}),
            R"({"time":"T","level":"warning","component":"server","message":"a \"b\"",)"
            R"("path":"/x\\y","n":""})"
            "\n");
}

TEST(LogLine, IsTextThatPeopleRead) {
  EXPECT_EQ(line(LogFormat::Text, "it \"ended\"", {{"path", "/x"}, {"why", "a b"}, {"n", ""}}),
            "T warning server: it \"ended\" path=/x why=\"a b\" n=\"\"\n");
}

TEST(LogLine, CannotBeForged) {
  std::string value = "x\n{\"level\":\"error\"}\r\x1b[2J\x7f";
  value +=
      "\xC2\x9B"
      "\xE2\x80\xA8"
      "\xE2\x80\xAE"
      "\xff";
  EXPECT_EQ(line(LogFormat::Json, "m", {{"v", value}}),
            R"({"time":"T","level":"warning","component":"server","message":"m",)"
            R"("v":"x\n{\"level\":\"error\"}\u000d\u001b[2J\u007f\u009b\u2028\u202e)"
            "\xEF\xBF\xBD\"}\n");
  EXPECT_EQ(line(LogFormat::Text, "a\nT error server: b", {{"v", "1\n2 x=\"3\""}}),
            "T warning server: a\\nT error server: b v=\"1\\n2 x=\\\"3\\\"\"\n");
}

TEST(LogLine, KeepsLettersOfEveryLanguage) {
  EXPECT_EQ(line(LogFormat::Text, "grün 日本 🏝"), "T warning server: grün 日本 🏝\n");
}

TEST(LogLine, HidesFieldsThatHoldSecrets) {
  for (LogFormat format : {LogFormat::Json, LogFormat::Text}) {
    std::string shown = line(format, "sk-atoll-0123456789",
                             {{"authorization", "Basic dXNlcg"},
                              {"apiKey", "short"},
                              {"cookie", ""},
                              {"error", "bad rt-0123456789"}});
    for (const char* secret : {"0123456789", "dXNlcg", "short"}) {
      EXPECT_EQ(shown.find(secret), shown.npos) << shown;
    }
    EXPECT_NE(shown.find("bad [redacted]"), shown.npos) << shown;
  }
}

TEST(LogNames, AreReadBack) {
  EXPECT_EQ(log_level_from("warning"), LogLevel::Warning);
  EXPECT_EQ(log_level_from("loud"), std::nullopt);
  EXPECT_EQ(log_format_from("text"), LogFormat::Text);
  EXPECT_EQ(log_format_from("xml"), std::nullopt);
}

}  // namespace
}  // namespace atl
