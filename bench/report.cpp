#include "report.h"

#include <stdio.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>

namespace atl::bench {
namespace {

enum class Bound { AtMost, AtLeast };

struct Goal {
  std::string_view key;
  Bound bound;
  double value;
  std::string_view meaning;
};

constexpr Goal kGoals[] = {
    {"exec_vs_fork", Bound::AtMost, 1.25, "exec over HTTP / fork+exec+wait in the sandbox"},
    {"exec_added_us", Bound::AtMost, 300, "the same, as a difference in us"},
    {"cold_vs_bwrap", Bound::AtMost, 0.8, "create+exec+delete without pool / bwrap run"},
    {"warm_create_ms", Bound::AtMost, 0.5, "create from the pool, ms"},
    {"run_vs_docker", Bound::AtLeast, 100, "docker run --rm / create+exec+delete"},
    {"exec_per_s_vs_fork", Bound::AtLeast, 0.7,
     "execs per second, 8 clients / 8 forking processes"},
    {"stream_mb_s", Bound::AtLeast, 1000, "1 GiB of output to the client, MB/s"},
    {"write_mb_s", Bound::AtLeast, 1000, "1 GiB file up, MB/s"},
    {"read_mb_s", Bound::AtLeast, 1000, "1 GiB file down, MB/s"},
    {"idle_kib", Bound::AtMost, 512, "an idle sandbox's private pages and slab, KiB"},
    {"live", Bound::AtLeast, 2000, "sandboxes alive at once, each answering"},
    {"get_per_s", Bound::AtLeast, 40000, "GET one sandbox, 64 connections, a second"},
    {"create_per_s", Bound::AtLeast, 300, "create+delete, 16 clients, a second"},
    {"burst100_ms", Bound::AtMost, 400, "100 creates at once until the last answers, ms"},
    {"exec_p99_loaded_vs_idle", Bound::AtMost, 5, "exec p99 beside three bombs / alone"},
    {"sse_clients", Bound::AtLeast, 5000, "listeners to events at once"},
    {"sse_client_kib", Bound::AtMost, 20, "server memory of one of them, KiB"},
    {"restart_ms", Bound::AtMost, 1000, "kill -9 of the server until 500 sandboxes answer, ms"},
    {"snapshot_ms", Bound::AtMost, 15, "snapshot, 100 changed files of 1 GiB, ms"},
    {"snapshot_growth", Bound::AtMost, 1.2, "the same of 10 GiB / of 1 GiB"},
    {"fork_ms", Bound::AtMost, 20, "fork until the copy answers an exec, ms"},
    {"fork100_ms", Bound::AtMost, 1500, "100 copies at once until all answer, ms"},
    {"restore_ms", Bound::AtMost, 30, "restore in place until an exec answers, ms"},
    {"mem_checkpoint_ms", Bound::AtMost, 150, "a process of 100 MiB stands still, ms"},
    {"mem_fork_ms", Bound::AtMost, 400, "the same until its copy runs on, ms"},
    {"template_hit_ms", Bound::AtMost, 5, "a template that was built of the same before, ms"},
    {"pause_ms", Bound::AtMost, 5, "pause in memory, ms"},
    {"resume_ms", Bound::AtMost, 5, "and go on, ms"},
    {"copy_vs_docker_commit", Bound::AtLeast, 20, "docker commit + run / snapshot + create + exec"},
    {"import_mb_s", Bound::AtLeast, 300, "rootfs tar import, MB/s"},
    {"leaks", Bound::AtMost, 0, "mounts, cgroups, namespaces, processes, files left"},
};

const Goal* goal_of(std::string_view key) {
  for (const Goal& goal : kGoals) {
    if (goal.key == key) return &goal;
  }
  return nullptr;
}

bool met(const Goal& goal, double value) {
  return goal.bound == Bound::AtMost ? value <= goal.value : value >= goal.value;
}

}  // namespace

void Report::set(std::string key, std::optional<double> value) {
  // Three digits after the point are more than any of this means.
  if (value) value = std::round(*value * 1000) / 1000;
  values_.emplace_back(std::move(key), value);
}

void Report::set_latency(const std::string& key, const Samples& samples) {
  set(key + "_p50_us", samples.percentile(0.50));
  set(key + "_p95_us", samples.percentile(0.95));
  set(key + "_p99_us", samples.percentile(0.99));
  set(key + "_samples", static_cast<double>(samples.size()));
}

bool Report::has(std::string_view key) const {
  for (const auto& [name, value] : values_) {
    if (name == key) return true;
  }
  return false;
}

std::optional<double> Report::get(std::string_view key) const {
  for (const auto& [name, value] : values_) {
    if (name == key) return value;
  }
  return std::nullopt;
}

void Report::print() const {
  printf("\n%-20s %12s  %-12s %-7s %s\n", "what", "value", "goal", "", "");
  for (const Goal& goal : kGoals) {
    if (!has(goal.key)) continue;
    std::optional<double> value = get(goal.key);
    char shown[32] = "-", wanted[32];
    if (value) snprintf(shown, sizeof shown, "%.4g", *value);
    snprintf(wanted, sizeof wanted, "%s %g", goal.bound == Bound::AtMost ? "<=" : ">=", goal.value);
    printf("%-20s %12s  %-12s %-7s %s\n", goal.key.data(), shown, wanted,
           !value              ? "no data"
           : met(goal, *value) ? "met"
                               : "MISSED",
           goal.meaning.data());
  }
  printf("\n");
  for (const auto& [name, value] : values_) {
    if (goal_of(name) != nullptr) continue;
    if (value) {
      printf("  %-36s %12.10g\n", name.c_str(), *value);
    } else {
      printf("  %-36s %12s\n", name.c_str(), "-");
    }
  }
  printf("\n");
  for (const std::string& text : notes_) printf("  note: %s\n", text.c_str());
}

Result<void> Report::write_json(const std::string& path) const {
  boost::json::object object;
  for (const auto& [name, value] : values_) {
    if (value) {
      object[name] = *value;
    } else {
      object[name] = nullptr;
    }
  }
  std::string notes;
  for (const std::string& text : notes_) notes += (notes.empty() ? "" : "; ") + text;
  object["notes"] = notes;
  std::string text = boost::json::serialize(object) + "\n";
  FILE* file = fopen(path.c_str(), "we");
  if (file == nullptr) return fail_errno("open", path);
  bool written = fwrite(text.data(), 1, text.size(), file) == text.size();
  if (fclose(file) != 0 || !written) return fail_errno("write", path);
  return {};
}

}  // namespace atl::bench
