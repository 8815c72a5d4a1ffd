#include "cli/table.h"

#include <gtest/gtest.h>

#include "cli/progress.h"

namespace atl::cli {
namespace {

Table sample() {
  Table table({{"NAME", Column::Kind::Elastic}, {"SIZE", Column::Kind::Right}, {"NOTE"}});
  table.add({Cell("a"), Cell("1"), Cell("short", Colour::Green)});
  table.add({Cell("a-rather-long-name"), Cell("1000"), Cell("x")});
  return table;
}

TEST(Table, ColumnsAreAsWideAsTheirContent) {
  EXPECT_EQ(sample().render({}),
            "NAME                SIZE  NOTE\n"
            "a                      1  short\n"
            "a-rather-long-name  1000  x\n");
}

TEST(Table, TheElasticColumnGivesWayOnANarrowTerminal) {
  EXPECT_EQ(sample().render({24, false}),
            "NAME         SIZE  NOTE\n"
            "a               1  short\n"
            "a-rather-l…  1000  x\n");
}

TEST(Table, AnElasticColumnKeepsItsLeast) {
  std::string text = sample().render({5, false});
  EXPECT_NE(text.find("a-rathe…"), std::string::npos) << text;
}

TEST(Table, ColoursDoNotDisturbTheLayout) {
  std::string text = sample().render({0, true});
  EXPECT_NE(text.find("\x1b[32mshort\x1b[0m"), std::string::npos);
  EXPECT_NE(text.find("\x1b[1mNAME              \x1b[0m"), std::string::npos) << text;
}

TEST(DisplayWidth, CountsColumnsNotBytes) {
  EXPECT_EQ(display_width("abc"), 3u);
  EXPECT_EQ(display_width("häß"), 3u);
  EXPECT_EQ(display_width("日本"), 4u);
  EXPECT_EQ(display_width("e\u0301"), 1u);
  EXPECT_EQ(fit("日本語", 4), "日…");
  EXPECT_EQ(display_width("\xff\xc3"), 2u);
}

TEST(Printable, ASandboxCannotDriveTheTerminal) {
  EXPECT_EQ(printable("a\x1b[31mb\x07"), "a?[31mb?");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("x\u009bJ"), "x?J");
  EXPECT_EQ(printable("grün"), "grün");
}

TEST(ProgressLine, ShowsShareAndRate) {
  EXPECT_EQ(progress_line("f", 512 << 10, 1 << 20, 1.0, 100),
            "f  [############------------]  50%     512 KiB of 1 MiB     512 KiB/s");
  EXPECT_EQ(progress_line("a-rather-long-name", 512 << 10, 1 << 20, 1.0, 66),
            "a-rather-lo…  [####-----]  50%     512 KiB of 1 MiB     512 KiB/s");
  EXPECT_EQ(progress_line("a-rather-long-name", 512 << 10, 1 << 20, 1.0, 40),
            "a-rather-…  [###---]  50%     512 KiB/s");
  EXPECT_EQ(progress_line("a-rather-long-name", 512 << 10, 1 << 20, 1.0, 30),
            "a-ra…   50%     512 KiB/s");
  EXPECT_EQ(progress_line("f", 1024, std::nullopt, 2.0, 100), "f       1 KiB       512 B/s");
  for (size_t width = 1; width < 120; width++) {
    EXPECT_LE(display_width(progress_line("a-long-file-name", 1, 2 << 30, 1, width)), width);
  }
}

}  // namespace
}  // namespace atl::cli
