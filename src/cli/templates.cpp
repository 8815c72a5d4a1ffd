#include <fmt/format.h>

#include <memory>

#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/units.h"
#include "image/template.h"

namespace atl::cli {
namespace {

struct ImportOptions {
  std::string file;
  std::string name;
  std::string data_dir;
};

int import_file(const Globals& globals, const ImportOptions& options) {
  auto data_dir = data_dir_or_configured(options.data_dir);
  if (!data_dir) return report(data_dir.error());
  auto imported = image::import_template(*data_dir, options.name, options.file);
  if (!imported) return report(imported.error());
  const image::Template& made = imported->manifest;
  if (globals.json) {
    print_json(JsonObject()
                   .text("name", made.name)
                   .text("digest", made.digest)
                   .raw("layers", to_json(made.layers))
                   .flag("reused", imported->reused)
                   .number("entries", static_cast<int64_t>(imported->layer.entries))
                   .number("bytes", static_cast<int64_t>(imported->layer.bytes))
                   .take());
  } else if (imported->reused) {
    print_out(fmt::format("{}: reused\n", made.name));
  } else {
    print_out(fmt::format("{}: {} files, {}\n", made.name, imported->layer.entries,
                          format_size(imported->layer.bytes)));
  }
  return 0;
}

Command import_command() {
  auto options = std::make_shared<ImportOptions>();
  Command command;
  command.name = "import";
  command.summary =
      "Make a template from the archive of a root filesystem (on the server's host, as root)";
  command.examples = {"sudo atoll template import rootfs.tar.zst --name base"};
  command.options = {{"--name", "NAME", "what 'atoll create --template' calls it", &options->name},
                     {"--data-dir",
                      "DIR",
                      kDataDirHelp,
                      &options->data_dir,
                      {},
                      Complete::File}};
  command.arguments = {
      {"FILE", "tar archive: plain, gzip, xz or zstd", &options->file, true, Complete::File}};
  command.run = [options](const Globals& globals) {
    if (options->name.empty()) {
      return report_usage("--name is required (atoll template import FILE --name NAME)");
    }
    return import_file(globals, *options);
  };
  return command;
}

Command ls_templates_command() {
  Command command;
  command.name = "ls";
  command.summary = "List templates";
  command.examples = {"atoll template ls", "atoll template ls --json | jq -r '.[].name'"};
  command.run = [](const Globals& globals) {
    return with_client(globals, [&](Client& client) -> Result<int> {
      ATOLL_ASSIGN(auto templates, client.templates());
      if (globals.json) {
        print_json(to_json_array(templates));
        return 0;
      }
      Table table({{"NAME", Column::Kind::Elastic}, {"CREATED"}, {"DIGEST"}});
      for (const TemplateInfo& info : templates) {
        table.add({Cell(info.name), Cell(info.created_at), Cell(info.digest.substr(0, 19))});
      }
      table.print();
      return 0;
    });
  };
  return command;
}

}  // namespace

Command template_command() {
  Command command;
  command.name = "template";
  command.summary = "List and import templates: what sandboxes start from";
  command.examples = {"atoll template ls", "sudo atoll template import rootfs.tar.zst --name base"};
  command.commands.push_back(ls_templates_command());
  command.commands.push_back(import_command());
  return command;
}

}  // namespace atl::cli
