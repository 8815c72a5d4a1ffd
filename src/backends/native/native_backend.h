// Sandboxes on this kernel: the launcher builds them, their agents run them.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/keyed_turns.h"
#include "atoll/sandbox_backend.h"
#include "backends/native/egress_client.h"
#include "backends/native/launcher_client.h"
#include "backends/native/native_session.h"
#include "backends/native/template_importer.h"
#include "image/template_catalog.h"

namespace atl::native {

struct NativeOptions {
  std::string data_dir;
  std::string run_dir;
  std::string default_template = "base";
};

class NativeBackend : public SandboxBackend {
 public:
  NativeBackend(boost::asio::any_io_executor executor, std::shared_ptr<LauncherClient> launcher,
                NativeOptions options);

  // Without it sandboxes have no way out.
  void use_egress(std::shared_ptr<EgressClient> egress);
  // Learns what an earlier server left running.
  Task<Result<void>> start();

  const std::string& name() const override { return name_; }
  Result<FoundTemplate> find_template(const std::string& reference) override;
  Task<Result<std::shared_ptr<TemplateUpload>>> start_upload() override {
    return importer_.start_upload();
  }
  Task<Result<ImportedTemplate>> import_template(ImportInput input) override {
    return importer_.import(std::move(input));
  }
  Task<Result<std::unique_ptr<FileReader>>> export_archive(ExportInput input) override;
  Task<Result<void>> collect_templates(std::vector<BackendState> in_use) override;
  Task<Result<PrewarmResult>> prewarm(PrewarmInput input) override;
  Task<Result<PrewarmResult>> publish_state(PublishInput input) override;
  Task<Result<std::shared_ptr<SandboxHandle>>> create(CreateInput input) override;
  Task<Result<void>> discard(std::string session_key) override;
  void on_ended(std::function<void(EndedSandbox)> callback) override {
    ended_ = std::move(callback);
  }
  void on_traffic(std::function<void(std::string, std::vector<NetworkEntry>)> callback) override {
    traffic_ = std::move(callback);
  }
  Task<Result<void>> reclaim(Known known) override;
  Task<Result<CopyTimings>> keep_state(std::string session_key, std::string state) override;
  Task<Result<CopyTimings>> copy_state(std::string state, std::string session_key) override;
  Task<Result<CopyTimings>> copy_files(std::string from, std::string session_key) override;
  Task<Result<void>> restore_state(std::string session_key, std::string state) override;
  Task<Result<void>> drop_state(std::string state) override;
  Task<Result<Difference>> diff_states(DiffInput input) override;
  Task<Result<StorageInfo>> storage(uint64_t grow_to) override;
  Task<Result<CopyTimings>> keep_memory(MemoryInput input) override;
  Task<Result<std::shared_ptr<SandboxHandle>>> revive(CreateInput input,
                                                      std::string image) override;
  bool has_memory(const std::string& image) const override;
  Task<Result<void>> forget_memory(std::string image) override;
  Task<Result<MemorySupport>> memory_support() override;
  std::vector<std::string> degraded() const override { return degraded_; }
  // Blank slots to keep ready.
  Task<Result<void>> reserve(uint32_t slots);

 private:
  friend class NativeHandle;
  using HandlePtr = std::shared_ptr<class NativeHandle>;

  Task<Result<HandlePtr>> build(CreateInput input);
  Result<wire::BuildRequest> build_request(const CreateInput& input);
  HandlePtr handle_of(const wire::Built& built, const CreateInput& input, std::string layers);
  Task<Result<HandlePtr>> reattach(const CreateInput& input, const std::string& slot);
  Task<Result<PrewarmResult>> capture_template(PrewarmInput input);
  Task<Result<PrewarmResult>> add_layer(image::Template made, wire::PublishRequest publish);
  Result<std::vector<std::string>> layers_of(const std::string& template_key);
  Result<std::vector<std::string>> layers_for(const CreateInput& input);
  std::string slot_of(const std::string& session_key) const;  // empty where nothing runs
  std::string socket_of(const std::string& slot) const;
  void slot_ended(const wire::Ended& ended);
  void forget(const std::string& session_key);
  void pass_traffic(wire::Traffic traffic);

  std::string name_ = "native";
  boost::asio::any_io_executor executor_;
  std::shared_ptr<LauncherClient> launcher_;
  std::shared_ptr<EgressClient> egress_;
  NativeOptions options_;
  image::TemplateCatalog templates_;
  TemplateImporter importer_;
  std::map<std::string, HandlePtr> live_;  // by session key
  async::KeyedTurns under_way_;            // creations and prewarms
  std::set<std::string> found_slots_;      // alive at start and not claimed yet
  std::vector<std::string> found_sandboxes_;
  std::vector<std::string> found_states_;
  std::vector<std::string> found_images_;
  std::vector<std::string> degraded_;
  std::function<void(EndedSandbox)> ended_;
  std::function<void(std::string, std::vector<NetworkEntry>)> traffic_;
};

// Where a sandbox runs, and on what.
struct Place {
  std::string slot;
  std::string layers;  // topmost first, with commas between
};

// The layers of a sandbox that has this SessionState::metadata, topmost first.
std::vector<std::string> layers_in(const std::map<std::string, std::string>& metadata);
std::string joined(const std::vector<std::string>& names);

class NativeHandle : public SandboxHandle {
 public:
  NativeHandle(NativeBackend& backend, Place place, std::unique_ptr<NativeSession> session,
               BuildTimings timings, bool has_gate = false)
      : backend_(backend),
        place_(std::move(place)),
        session_(std::move(session)),
        timings_(timings),
        has_gate_(has_gate) {}

  SandboxSession& session() override { return *session_; }
  SessionState capture_state() const override;
  BuildTimings timings() const override { return timings_; }
  Task<Result<void>> ready() override;
  void assign(CreateInput input) override;
  Task<Result<void>> set_limits(Limits limits) override;
  Task<Result<void>> set_frozen(bool frozen) override;
  Task<Result<NetworkHolds>> set_network(NetworkRules rules) override;
  Task<Result<UniqueFd>> dial(uint16_t port, std::chrono::milliseconds limit) override;
  Task<Result<HostUsage>> usage() override;
  Task<Result<void>> dispose() override;
  Task<Result<void>> destroy() override;
  const std::string& slot() const { return place_.slot; }
  NativeSession& native_session() { return *session_; }

 private:
  NativeBackend& backend_;
  Place place_;
  std::unique_ptr<NativeSession> session_;
  BuildTimings timings_;
  bool has_gate_;
};

}  // namespace atl::native
