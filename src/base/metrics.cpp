#include "base/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/log.h"

namespace atl {
namespace {

bool is_name(std::string_view text, bool colon_allowed) {
  auto letter = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           (colon_allowed && c == ':');
  };
  auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || digit(c); });
}

void append_escaped(std::string& out, std::string_view text, bool quoted) {
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '"' && quoted) {
      out += "\\\"";
    } else {
      out += c;
    }
  }
}

std::string number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  auto end = std::to_chars(text, text + sizeof(text), value).ptr;
  return std::string(text, end);
}

// `{a="1",b="2"` without the end, so that a bucket can add its bound; empty without labels.
std::string open_labels(const MetricsRegistry::Labels& labels) {
  std::string out;
  for (const auto& [name, value] : labels) {
    out.append(out.empty() ? "{" : ",").append(name).append("=\"");
    append_escaped(out, value, true);
    out += '"';
  }
  return out;
}

void append_sample(std::string& out, std::string_view name, const std::string& labels,
                   const std::string& value) {
  out.append(name).append(labels);
  if (!labels.empty()) out += '}';
  out.append(" ").append(value).append("\n");
}

void append_histogram(std::string& out, const std::string& name, const std::string& labels,
                      const Histogram& histogram) {
  std::string prefix = labels.empty() ? "{le=\"" : labels + ",le=\"";
  uint64_t below = 0;
  for (size_t i = 0; i <= histogram.bounds().size(); i++) {
    below += histogram.bucket(i);
    std::string bound = i < histogram.bounds().size() ? number(histogram.bounds()[i]) : "+Inf";
    append_sample(out, name + "_bucket", prefix + bound + '"', std::to_string(below));
  }
  append_sample(out, name + "_sum", labels, number(histogram.sum()));
  append_sample(out, name + "_count", labels, std::to_string(below));
}

[[noreturn]] void refuse(std::string_view name, std::string_view why) {
  log(LogLevel::Error, "bad metric", {{"name", std::string(name)}, {"why", std::string(why)}});
  std::abort();
}

void check_labels(std::string_view name, const MetricsRegistry::Labels& labels) {
  for (const auto& [label, value] : labels) {
    if (!is_name(label, false) || label.starts_with("__") || label == "le") {
      refuse(name, "label name");
    }
  }
}

}  // namespace

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)),
      counts_(std::make_unique<std::atomic<uint64_t>[]>(bounds_.size() + 1)) {}

void Histogram::observe(double value) {
  if (std::isnan(value)) return;  // the sum would never be a number again
  auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), value);
  counts_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

uint64_t Histogram::count() const {
  uint64_t all = 0;
  for (size_t i = 0; i <= bounds_.size(); i++) all += bucket(i);
  return all;
}

std::vector<double> latency_seconds_bounds() {
  return {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
          0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
}

struct MetricsRegistry::Series {
  Counter counter;
  Gauge gauge;
  std::function<double()> read;  // instead of the gauge
  std::unique_ptr<Histogram> histogram;
};

struct MetricsRegistry::Family {
  Kind kind;
  std::string help;
  std::map<std::string, std::unique_ptr<Series>> series;  // by their labels' text
  std::vector<double> bounds;                             // of histograms
};

MetricsRegistry::MetricsRegistry() = default;
MetricsRegistry::~MetricsRegistry() = default;

MetricsRegistry::Series& MetricsRegistry::series(Kind kind, std::string_view name,
                                                 std::string_view help, Labels labels) {
  if (!is_name(name, true)) refuse(name, "name");
  check_labels(name, labels);
  std::sort(labels.begin(), labels.end());
  auto& family = families_[std::string(name)];
  if (!family) family = std::make_unique<Family>(Family{kind, std::string(help), {}, {}});
  if (family->kind != kind) refuse(name, "it is of another kind already");
  auto& series = family->series[open_labels(labels)];
  if (!series) series = std::make_unique<Series>();
  return *series;
}

Counter& MetricsRegistry::counter(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(mutex_);
  return series(Kind::Counter, name, help, std::move(labels)).counter;
}

Gauge& MetricsRegistry::gauge(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(mutex_);
  return series(Kind::Gauge, name, help, std::move(labels)).gauge;
}

void MetricsRegistry::gauge(std::string_view name, std::string_view help, Labels labels,
                            std::function<double()> read) {
  std::lock_guard lock(mutex_);
  series(Kind::Gauge, name, help, std::move(labels)).read = std::move(read);
}

Histogram& MetricsRegistry::histogram(std::string_view name, std::string_view help,
                                      std::vector<double> bounds, Labels labels) {
  auto disorder = std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>());
  if (bounds.empty() || disorder != bounds.end()) refuse(name, "bounds");
  std::lock_guard lock(mutex_);
  Series& found = series(Kind::Histogram, name, help, std::move(labels));
  Family& family = *families_.find(name)->second;
  if (family.bounds.empty()) family.bounds = std::move(bounds);
  if (!found.histogram) found.histogram = std::make_unique<Histogram>(family.bounds);
  return *found.histogram;
}

std::string MetricsRegistry::render() const {
  constexpr std::string_view kKinds[] = {"counter", "gauge", "histogram"};
  std::lock_guard lock(mutex_);
  std::string out;
  for (const auto& [name, family] : families_) {
    out.append("# HELP ").append(name).append(" ");
    append_escaped(out, family->help, false);
    out.append("\n# TYPE ").append(name).append(" ");
    out.append(kKinds[static_cast<size_t>(family->kind)]).append("\n");
    for (const auto& [labels, series] : family->series) {
      if (family->kind == Kind::Histogram) {
        append_histogram(out, name, labels, *series->histogram);
      } else if (family->kind == Kind::Counter) {
        append_sample(out, name, labels, std::to_string(series->counter.value()));
      } else {
        append_sample(
            out, name, labels,
            series->read ? number(series->read()) : std::to_string(series->gauge.value()));
      }
    }
  }
  return out;
}

}  // namespace atl
