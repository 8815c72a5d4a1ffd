#include "base/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <charconv>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

namespace atl {
namespace {

using ::testing::HasSubstr;

// Reads the format back, strictly, after the grammar of exposition format 0.0.4.
class Exposition {
 public:
  explicit Exposition(const std::string& text) {
    EXPECT_TRUE(text.empty() || text.ends_with('\n'));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) take_line(line);
  }

  // By name and labels as `name{a=1,b=2}`, values unescaped and labels sorted.
  std::optional<double> operator[](const std::string& sample) const {
    auto found = samples_.find(sample);
    return found == samples_.end() ? std::nullopt : std::optional(found->second);
  }
  size_t size() const { return samples_.size(); }
  const std::map<std::string, std::string>& types() const { return types_; }

 private:
  void take_line(const std::string& line) {
    ASSERT_FALSE(line.empty());
    if (line.starts_with("# HELP ")) return;
    if (line.starts_with("# TYPE ")) {
      std::istringstream words(line.substr(7));
      std::string name;
      std::string type;
      words >> name >> type;
      EXPECT_TRUE(types_.emplace(name, type).second) << "two types: " << line;
      return;
    }
    ASSERT_NE(line[0], '#') << line;
    take_sample(line);
  }

  void take_sample(const std::string& line) {
    size_t at = line.find_first_of("{ ");
    ASSERT_NE(at, line.npos) << line;
    std::string name = line.substr(0, at);
    EXPECT_TRUE(types_.contains(family_of(name))) << "no type before: " << line;
    std::map<std::string, std::string> labels;
    if (line[at] == '{') ASSERT_TRUE(take_labels(line, at, labels)) << line;
    ASSERT_EQ(line[at], ' ') << line;
    double value = 0;
    const char* begin = line.data() + at + 1;
    if (*begin == '+') begin++;
    auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
    EXPECT_TRUE(error == std::errc() && end == line.data() + line.size()) << line;
    std::string key = name;
    for (const auto& [label, text] : labels) {
      key += (key == name ? "{" : ",") + label + "=" + text;
    }
    if (!labels.empty()) key += "}";
    EXPECT_TRUE(samples_.emplace(key, value).second) << "twice: " << line;
  }

  static bool take_labels(const std::string& line, size_t& at,
                          std::map<std::string, std::string>& labels) {
    do {
      size_t equals = line.find('=', ++at);
      if (equals == line.npos || line[equals + 1] != '"') return false;
      std::string value;
      size_t i = equals + 2;
      for (; i < line.size() && line[i] != '"'; i++) {
        if (line[i] != '\\') {
          value += line[i];
          continue;
        }
        char escaped = line[++i];
        if (escaped != 'n' && escaped != '\\' && escaped != '"') return false;
        value += escaped == 'n' ? '\n' : escaped;
      }
      if (!labels.emplace(line.substr(at, equals - at), value).second) return false;
      at = i + 1;
    } while (at < line.size() && line[at] == ',');
    return at < line.size() && line[at++] == '}';
  }

  std::string family_of(const std::string& name) const {
    for (const char* suffix : {"_bucket", "_sum", "_count"}) {
      std::string ending = suffix;
      if (!name.ends_with(ending)) continue;
      std::string family = name.substr(0, name.size() - ending.size());
      auto type = types_.find(family);
      if (type != types_.end() && type->second == "histogram") return family;
    }
    return name;
  }

