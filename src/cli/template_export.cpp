// `atoll template export`: reads the data directory itself, as root.
#include <fmt/format.h>

#include <memory>

#include "cli/config_options.h"
#include "cli/json_out.h"
#include "cli/report.h"
#include "cli/template_commands.h"
#include "cli/units.h"
#include "image/export.h"

namespace atl::cli {
namespace {

struct ExportArguments {
  std::string name;
  std::string file;
  std::string data_dir;
};

Result<image::ExportReport> export_to(const ExportArguments& arguments) {
  ATOLL_ASSIGN(std::string data_dir, data_dir_or_configured(arguments.data_dir));
  ATOLL_ASSIGN(image::Template found,
               image::load_template(data_dir + "/templates", arguments.name));
  return image::export_template(data_dir, found, arguments.file);
}

}  // namespace

Command export_template_command() {
  auto arguments = std::make_shared<ExportArguments>();
  Command command;
  command.name = "export";
  command.summary =
      "Write a template's root filesystem to an archive (on the server's host, as root)";
  command.examples = {"sudo atoll template export web web.tar.zst"};
  command.options = {{"--data-dir", "DIR", kDataDirHelp, &arguments->data_dir, {}, Complete::File}};
  command.arguments = {
      {"TEMPLATE", "NAME, NAME@VERSION or NAME:TAG", &arguments->name, true, Complete::Template},
      {"FILE", "the archive to write: tar, compressed with zstd", &arguments->file, true,
       Complete::File}};
  command.run = [arguments](const Globals& globals) {
    auto report_or_error = export_to(*arguments);
    if (!report_or_error) return report(report_or_error.error());
    if (globals.json) {
      print_json(JsonObject()
                     .text("file", arguments->file)
                     .number("bytes", static_cast<int64_t>(report_or_error->bytes))
                     .take());
    } else {
      print_out(fmt::format("{}: {}\n", arguments->file, format_size(report_or_error->bytes)));
    }
    return 0;
  };
  return command;
}

}  // namespace atl::cli
