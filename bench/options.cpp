#include "options.h"

#include <algorithm>

#include <charconv>
#include <filesystem>
#include <sstream>

namespace atl::bench {
namespace {

constexpr const char* kUsage =
    "usage: atoll_bench_core [OPTION...]\n"
    "  --json FILE       write the results there\n"
    "  --rounds N        rounds of each latency variant (200)\n"
    "  --quick           few rounds, 50 sandboxes, 1 repetition in place of 5\n"
    "  --only LIST       core: latency,throughput,scale; service: requests,creates,burst,\n"
    "                    neighbour,listeners,restart\n"
    "  --atoll PATH      the binary (../atoll from this one)\n"
    "  --server CMD      start this instead of 'ATOLL serve'\n"
    "  --data-dir DIR    prepared with the template 'base'; else a private one is made from\n"
    "                    the archive named by ATOLL_TEMPLATE_ARCHIVE\n"
    "  --work-dir DIR    for sockets and logs (a private one below /var/tmp)\n";

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

Result<unsigned> parse_count(const std::string& text) {
  unsigned value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) {
    return fail(ErrorCode::InvalidArgument, "not a count: " + text);
  }
  return value;
}

constexpr std::string_view kParts[] = {"latency", "throughput", "scale",     "requests", "creates",
                                       "burst",   "neighbour",  "listeners", "restart"};

Result<void> parse_only(Options& options, const std::string& list) {
  for (const std::string& part : split(list, ',')) {
    if (std::find(std::begin(kParts), std::end(kParts), part) == std::end(kParts)) {
      return fail(ErrorCode::InvalidArgument, "--only knows no '" + part + "'\n" + kUsage);
    }
    options.only.insert(part);
  }
  return {};
}

void make_quick(Options& options) {
  options.quick = true;
  options.rounds = 10;
  options.idle_sandboxes = 50;
  options.live_sandboxes = 50;
  options.repetitions = 1;
}

Result<void> apply(Options& options, const std::string& name, const std::string& value) {
  if (name == "--json") {
    options.json = value;
  } else if (name == "--rounds") {
    ATOLL_ASSIGN(options.rounds, parse_count(value));
  } else if (name == "--only") {
    return parse_only(options, value);
  } else if (name == "--atoll") {
    options.atoll = value;
  } else if (name == "--server") {
    options.server = split(value, ' ');
  } else if (name == "--data-dir") {
    options.data_dir = std::filesystem::absolute(value);
  } else if (name == "--work-dir") {
    options.work_dir = std::filesystem::absolute(value);
  } else {
    return fail(ErrorCode::InvalidArgument, kUsage);
  }
  return {};
}

}  // namespace

std::string own_dir() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

Result<Options> parse_options(int argc, char** argv) {
  Options options;
  options.atoll = std::filesystem::path(own_dir()).parent_path() / "atoll";
  std::vector<std::string> arguments(argv + 1, argv + argc);
  // First, so that --rounds after or before it has its way.
  for (const std::string& argument : arguments) {
    if (argument == "--quick") make_quick(options);
  }
  for (size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i] == "--quick") continue;
    if (i + 1 == arguments.size()) return fail(ErrorCode::InvalidArgument, kUsage);
    ATOLL_TRY(apply(options, arguments[i], arguments[i + 1]));
    i++;
  }
  return options;
}

}  // namespace atl::bench
