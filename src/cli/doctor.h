// What a host needs to run sandboxes, found out by trying it.
#pragma once

#include <string>
#include <vector>

namespace atl::cli {

struct DoctorSettings {
  std::string data_dir;
  std::string user = "atoll";
  std::string url;  // of the server to look for
};

struct Check {
  enum class State { Ok, Degraded, Missing };
  std::string name;
  State state = State::Ok;
  std::string detail;       // what was found, or what is lost
  std::string remedy = {};  // how to put it right
};

std::vector<Check> kernel_checks();
std::vector<Check> cgroup_checks();
std::vector<Check> storage_checks(const DoctorSettings& settings);
std::vector<Check> host_checks(const DoctorSettings& settings);

inline Check check_ok(std::string name, std::string detail) {
  return {std::move(name), Check::State::Ok, std::move(detail)};
}
inline Check degraded(std::string name, std::string detail, std::string remedy) {
  return {std::move(name), Check::State::Degraded, std::move(detail), std::move(remedy)};
}
inline Check missing(std::string name, std::string detail, std::string remedy) {
  return {std::move(name), Check::State::Missing, std::move(detail), std::move(remedy)};
}

// "6.1.0-13-amd64" is at least 5.19?
bool kernel_at_least(const std::string& release, int major, int minor);

}  // namespace atl::cli
