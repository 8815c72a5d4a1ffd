// `atoll template import`: works on the data directory itself, as root.
#include "image/template_import.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>

#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/template_commands.h"
#include "cli/units.h"
#include "registry/pull.h"
#include "serve/setup.h"

namespace atl::cli {
namespace {

struct ImportArguments {
  std::string source;
  std::string name;
  std::string tag;
  std::string user;
  bool insecure = false;
  std::string data_dir;
};

bool exists(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0;
}

std::string from_environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

// "NAME:PASSWORD", or the name alone with the password in the environment, where `ps` cannot see
// it.
registry::Credentials credentials_of(const ImportArguments& arguments) {
  std::string user = arguments.user;
  if (user.empty()) user = from_environment("ATOLL_REGISTRY_USER");
  size_t colon = user.find(':');
  if (colon != user.npos) return {user.substr(0, colon), user.substr(colon + 1)};
  return {user, from_environment("ATOLL_REGISTRY_PASSWORD")};
}

Result<image::FetchImage> fetch_of(const ImportArguments& arguments, bool quiet) {
  ATOLL_ASSIGN(registry::Reference reference, registry::parse_reference(arguments.source));
  registry::RegistryOptions options{
      .credentials = credentials_of(arguments), .insecure = arguments.insecure, .ca_file = {}};
  return image::FetchImage([=](int directory, const auto& have) {
    Progress bar("downloading", quiet);
    registry::PullOptions pull{.registry = options, .directory = directory, .have = have};
    pull.progress = [&](const registry::DownloadProgress& now) {
      bar.update(now.bytes, now.total);
    };
    return registry::pull(reference, pull);
  });
}

Result<image::TemplateImportOptions> options_of(const ImportArguments& arguments, bool quiet) {
  image::TemplateImportOptions options;
  ATOLL_ASSIGN(options.data_dir, data_dir_or_configured(arguments.data_dir));
  options.name = arguments.name;
  options.source = arguments.source;
  serve::Account account = serve::find_account("atoll");
  options.uid = account.uid;
  options.gid = account.gid;
  bool local = arguments.source.starts_with("oci:") || exists(arguments.source);
  // What is no file, but looks like one, is a file that is missing.
  if (!local && registry::names_registry(arguments.source)) {
    ATOLL_ASSIGN(options.fetch, fetch_of(arguments, quiet));
  }
  return options;
}

Result<image::TemplateImport> import_source(const ImportArguments& arguments, bool quiet) {
  ATOLL_ASSIGN(image::TemplateImportOptions options, options_of(arguments, quiet));
  Progress bar("unpacking", quiet);
  options.progress = [&](const image::ImportProgress& now) { bar.update(now.bytes, now.total); };
  ATOLL_ASSIGN(image::TemplateImport imported, image::import_template(options));
  if (!arguments.tag.empty()) {
    ATOLL_TRY(image::tag_template(options.data_dir + "/templates", imported.manifest.key(),
                                  arguments.tag));
  }
  return imported;
}

void print_import(const Globals& globals, const image::TemplateImport& imported) {
  const image::Template& made = imported.manifest;
  if (globals.json) {
    print_json(JsonObject()
                   .text("name", made.name)
                   .number("version", made.version)
                   .text("digest", made.digest)
                   .raw("layers", to_json(made.layers))
                   .flag("reused", imported.reused)
                   .number("reusedLayers", static_cast<int64_t>(imported.reused_layers))
                   .number("entries", static_cast<int64_t>(imported.entries))
                   .number("bytes", static_cast<int64_t>(imported.bytes))
                   .take());
  } else if (imported.reused) {
    print_out(fmt::format("{}: reused\n", made.name));
  } else {
    std::string version = made.version == 1 ? "" : fmt::format(" (version {})", made.version);
    print_out(fmt::format("{}{}: {} files, {}\n", made.name, version, imported.entries,
                          format_size(imported.bytes)));
  }
}

std::vector<Option> import_options(ImportArguments& arguments) {
  return {{"--name", "NAME", "what 'atoll create --template' calls it", &arguments.name},
          {"--tag", "TAG", "also call this version NAME:TAG", &arguments.tag},
          {"--user", "NAME[:PASSWORD]",
           "for the registry (default: ATOLL_REGISTRY_USER and ATOLL_REGISTRY_PASSWORD)",
           &arguments.user},
          {"--insecure", "", "plain HTTP with the registry, also beyond this host",
           &arguments.insecure},
          {"--data-dir", "DIR", kDataDirHelp, &arguments.data_dir, {}, Complete::File}};
}

}  // namespace

Command import_template_command() {
  auto arguments = std::make_shared<ImportArguments>();
  Command command;
  command.name = "import";
  command.summary =
      "Make a template from a root filesystem or an image (on the server's host, as root)";
  command.examples = {"sudo atoll template import rootfs.tar.zst --name base",
                      "sudo atoll template import docker.io/library/debian:12 --name debian",
                      "sudo atoll template import oci:./layout --name tools",
                      "docker save web >web.tar; sudo atoll template import web.tar --name web"};
  command.options = import_options(*arguments);
  command.arguments = {{"SOURCE",
                        "tar archive (plain, gzip, xz or zstd) of a root filesystem or of 'docker "
                        "save', oci:DIRECTORY, or REGISTRY/NAME:TAG",
                        &arguments->source, true, Complete::File}};
  command.run = [arguments](const Globals& globals) {
    if (arguments->name.empty()) {
      return report_usage("--name is required (atoll template import SOURCE --name NAME)");
    }
    auto imported = import_source(*arguments, globals.quiet || globals.json);
    if (!imported) return report(imported.error());
    print_import(globals, *imported);
    return 0;
  };
  return command;
}

}  // namespace atl::cli