  std::map<std::string, std::string> types_;
  std::map<std::string, double> samples_;
};

TEST(Metrics, CountersGaugesAndCallbacksAreRendered) {
  MetricsRegistry registry;
  registry.counter("b_total", "Things done.", {{"kind", "x"}}).add(3);
  registry.gauge("a_now", "Things there.").set(-2);
  registry.gauge("c_ratio", "Asked.", {}, [] { return 0.25; });
  EXPECT_EQ(registry.render(),
            "# HELP a_now Things there.\n# TYPE a_now gauge\na_now -2\n"
            "# HELP b_total Things done.\n# TYPE b_total counter\nb_total{kind=\"x\"} 3\n"
            "# HELP c_ratio Asked.\n# TYPE c_ratio gauge\nc_ratio 0.25\n");
}

TEST(Metrics, SameNameAndLabelsAreTheSameMetric) {
  MetricsRegistry registry;
  Counter& one = registry.counter("n_total", "N.", {{"a", "1"}, {"b", "2"}});
  Counter& same = registry.counter("n_total", "N.", {{"b", "2"}, {"a", "1"}});
  Counter& other = registry.counter("n_total", "N.", {{"a", "1"}, {"b", "3"}});
  EXPECT_EQ(&one, &same);
  EXPECT_NE(&one, &other);
}

TEST(Metrics, AnyLabelValueSurvivesTheFormat) {
  MetricsRegistry registry;
  std::string nasty = "a\"b\\c\nd}e,f=g é";
  registry.counter("n_total", "Back\\slash\nand line.", {{"path", nasty}}).add();
  registry.counter("n_total", "", {{"path", ""}}).add(2);
  std::string text = registry.render();
  EXPECT_THAT(text, HasSubstr("# HELP n_total Back\\\\slash\\nand line.\n"));
  Exposition read(text);
  EXPECT_EQ(read["n_total{path=" + nasty + "}"], 1);
  EXPECT_EQ(read["n_total{path=}"], 2);
}

TEST(Metrics, HistogramBucketsAreCumulativeAndEndWithAll) {
  MetricsRegistry registry;
  Histogram& histogram = registry.histogram("t_seconds", "T.", {0.1, 1}, {{"route", "/x"}});
  for (double value : {0.05, 0.1, 0.5, 7.0}) histogram.observe(value);
  registry.histogram("t_seconds", "T.", {9}, {{"route", "/"}});
  Exposition read(registry.render());
  EXPECT_EQ(read["t_seconds_bucket{le=0.1,route=/x}"], 2);
  EXPECT_EQ(read["t_seconds_bucket{le=1,route=/x}"], 3);
  EXPECT_EQ(read["t_seconds_bucket{le=+Inf,route=/x}"], 4);
  EXPECT_EQ(read["t_seconds_count{route=/x}"], 4);
  EXPECT_DOUBLE_EQ(*read["t_seconds_sum{route=/x}"], 7.65);
  EXPECT_EQ(read["t_seconds_bucket{le=0.1,route=/}"], 0);
  EXPECT_EQ(read.types().at("t_seconds"), "histogram");
  EXPECT_EQ(read.size(), 10u);
}

TEST(Metrics, NumbersAreExactAndInfinityHasItsName) {
  MetricsRegistry registry;
  registry.counter("big_total", "").add(9'007'199'254'740'993);
  registry.gauge("up", "", {}, [] { return 1.0 / 0.0; });
  registry.gauge("small", "", {}, [] { return 1e-9; });
  std::string text = registry.render();
  EXPECT_THAT(text, HasSubstr("\nbig_total 9007199254740993\n"));
  EXPECT_THAT(text, HasSubstr("\nup +Inf\n"));
  EXPECT_EQ(Exposition(text)["small"], 1e-9);
}

TEST(Metrics, ManyThreadsLoseNoCount) {
  MetricsRegistry registry;
  Counter& counter = registry.counter("n_total", "");
  Histogram& histogram = registry.histogram("h", "", {1, 2});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; i++) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; n++) {
        counter.add();
        histogram.observe(1.5);
      }
    });
  }
  for (int i = 0; i < 10; i++) Exposition(registry.render());
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter.value(), 40'000u);
  EXPECT_EQ(histogram.count(), 40'000u);
  EXPECT_EQ(histogram.sum(), 60'000);
}

TEST(MetricsDeathTest, NamesTheFormatDoesNotAllowAbort) {
  MetricsRegistry registry;
  EXPECT_DEATH(registry.counter("9lives", ""), "bad metric");
  EXPECT_DEATH(registry.counter("a-b", ""), "bad metric");
  EXPECT_DEATH(registry.counter("a", "", {{"le", "1"}}), "bad metric");
  EXPECT_DEATH(registry.counter("a", "", {{"__x", "1"}}), "bad metric");
  EXPECT_DEATH(registry.histogram("h", "", {2, 1}), "bad metric");
  registry.counter("twice", "");
  EXPECT_DEATH(registry.gauge("twice", ""), "bad metric");
}

}  // namespace
}  // namespace atl
