// Watches whose events are fetched: each gathers in the background until somebody asks.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/context.h"
#include "atoll/sandbox_session.h"

namespace atl::api::e2b {

// {"name":"a.txt","type":"EVENT_TYPE_CREATE"}; empty where clients know no such event.
std::string event_json(const FileEvent& event, const std::string& base);

class Watches : public std::enable_shared_from_this<Watches> {
 public:
  // A watcher of a sandbox; at most so many at a time.
  static constexpr size_t kMostPerSandbox = 64;
  Task<Result<std::string>> add(const Target& target, std::unique_ptr<FileWatcher> watcher,
                                std::string base);
  // What has happened since it was last asked, as a JSON array; NotFound where there is no such.
  Result<std::string> take(const std::string& sandbox, const std::string& id);
  void remove(const std::string& sandbox, const std::string& id);

 private:
  struct Watch {
    std::string sandbox;
    std::string base;
    std::unique_ptr<FileWatcher> watcher;
    std::string events;  // JSON, comma-separated
    size_t count = 0;
  };
  Task<void> gather(std::string id, std::shared_ptr<Watch> watch,
                    std::shared_ptr<SandboxSession> session);
  std::shared_ptr<Watch> find(const std::string& sandbox, const std::string& id) const;

  std::map<std::string, std::shared_ptr<Watch>> watches_;
};

}  // namespace atl::api::e2b
