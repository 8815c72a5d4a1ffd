#include "cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/completion.h"

namespace atl::cli {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CutTest : public ::testing::Test {
 protected:
  CutCommandLine cut(const std::vector<std::string>& words) {
    return cut_command_line(root_, words);
  }
  std::vector<std::string> words_for(const std::vector<std::string>& words) {
    return complete(root_, words).words;
  }
  Command root_ = all_commands();
};

TEST_F(CutTest, AllAfterTheDashesIsTheCommandsOwn) {
  auto found = cut({"exec", "-it", "web", "--", "sh", "-c", "--help", "--"});
  EXPECT_EQ(found.path.back()->name, "exec");
  EXPECT_THAT(found.words, ElementsAre("exec", "-it", "web"));
  EXPECT_THAT(found.rest, ElementsAre("sh", "-c", "--help", "--"));
}

TEST_F(CutTest, WithoutDashesItBeginsAfterTheLastArgument) {
  EXPECT_THAT(cut({"exec", "web", "ls", "-la", ""}).rest, ElementsAre("ls", "-la", ""));
  EXPECT_THAT(cut({"run", "-e", "A=1", "--timeout=3s", "env", "-i"}).rest,
              ElementsAre("env", "-i"));
  EXPECT_THAT(cut({"run", "-ite", "A=1", "env"}).rest, ElementsAre("env"));
}

TEST_F(CutTest, AnOptionsValueIsNoArgument) {
  auto found = cut({"exec", "--user", "root", "web", "id"});
  EXPECT_THAT(found.rest, ElementsAre("id"));
  EXPECT_EQ(found.arguments, 1u);
}

TEST_F(CutTest, AMistypedVerbIsRecognized) {
  EXPECT_EQ(similar_command(root_, "creat")->name, "create");
  EXPECT_EQ(similar_command(root_, "inpsect")->name, "inspect");
  EXPECT_EQ(similar_command(root_, "lss")->name, "ls");
  EXPECT_EQ(similar_command(root_, "frobnicate"), nullptr);
}

TEST_F(CutTest, AnUnknownVerbIsNamed) { EXPECT_EQ(cut({"frob", "x"}).unknown, "frob"); }

TEST_F(CutTest, CompletesVerbsOptionsAndChoices) {
  EXPECT_THAT(words_for({"in"}), ElementsAre("inspect"));
  EXPECT_THAT(words_for({"files", "m"}), ElementsAre("mkdir", "mv"));
  EXPECT_THAT(words_for({"create", "--mem"}), ElementsAre("--memory"));
  EXPECT_THAT(words_for({"create", "--profile", "s"}), ElementsAre("strict"));
  EXPECT_THAT(words_for({"create", "--profile=s"}), ElementsAre("--profile=strict"));
  EXPECT_THAT(words_for({"completion", "z"}), ElementsAre("zsh"));
  EXPECT_THAT(words_for({"completion", "zsh", ""}), IsEmpty());
  EXPECT_THAT(words_for({"run", "--", "l"}), IsEmpty());
  EXPECT_THAT(words_for({""}), Contains("exec"));
}

TEST_F(CutTest, CompletesLocalFilesOnlyWhereTheyFit) {
  EXPECT_TRUE(complete(root_, {"template", "import", ""}).files);
  EXPECT_TRUE(complete(root_, {"template", "import", "a.tar", "--data-dir", "/v"}).files);
  EXPECT_TRUE(complete(root_, {"serve", "--data-dir=/v"}).files);
  EXPECT_TRUE(complete(root_, {"cp", "./a"}).files);
  EXPECT_FALSE(complete(root_, {"create", "--name", ""}).files);
  EXPECT_FALSE(complete(root_, {"run", "--", ""}).files);
  EXPECT_FALSE(complete(root_, {"template", "import", "a.tar", ""}).files);
}

TEST_F(CutTest, EveryVerbExplainsItself) {
  for (const Command& command : root_.commands) {
    std::string text = help_text(root_, {&root_, &command});
    EXPECT_NE(text.find(command.summary), std::string::npos);
    EXPECT_NE(text.find("Usage: atoll " + command.name), std::string::npos);
    EXPECT_TRUE(!command.examples.empty() || command.name == "version") << command.name;
  }
}

}  // namespace
}  // namespace atl::cli
