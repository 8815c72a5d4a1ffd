// backup create, backup restore.
#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>

#include "backup/archive_reader.h"
#include "backup/create.h"
#include "backup/restore.h"
#include "base/random_id.h"
#include "base/unique_fd.h"
#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/pending_file.h"
#include "cli/report.h"
#include "cli/units.h"
#include "os/file.h"
#include "serve/setup.h"
#include "store/data_lock.h"

namespace atl::cli {
namespace {

struct CreateOptions {
  std::string file;
  std::string data_dir;
  std::string asked = {};  // the server's URL, once one was asked
};

bool is_set(const char* variable) {
  const char* text = getenv(variable);
  return text != nullptr && *text != '\0';
}

Result<void> ask_server(const Globals& globals, CreateOptions& options, int out) {
  ATOLL_ASSIGN(Client client, make_client(globals));
  options.asked = client.url();
  ATOLL_TRY(client.backup([&](std::string_view bytes) { return os::write_all(out, bytes); }));
  return {};
}

bool server_answers(const Globals& globals) {
  auto client = make_client(globals);
  return client && client->system();
}

// Asks the server, or reads its files where none runs.
Result<void> fetch(const Globals& globals, CreateOptions& options, int out) {
  bool told_url = !globals.url.empty() || is_set("ATOLL_URL") || is_set("ATOLL_SOCKET");
  bool told_dir = !options.data_dir.empty();
  if (!told_dir && (told_url || server_answers(globals))) return ask_server(globals, options, out);
  ATOLL_ASSIGN(std::string data_dir, data_dir_or_configured(options.data_dir));
  auto written = backup::write_offline_backup(data_dir, out);
  if (written) return {};
  bool running = written.error().code() == ErrorCode::Conflict;
  std::string socket = running ? store::holder_of(data_dir).value_or("") : "";
  if (socket.empty()) return fail(std::move(written).error());
  Globals holder = globals;
  holder.url = "unix:" + socket;
  return ask_server(holder, options, out);
}

Result<int> create(const Globals& globals, CreateOptions& options) {
  ATOLL_ASSIGN(PendingFile file, PendingFile::create(options.file));
  ATOLL_TRY(fetch(globals, options, file.fd()));
  ATOLL_ASSIGN(backup::Manifest manifest, backup::read_archive(file.part(), backup::kCheckOnly));
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) return fail_errno("stat", options.file);
  ATOLL_TRY(file.commit());
  if (globals.json) {
    print_json(JsonObject()
                   .text("file", options.file)
                   .number("bytes", info.st_size)
                   .raw("manifest", backup::encode_manifest(manifest))
                   .take());
  } else {
    print_out(fmt::format("{}: {}, {} sandboxes without their files\n", options.file,
                          format_size(static_cast<uint64_t>(info.st_size)), manifest.sandboxes));
  }
  return 0;
}

Command create_backup_command() {
  auto options = std::make_shared<CreateOptions>();
  Command command;
  command.name = "create";
  command.summary = "Save the server's database, keys and audit log, also while it runs";
  command.examples = {"sudo atoll backup create /backup/atoll.tar.zst",
                      "sudo atoll backup create atoll.tar.zst --data-dir /srv/atoll"};
  command.options = {{"--data-dir", "DIR", "another server's, running or not", &options->data_dir}};
  command.arguments = {{"FILE",
                        "tar.zst; holds keys, but no files of sandboxes, no templates and no "
                        "configuration file",
                        &options->file, true, Complete::File}};
  command.run = [options](const Globals& globals) {
    auto code = create(globals, *options);
    return code ? *code : report(code.error(), options->asked);
  };
  return command;
}

struct RestoreArguments {
  std::string file;
  std::string data_dir;
  bool force = false;
};

void print_restored(const backup::Restored& restored, const std::string& data_dir) {
  const backup::Manifest& manifest = restored.manifest;
  print_out(fmt::format("{}: {} sandboxes as of {}\n", data_dir, manifest.sandboxes,
                        manifest.created_at));
  if (!restored.aside.empty())
    print_out(fmt::format("What was there before is in {}\n", restored.aside));
  if (!restored.unknown_sandboxes.empty()) {
    print_out(fmt::format("Files of {} sandboxes that the backup does not know are there too\n",
                          restored.unknown_sandboxes.size()));
  }
}

Result<int> restore(const Globals& globals, const RestoreArguments& arguments) {
  ATOLL_ASSIGN(config::Loaded loaded, config::load_from_environment({}));
  serve::Account account = serve::find_account(loaded.config.user);
  backup::RestoreOptions options;
  options.file = arguments.file;
  options.data_dir = arguments.data_dir.empty() ? loaded.config.data_dir : arguments.data_dir;
  options.server_uid = account.uid;
  options.server_gid = account.gid;
  if (arguments.force) options.existing = backup::Existing::MoveAside;
  ATOLL_ASSIGN(backup::Restored restored, backup::restore(options));
  if (globals.json) {
    print_json(JsonObject()
                   .text("dataDir", options.data_dir)
                   .text("aside", restored.aside)
                   .raw("unknownSandboxes", to_json(restored.unknown_sandboxes))
                   .raw("manifest", backup::encode_manifest(restored.manifest))
                   .take());
  } else {
    print_restored(restored, options.data_dir);
  }
  return 0;
}

Command restore_backup_command() {
  auto arguments = std::make_shared<RestoreArguments>();
  Command command;
  command.name = "restore";
  command.summary = "Bring a backup back, as root, while no server runs there";
  command.examples = {"sudo atoll backup restore /backup/atoll.tar.zst",
                      "sudo atoll backup restore atoll.tar.zst --data-dir /srv/atoll --force"};
  command.options = {
      {"--data-dir", "DIR", kDataDirHelp, &arguments->data_dir},
      {"--force", "", "where there is a database: move it aside, keep it", &arguments->force}};
  command.arguments = {
      {"FILE",
       "of 'atoll backup create'; sandboxes have their files again where this host still has them",
       &arguments->file, true, Complete::File}};
  command.run = [arguments](const Globals& globals) {
    auto code = restore(globals, *arguments);
    return code ? *code : report(code.error());
  };
  return command;
}

}  // namespace

Command backup_command() {
  Command command;
  command.name = "backup";
  command.summary = "Save and bring back what the server knows";
  command.examples = {"sudo atoll backup create /backup/atoll.tar.zst",
                      "sudo atoll backup restore /backup/atoll.tar.zst"};
  command.commands.push_back(create_backup_command());
  command.commands.push_back(restore_backup_command());
  return command;
}

}  // namespace atl::cli
