// The few calls that are measured, over a kept connection. What is not part of a call's cost, such
// as checking the answer, is done after it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/client.h"

namespace atl::bench {

struct Created {
  std::string id;
  bool from_pool = false;
  double server_us = 0;  // what the server says it took
};

class SandboxApi {
 public:
  static Result<SandboxApi> connect(const std::string& endpoint);

  Result<Created> create(std::string_view body);
  // The same by another route.
  Result<Created> create_by(const std::string& target, std::string_view body);
  Result<std::string> post(const std::string& target, std::string_view body);
  // `answer` is what told of it.
  Result<void> remove_snapshot(const std::string& answer);
  Result<void> remove_checkpoint(const std::string& answer);
  Result<void> remove_template(const std::string& name);
  Result<void> remove(const std::string& id);
  Result<void> remove_all();
  // Runs it and fails unless its exit code is 0. The whole answer.
  Result<std::string> exec(const std::string& id, std::string_view body);
  // What it printed.
  Result<std::string> exec_output(const std::string& id, std::string_view body);
  Result<unsigned> pool_size();
  Result<unsigned> sandbox_count();
  // Puts a local file into a sandbox, executable.
  Result<void> upload_program(const std::string& id, const std::string& local,
                              const std::string& path);

  http::Client& client() { return client_; }

 private:
  explicit SandboxApi(http::Client client) : client_(std::move(client)) {}
  Result<std::string> call(std::string_view method, const std::string& target,
                           std::string_view body);
  http::Client client_;
};

inline constexpr std::string_view kTrueBody = R"({"executable":"/bin/true"})";

// The text behind a key, wherever in a JSON text; empty where there is none.
std::string find_text(std::string_view json, std::string_view key);
// Every sandbox's id of an answer, each once.
std::vector<std::string> find_ids(std::string_view json);
// The number behind a key, wherever in a JSON text; 0 where there is none.
double find_number(std::string_view json, std::string_view key);

std::string runtime_path(const std::string& id, std::string_view rest);

}  // namespace atl::bench
