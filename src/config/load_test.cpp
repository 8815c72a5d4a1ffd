#include "config/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace atl::config {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ConfigTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atoll-config-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    inputs_.file = dir_ + "/config.toml";
    inputs_.environment = [this](const char* key) {
      auto found = environment_.find(key);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
    write("");
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void write(std::string_view text) { std::ofstream(inputs_.file) << text; }

  Loaded loaded() {
    auto result = load(inputs_);
    EXPECT_TRUE(result) << result.error().message();
    return result ? std::move(*result) : Loaded();
  }
  // The message without the directory, which differs each time.
  std::string refusal() {
    auto result = load(inputs_);
    if (result) return "accepted";
    std::string message = result.error().message();
    size_t at = message.find(dir_ + "/");
    return at == message.npos ? message : message.erase(at, dir_.size() + 1);
  }
  std::string refusal_of(std::string_view text) {
    write(text);
    return refusal();
  }

  std::string dir_;
  Inputs inputs_;
  std::map<std::string, std::string> environment_;
};

const Value& value_of(const Loaded& loaded, std::string_view key) {
  for (const Value& value : loaded.values) {
    if (value.setting->key == key) return value;
  }
  throw std::logic_error("no such setting");
}

TEST(Settings, HaveDefaultsThatTheyAccept) {
  for (const Setting& setting : all_settings()) {
    EXPECT_TRUE(check(setting, setting.fallback)) << setting.key;
  }
  Config config = default_config();
  EXPECT_EQ(config.data_dir, "/var/lib/atoll");
  EXPECT_EQ(config.listen, "127.0.0.1:7777");
  EXPECT_EQ(config.default_limits.memory_bytes, uint64_t{2} << 30);
  EXPECT_EQ(config.default_limits.pids, 1024u);
  EXPECT_EQ(config.lifetimes.idle_s, 0u);
  EXPECT_EQ(config.events_keep_hours, 24u);
  EXPECT_TRUE(config.audit);
}

TEST(Settings, AreNamedAlikeEverywhere) {
  const Setting* setting = find_setting("limits.default.cpu");
  ASSERT_NE(setting, nullptr);
  EXPECT_EQ(flag_of(*setting), "--limits-default-cpu");
  EXPECT_EQ(environment_of(*setting), "ATOLL_LIMITS_DEFAULT_CPU");
  EXPECT_EQ(value_name(*find_setting("on_exit")), "keep|stop");
  EXPECT_EQ(find_setting("limits"), nullptr);
}

TEST(Settings, AreAllInTheDocumentation) {
  std::ifstream file(ATOLL_SOURCE_DIR "/docs/configuration.md");
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(text, HasSubstr(settings_markdown()))
      << "put this table into docs/configuration.md:\n"
      << settings_markdown();
}

TEST_F(ConfigTest, AFlagWinsOverTheEnvironmentOverTheFileOverTheDefault) {
  write("pool = 1\nreserve = 1\ncgroup = \"file\"\n");
  environment_ = {{"ATOLL_POOL", "2"}, {"ATOLL_RESERVE", "2"}, {"ATOLL_USER", ""}};
  inputs_.flags = {{"pool", "3"}};
  Loaded result = loaded();
  EXPECT_EQ(result.config.pool, 3u);
  EXPECT_EQ(result.config.reserve, 2u);
  EXPECT_EQ(result.config.cgroup, "file");
  EXPECT_EQ(result.config.user, "atoll") << "an empty variable is none";
  EXPECT_EQ(value_of(result, "pool").origin, "--pool");
  EXPECT_EQ(value_of(result, "reserve").origin, "ATOLL_RESERVE");
  EXPECT_EQ(value_of(result, "cgroup").origin, inputs_.file + ":3");
  EXPECT_EQ(value_of(result, "user").source, Source::Default);
}

TEST_F(ConfigTest, ReadsEveryKindOfValue) {
  write(R"(
listen = "0.0.0.0:443"
public_url = "https://box.example.com/"
[tls]
certificate = "/etc/c.pem"
key = "/etc/k.pem"
[limits]
rate_per_second = 50
default = { cpu = 1.5, memory = "512m", disk = 0, pids = 64 }
[lifetimes]
max = "1h30m"
idle = 0
delete_after_stop = "never"
[audit]
enabled = false
)");
  Config config = loaded().config;
  EXPECT_EQ(config.listen, "0.0.0.0:443");
  EXPECT_EQ(config.public_url, "https://box.example.com");
  EXPECT_EQ(config.tls.key, "/etc/k.pem");
  EXPECT_EQ(config.rate_per_second, 50u);
  EXPECT_EQ(config.default_limits,
            (Limits{.memory_bytes = 512u << 20, .cpu_millis = 1500, .pids = 64, .disk_bytes = 0}));
  EXPECT_EQ(config.lifetimes.max_s, 5400u);
  EXPECT_EQ(config.lifetimes.idle_s, 0u);
  EXPECT_FALSE(config.audit);
}

TEST_F(ConfigTest, RefusesWhatItDoesNotKnowWithFileAndLine) {
  EXPECT_EQ(refusal_of("\npoool = 4\n"), "config.toml:2: there is no setting 'poool'");
  EXPECT_EQ(refusal_of("[limits]\n[limits.x]\ny = 1\n"),
            "config.toml:3: there is no setting 'limits.x.y'");
  EXPECT_EQ(refusal_of("[nothing]\n"), "config.toml:1: there is no setting 'nothing'");
  EXPECT_EQ(refusal_of("[pool]\nsize = 1\n"), "config.toml:2: there is no setting 'pool.size'");
}

TEST_F(ConfigTest, RefusesValuesOfTheWrongType) {
  EXPECT_EQ(refusal_of("pool = \"4\"\n"), "config.toml:1: pool wants a whole number");
  EXPECT_EQ(refusal_of("pool = 4.0\n"), "config.toml:1: pool wants a whole number");
  EXPECT_EQ(refusal_of("listen = 7777\n"), "config.toml:1: listen wants a text in quotes");
  EXPECT_EQ(refusal_of("listen = [\"a:1\"]\n"), "config.toml:1: listen wants a text in quotes");
  EXPECT_THAT(refusal_of("audit.enabled = \"yes\"\n"), HasSubstr("audit.enabled wants true or"));
  EXPECT_THAT(refusal_of("limits.default.memory = 512\n"), HasSubstr("wants a size in quotes"));
  EXPECT_THAT(refusal_of("[pool]\n"), HasSubstr(":1: pool wants a whole number"));
}

TEST_F(ConfigTest, RefusesBadValues) {
  EXPECT_EQ(refusal_of("a = 1\npool = -1\n"), "config.toml:1: there is no setting 'a'");
  EXPECT_EQ(refusal_of("pool = -1\n"), "config.toml:1: pool: '-1' is not a whole number");
  EXPECT_EQ(refusal_of("on_exit = \"later\"\n"),
            "config.toml:1: on_exit: 'later' is not one of keep, stop");
  EXPECT_THAT(refusal_of("data_dir = \"data\"\n"), HasSubstr("not an absolute path"));
  EXPECT_THAT(refusal_of("cgroup = \"a/b\"\n"), HasSubstr("cgroup: 'a/b' is not a name"));
  for (const char* bad : {"7777", "a:", ":1", "a:65536", "a:1x", "a:-1"}) {
    EXPECT_THAT(refusal_of("listen = \"" + std::string(bad) + "\""), HasSubstr("ADDRESS:PORT"));
  }
  for (const char* bad : {"box.example.com", "ftp://x", "https://", "https:///x", "http://a b"}) {
    EXPECT_THAT(refusal_of("public_url = \"" + std::string(bad) + "\""), HasSubstr("a URL such"));
  }
  EXPECT_THAT(refusal_of("lifetimes.max = \"1.5s\""), HasSubstr("whole seconds"));
  EXPECT_THAT(refusal_of("lifetimes.max = \"200000d\""), HasSubstr("whole seconds"));
  EXPECT_THAT(refusal_of("limits.default.cpu = nan"), HasSubstr("cores"));
}

TEST_F(ConfigTest, RefusesWhatIsNotToml) {
  EXPECT_THAT(refusal_of("pool = 1\npool = 2\n"), HasSubstr("config.toml:2: "));
  EXPECT_THAT(refusal_of("pool =\n"), HasSubstr("config.toml:1: "));
  EXPECT_THAT(refusal_of(std::string_view("\0\xff", 2)), HasSubstr("config.toml:1: "));
}

TEST_F(ConfigTest, NamesTheVariableOrTheFlagAtFault) {
  environment_ = {{"ATOLL_ON_EXIT", "x"}};
  EXPECT_EQ(refusal(), "ATOLL_ON_EXIT: 'x' is not one of keep, stop");
  environment_.clear();
  inputs_.flags = {{"listen", "x"}};
  EXPECT_EQ(refusal(), "--listen: 'x' is not ADDRESS:PORT or none");
  inputs_.flags = {{"data_dir", "here"}};
  EXPECT_EQ(loaded().config.data_dir, std::filesystem::current_path() / "here")
      << "a flag is typed in a directory";
}

TEST_F(ConfigTest, ACertificateNeedsItsKey) {
  EXPECT_EQ(refusal_of("pool = 1\ntls.key = \"/k\"\n"),
            "config.toml:2: tls.certificate and tls.key need each other");
  environment_ = {{"ATOLL_TLS_CERTIFICATE", "/c"}};
  EXPECT_EQ(refusal(), "accepted");
  write("");
  EXPECT_THAT(refusal(), HasSubstr("ATOLL_TLS_CERTIFICATE: tls.cert"));
}

TEST_F(ConfigTest, AGivenFileMustExist) {
  inputs_.file = dir_ + "/other.toml";
  EXPECT_EQ(refusal(), "open other.toml: No such file or directory");
  inputs_.file = dir_;
  EXPECT_THAT(refusal(), HasSubstr("Is a directory"));
}

TEST_F(ConfigTest, CheckingAFileFindsAllProblems) {
  write("a = 1\npool = 2\n[limits]\nb = 1\n");
  EXPECT_THAT(problems_of_file(inputs_.file), ElementsAre(HasSubstr("'a'"), HasSubstr("limits.b")));
  write("pool = 2\n");
  EXPECT_THAT(problems_of_file(inputs_.file), IsEmpty());
}

}  // namespace
}  // namespace atl::config
